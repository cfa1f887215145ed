"""A Chromium that looks at the fixture server, and notes what it must not see: errors, and requests to anywhere else."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.waiting import NEVER_SECONDS

from ferry.sandbox.ports import free_ports

ROOT = Path(__file__).parents[2]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # What asks for another machine fails, rather than leaves.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
LOOK_MS = NEVER_SECONDS * 1000
STOP_SECONDS = 10.0
SCREENSHOTS = "FERRY_PAGE_SCREENSHOTS"
numbers = itertools.count()


def screenshots(default: Path) -> Path:
    """Where pictures go."""
    found = Path(os.environ.get(SCREENSHOTS, default))
    found.mkdir(parents=True, exist_ok=True)
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    path = os.environ.get("FERRY_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUMS)), None)
    assert path, "there is no Chromium: run setup/browser.sh"
    expect.set_options(timeout=LOOK_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class FixtureServer:
    """The process of fixture_server.py, always on the same port."""

    def __init__(self, directory: Path) -> None:
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = directory / "server.log"
        self._environment = {
            **os.environ,
            "AIRFLOW_HOME": str(directory / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(directory / "no-plugins"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)]),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        command = [sys.executable, "-W", "ignore", "-m", "tests.page.fixture_server", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + NEVER_SECONDS
        while True:
            try:
                httpx.get(f"{self.url}/fixture/posted", trust_env=False)
            except httpx.HTTPError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        """End it, as a machine that fails does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None


class Visit:
    """One tab of a browser of its own."""

    def __init__(self, context: BrowserContext, url: str, pictures: Path) -> None:
        self.context, self.url = context, url
        self._pictures = pictures
        self._tolerated: list[str] = []
        self._errors: list[str] = []
        self._strangers: list[str] = []
        context.on("request", lambda request: self._asked(request.url))
        self.page: Page = context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self._errors.append(str(error)))

    def become(self, scenario: str, role: str = "admin") -> None:
        """See a scenario from now on, one of this test's own."""
        self.context.add_cookies([{"name": "stage", "value": f"{scenario}.{role}.{next(numbers)}", "url": self.url}])

    def open(self, scenario: str, role: str = "admin", **query: str) -> Page:
        """Open the page in a scenario: `open("healthy", view="coverage", topic="orders")`."""
        self.become(scenario, role)
        self.page.goto(f"{self.url}/ferry/static/index.html?{urlencode(query)}")
        return self.page

    def picture(self, name: str) -> None:
        """Keep what is to be seen."""
        self.page.screenshot(path=self._pictures / f"{name}.png", full_page=True)

    def theme(self, name: str) -> None:
        """`light` or `dark`, as the system says."""
        self.page.emulate_media(color_scheme=name)  # type: ignore[arg-type]

    def end_first_reading(self) -> None:
        """In the scenario `slow`: what the page shows has been read."""
        assert self.context.request.post(f"{self.url}/fixture/read").ok

    def posted(self) -> list[dict[str, Any]]:
        """What the page asked Airflow to run."""
        found: list[dict[str, Any]] = self.context.request.get(f"{self.url}/fixture/posted").json()
        return found

    def changed(self) -> list[dict[str, Any]]:
        """What else the page changed in Airflow."""
        found: list[dict[str, Any]] = self.context.request.get(f"{self.url}/fixture/changed").json()
        return found

    def tolerate(self, *texts: str) -> None:
        """Errors of the console with these words belong to the test."""
        self._tolerated += texts

    def complaints(self) -> list[str]:
        """What it must not have seen."""
        errors = [error for error in self._errors if not any(text in error for text in self._tolerated)]
        return errors + [f"asked for {url}" for url in self._strangers]

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob"} and f"{parts.scheme}://{parts.netloc}" != self.url:
            self._strangers.append(url)
