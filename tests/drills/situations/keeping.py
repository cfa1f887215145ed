"""What is kept of a situation: pictures of the page's first screen, the first lines of `ferry status`, what Airflow shows, the alerts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, expect
from tests.drills.situations.stage import Stage
from tests.page.browsing import LOOK_MS
from tests.page.views import settled
from tests.waiting import until

STATUS_LINES = 10
LOOKS: dict[str, dict[str, Any]] = {
    "page-light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "page-dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "page-phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}
# So Airflow remembers which theme its user chose.
THEME = "localStorage.setItem('theme', '{}')"


@dataclass
class Keeper:
    """`state`: a browser's, after its login."""

    browser: Browser
    results: Path
    state: Any

    def keep(self, stage: Stage, name: str) -> None:
        """Everything under a name, once the page's server has looked at the flow after this call."""
        directory = self.results / name
        directory.mkdir(parents=True, exist_ok=True)
        seen = self.look(stage)
        (directory / "page.json").write_text(json.dumps(seen, indent=2) + "\n", encoding="utf-8")
        for look, options in LOOKS.items():
            with self._context(options) as context:
                self._picture(context, f"{stage.airflow.url}/plugin/ferry", directory / f"{look}.png", page_of_ferry=True)
        if stage.last_run:
            with self._context(LOOKS["page-light"]) as context:
                address = f"{stage.airflow.url}/dags/{stage.dag}/runs/{stage.last_run}"
                self._picture(context, address, directory / "airflow-run.png", page_of_ferry=False)
        status = stage.ferry("status").splitlines(keepends=True)
        (directory / "status.txt").write_text("".join(status[:STATUS_LINES]), encoding="utf-8")
        (directory / "airflow.txt").write_text("\n".join(told_by_airflow(stage)) + "\n", encoding="utf-8")
        (directory / "alerts.json").write_text(json.dumps(stage.told(), indent=2) + "\n", encoding="utf-8")

    def look(self, stage: Stage) -> dict[str, Any]:
        """The page's overview, read anew by its server."""
        with self._context({}) as context:
            address = f"{stage.airflow.url}/ferry/api/overview"
            names = [stage.flow.name]

            def overview(**headers: str) -> dict[str, Any]:
                answer: dict[str, Any] = context.request.get(address, headers=headers, timeout=LOOK_MS).json()
                return answer

            until(lambda: [flow["flow"] for flow in overview()["flows"]] == names, lambda: f"the page never showed {names}")
            overview(**{"Cache-Control": "no-cache"})
            found: list[dict[str, Any]] = []
            until(lambda: not (found.append(overview()) or found[-1]["refreshing"]), lambda: "the page's server reads for ever")
            return found[-1]

    def _context(self, options: dict[str, Any]) -> BrowserContext:
        context = self.browser.new_context(storage_state=self.state, **options)
        context.set_default_timeout(LOOK_MS)
        context.add_init_script(THEME.format(options.get("color_scheme", "light")))
        return context

    def _picture(self, context: BrowserContext, address: str, path: Path, *, page_of_ferry: bool) -> None:
        page = context.new_page()
        page.goto(address)
        if page_of_ferry:
            expect(page.get_by_role("article")).to_be_visible()
            settled(page)
        else:
            page.wait_for_load_state("networkidle")
        page.screenshot(path=path)


def logged_in(browser: Browser, stage_url: str, user: str, password: str) -> Any:
    """The state of a browser in which this user has logged in to Airflow."""
    with browser.new_context() as context:
        context.set_default_timeout(LOOK_MS)
        page = context.new_page()
        page.goto(stage_url)
        page.get_by_label("Username").or_(page.locator("input[name=username]")).first.fill(user)
        page.locator("input[type=password]").fill(password)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url)
        return context.storage_state()


def told_by_airflow(stage: Stage) -> Iterator[str]:
    """The last run as Airflow shows it: its state and its note, each task's state, and of tasks that failed the error in their log."""
    if not stage.last_run:
        yield "no run yet"
        return
    path = f"/dags/{stage.dag}/dagRuns/{stage.last_run}"
    run = stage.api._call("GET", path)
    yield f"run {stage.last_run}: {run['state']}; note: {run['note'] or 'none'}"
    tasks = stage.api._call("GET", f"{path}/taskInstances")["task_instances"]
    for task in sorted(tasks, key=lambda task: task["end_date"] or "9"):
        yield f"  {task['task_id']}: {task['state']}"
        content = stage.api._call("GET", f"{path}/taskInstances/{task['task_id']}/logs/{task['try_number']}")["content"]
        events = [entry for entry in content if isinstance(entry, dict)]
        if task["state"] == "failed":
            for entry in events:
                for error in entry.get("error_detail") or ():
                    yield f"    {error['exc_type']}: {error['exc_value']}"
        elif task["task_id"] == "check_limits":
            said = [entry["event"] for entry in events if entry.get("logger") == "task.stdout"]
            yield from (f"    {line}" for line in said[-1:])


def pause(seconds: float) -> None:
    """For what changes by itself in a known time."""
    time.sleep(seconds)
