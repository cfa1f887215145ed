"""The page in a real Airflow over real clusters: an operator logs in, finds a gap, has it closed by a run, and sees that it is closed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from playwright.sync_api import Locator, Page, expect
from tests.conftest import Lab
from tests.opened import assemble_report, copy_run, keep_run, plan_run, prepare_run, status_after_run
from tests.page.browsing import LOOK_MS, Visit
from tests.page.views import drawn
from tools.kafka import SandboxCluster, read_all

from ferry.airflow.flows import dag_id
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.browser]

RECORDS = 300
VIEWER = "vic"


class WithViewer(DemoAirflow):
    """It has a second user, who may only look."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{self.user}:admin,{VIEWER}:viewer"}

    def password_of(self, user: str) -> str:
        found = json.loads((self._home / "passwords.json").read_text(encoding="utf-8"))
        return str(found[user])


@dataclass
class Stage:
    """A flow whose two topics lack their first RECORDS records on the target."""

    airflow: WithViewer
    flow: Flow
    topic: str
    other: str


def run(flow: Flow, run_id: str) -> None:
    request = RunRequest(flow.name, run_id)
    planned = plan_run(flow, request)
    prepare_run(flow, request, spark_follows=planned.needs_copy)
    if planned.needs_copy:
        copy_run(flow, request, InlineLaneRunner(), lambda _: None)
    report = assemble_report(flow, request)
    assert keep_run(flow, report, status_after_run(flow, report).lag.of_run) == ""


@pytest.fixture
def stage(lab: Lab, tmp_path: Path) -> Iterator[Stage]:
    topic, other = (lab.topic(lab.source) for _ in range(2))
    config = lab.config(f"A->B.topics = {topic}, {other}", "A->B.ferry.start = latest", *lab.copy_only)
    flow = load_config(config).flows[0]
    for number, run_id in enumerate(("first", "second")):
        for name in (topic, other):
            lab.produce(lab.source, name, [(0, None, f"{number}-{record}".encode()) for record in range(RECORDS)])
        run(flow, run_id)
    airflow = WithViewer(tmp_path / "airflow", config)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            api.wait_for_dag(dag_id(flow))
            api._call("PATCH", f"/dags/{dag_id(flow)}", {"is_paused": False})
        yield Stage(airflow, flow, topic, other)
    finally:
        airflow.stop()


def logged_in(visit: Visit, user: str, password: str) -> Page:
    page = visit.page
    page.goto(f"{visit.url}/plugin/ferry")
    expect(page).to_have_url(re.compile("login"))
    expect(page.locator(".ferry")).to_have_count(0)
    page.get_by_label("Username").or_(page.locator("input[name=username]")).first.fill(user)
    page.locator("input[type=password]").fill(password)
    visit.picture(f"airflow-login-{user}")
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("login"))
    return page


def opened(visit: Visit, topic: str) -> Locator:
    """The page by Airflow's navigation, at the coverage of a topic."""
    visit.page.get_by_role("link", name="Ferry").or_(visit.page.get_by_role("button", name="Ferry")).first.click()
    ferry = visit.page.locator(".ferry")
    ferry.get_by_role("tab", name="Coverage").click()
    ferry.get_by_role("button", name=topic).click()
    return ferry


def paused_and_unpaused(page: Page, ferry: Locator) -> None:
    ferry.get_by_role("tab", name="Runs").click()
    ferry.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Pause the DAG").click()
    expect(dialog).to_contain_text("The DAG is paused")
    dialog.get_by_role("button", name="Close").click()
    ferry.get_by_role("button", name="Unpause").click()
    expect(ferry.get_by_role("button", name="Pause…")).to_be_visible()


def planned_failover(ferry: Locator) -> None:
    ferry.get_by_role("tab", name="Failover").click()
    card = ferry.get_by_role("article", name="Failover")
    expect(card).to_contain_text("nobody has started it yet")
    card.get_by_role("button", name="Show the plan").click()
    expect(card).to_contain_text("was to show the plan, and is over (success)")
    expect(card.get_by_role("list", name="Stages")).to_contain_text("done check both clusters")
    expect(card.get_by_role("heading", name="Plan")).to_be_visible()


@pytest.mark.long
def test_a_gap_is_found_and_closed_in_airflow(stage: Stage, browser: Browser, pictures: Path, target_cluster: SandboxCluster) -> None:
    airflow, flow = stage.airflow, stage.flow
    options = {"viewport": {"width": 1440, "height": 900}}
    with browser.new_context(**options) as context:  # type: ignore[arg-type]
        context.set_default_timeout(LOOK_MS)
        visit = Visit(context, airflow.url, pictures)
        page = logged_in(visit, airflow.user, airflow.password)
        ferry = opened(visit, stage.topic)
        gap = ferry.get_by_role("img", name=f"missing 0 to {RECORDS - 1}")
        expect(gap).to_be_visible()
        visit.picture("airflow-gap")
        ferry.get_by_role("button", name=re.compile("^Backfill")).click()
        dialog = page.get_by_role("dialog")
        visit.picture("airflow-dialog")
        dialog.get_by_role("button", name="Start the run").click()
        expect(dialog).to_contain_text("has succeeded.")
        dialog.get_by_role("button", name="Close").click()
        expect(ferry.get_by_role("img", name=f"backfilled 0 to {RECORDS - 1}")).to_be_visible()
        expect(gap).to_have_count(0)
        visit.picture("airflow-closed")
        paused_and_unpaused(page, ferry)
        planned_failover(ferry)
        visit.picture("airflow-failover")

        page.goto(f"{airflow.url}/dags/{dag_id(flow)}")
        page.locator("a[href$='plugin/ferry-flow']").click()
        expect(ferry.get_by_text(flow.name).first).to_be_visible()
        expect(ferry.get_by_role("tab", name="Runs")).to_have_attribute("aria-selected", "true")
        expect(ferry.get_by_role("table", name="Last runs").locator("tbody tr")).to_have_count(3)
        drawn(page)
        visit.picture("airflow-dag-tab")
        page.evaluate("document.documentElement.classList.replace('light', 'dark')")
        visit.picture("airflow-dag-tab-dark")
        assert [error for error in visit.complaints() if "ferry" in error] == []
        seen = page.url
        page.goto("about:blank")  # Airflow's page goes to its login by itself once a read is refused, and would cut off ours
        context.clear_cookies()
        page.goto(f"{airflow.url}/api/v2/auth/login?{urlencode({'next': seen})}")  # where "Log in again" leads
        expect(page).to_have_url(re.compile("login.*ferry-flow"))
    values = Counter(
        (record.value or b"").decode()
        for records in read_all(target_cluster.bootstrap, f"{flow.source.alias}.{stage.topic}")
        for record in records
    )
    assert values == Counter(f"{number}-{record}" for number in range(2) for record in range(RECORDS))

    with browser.new_context(**options) as context:  # type: ignore[arg-type]
        context.set_default_timeout(LOOK_MS)
        visit = Visit(context, airflow.url, pictures)
        logged_in(visit, VIEWER, airflow.password_of(VIEWER))
        ferry = opened(visit, stage.other)
        expect(ferry.get_by_role("img", name=f"missing 0 to {RECORDS - 1}")).to_be_visible()
        expect(ferry.get_by_text(f"You may not start runs of {dag_id(flow)}")).to_be_visible()
        expect(ferry.get_by_role("button", name=re.compile("^Backfill"))).to_have_count(0)
        visit.picture("airflow-viewer")
        for tab in ("Runs", "Failover"):
            ferry.get_by_role("tab", name=tab).click()
            expect(ferry.get_by_role("article", name="Failover") if tab == "Failover" else ferry.get_by_role("table").first).to_be_visible()
            expect(ferry.get_by_role("button", name=re.compile("^(Pause|Stop|Retry|Show the plan|Failover…)"))).to_have_count(0)
