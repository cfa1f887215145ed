"""What a person changes on the page, in Airflow: the DAG is paused and unpaused, a run is stopped, and one that failed runs again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, Request, Route, expect
from tests.page import made_up_reads as made_up
from tests.page.contrast import too_faint
from tests.page.test_browser_actions import reach
from tests.page.views import FLOW, settled

from ferry.airflow.recovering import document_of
from ferry.airflow.run_note import STOPPED

if TYPE_CHECKING:
    from tests.page.browsing import Visit

pytestmark = pytest.mark.browser

DAG = "ferry.A.B"


@pytest.mark.parametrize("view", ["overview", "runs"])
def test_the_dag_is_paused_and_unpaused(visit: Visit, view: str) -> None:
    page = visit.open("queued", flow=FLOW, view=view)
    settled(page)
    place = page.get_by_role("article", name=f"Flow {FLOW}") if view == "overview" else page.get_by_role("tabpanel")
    place.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No run of ferry.A.B starts until somebody unpauses it")
    expect(dialog).to_contain_text("A run that is under way goes on")
    visit.picture(f"pause-asking-{view}")
    assert too_faint(page) == []
    assert visit.changed() == [], "nobody has said yes"
    dialog.get_by_role("button", name="Pause the DAG").click()
    expect(dialog.get_by_role("status")).to_contain_text("The DAG is paused")
    dialog.get_by_role("button", name="Close").click()
    expect(place.get_by_role("button", name="Pause…")).to_have_count(0)
    expect(page.locator(".badge.health-paused").first).to_be_visible()
    visit.picture(f"paused-{view}")
    place.get_by_role("button", name="Unpause").click()
    expect(place.get_by_role("button", name="Pause…")).to_be_visible()
    assert visit.changed() == [{"what": "dag", "dag": DAG, "is_paused": paused} for paused in (True, False)]


def test_a_run_is_stopped_and_runs_again(visit: Visit) -> None:
    page = visit.open("running", flow=FLOW, view="runs")
    page.get_by_role("button", name="Stop… run manual__now").click()
    dialog = page.get_by_role("dialog")
    for told in ("manual__now as failed", "nothing is copied twice", "for at most 60 s", "does not pause the DAG"):
        expect(dialog).to_contain_text(told)
    visit.picture("stop-asking")
    visit.theme("dark")
    visit.picture("stop-asking-dark")
    assert too_faint(page) == []
    dialog.get_by_role("button", name="Stop the run").click()
    expect(dialog.get_by_role("status")).to_contain_text("has marked the run as failed")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name=re.compile("^Stop"))).to_have_count(0)
    expect(page.get_by_text("somebody stopped it on the Ferry page").first).to_be_visible()
    visit.picture("stopped")

    page.get_by_role("button", name="Retry… run manual__now").click()
    expect(dialog).to_contain_text("with the same id and for the same topics and interval")
    visit.picture("retry-asking")
    dialog.get_by_role("button", name="Clear all tasks").click()
    expect(dialog.get_by_role("status")).to_contain_text("has cleared all tasks")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Stop… run manual__now")).to_be_visible()
    note = f"What somebody wrote\n\n{STOPPED}"
    stopped, noted, cleared = visit.changed()
    assert stopped == {"what": "manual__now", "dag": DAG, "state": "failed", "note": note}
    assert noted == {"what": "manual__now", "dag": DAG, "note": "What somebody wrote"}, "a second try that dies is not called stopped"
    assert cleared == {"what": "manual__now", "dag": DAG, "dry_run": False, "only_failed": False}


def test_a_run_that_has_ended_meanwhile_is_not_stopped(visit: Visit) -> None:
    page = visit.open("running", flow=FLOW, view="runs")
    page.get_by_role("button", name="Stop… run manual__now").click()
    page.route(re.compile("/dagRuns/manual__now$"), lambda route: route.fulfill(json={"state": "success", "note": None}))
    page.get_by_role("button", name="Stop the run").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("The run has ended meanwhile.")
    assert visit.changed() == []


def test_a_flow_without_transactions_says_what_a_stop_may_double(visit: Visit) -> None:
    page = visit.open("plain", flow=FLOW, view="runs")
    page.get_by_role("button", name="Stop… run manual__now").click()
    expect(page.get_by_role("dialog")).to_contain_text("B may have them twice")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Retry… run manual__died").click()
    expect(page.get_by_role("dialog")).to_contain_text("are copied again")
    page.get_by_role("button", name="Cancel").click()
    assert visit.changed() == []


@pytest.mark.parametrize("view", ["overview", "runs"])
def test_a_viewer_changes_nothing(visit: Visit, view: str) -> None:
    page = visit.open("running", "viewer", flow=FLOW, view=view)
    settled(page)
    expect(page.get_by_role("table", name="Last runs") if view == "runs" else page.get_by_role("article").first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^(Pause|Unpause|Stop|Retry)"))).to_have_count(0)


def test_what_airflow_refuses_is_told_in_the_dialog(visit: Visit) -> None:
    page = visit.open("running", flow=FLOW, view="runs")
    page.get_by_role("button", name="Stop… run manual__now").click()
    visit.become("running", "viewer")  # rights were taken away meanwhile
    visit.tolerate("403")
    page.get_by_role("button", name="Stop the run").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("You are not allowed to do this: Forbidden")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert visit.changed() == []


def test_the_keyboard_stops_a_run(visit: Visit) -> None:
    page = visit.open("running", flow=FLOW, view="runs")
    settled(page)
    reach(page, "Stop… run manual__now")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert visit.changed() == []
    page.keyboard.press("Enter")  # the focus is back on the button
    reach(page, "Stop the run")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("has marked the run as failed")
    reach(page, "Close")
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)
    assert [change["state"] for change in visit.changed()] == ["failed"]


@pytest.mark.parametrize("visit", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_on_a_phone_the_buttons_stand_in_the_cards(visit: Visit) -> None:
    page = visit.open("running", flow=FLOW, view="runs")
    expect(page.get_by_role("button", name="Stop… run manual__now")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.picture("runs-acts-phone")


def test_a_failover_is_planned_and_started(visit: Visit) -> None:
    page = visit.open("with_recovery", flow=FLOW, view="failover")
    card = page.get_by_role("article", name="Failover")
    expect(card).to_contain_text("nobody has started it yet")
    expect(page.get_by_text("ferry failover mm2.properties --flow 'A->B' --rehearse", exact=True)).to_be_visible()
    visit.picture("failover-idle")
    card.get_by_role("button", name="Show the plan").click()
    expect(card).to_contain_text("was to show the plan, and is over (success)")
    expect(card.get_by_role("list", name="Stages")).to_contain_text("skipped plan where each group continues")
    expect(card).to_contain_text("2 groups, 1 of them not exact, 1 cannot be written now.")
    expect(card).to_contain_text("Not on the other side: 40 offsets in 1 partition.")
    rows = card.get_by_role("table", name="Where groups continue").locator("tbody tr")
    expect(rows).to_have_count(4)
    for row, told in enumerate(
        (("A.orders-0", "5,500", "exact"), ("reads at most 40 again",), ("left alone: it is at 5600",), ("1 member",))
    ):
        for words in told:
            expect(rows.nth(row)).to_contain_text(words)
    visit.picture("failover-planned")
    card.get_by_role("button", name="Failover…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Until a person has confirmed its plan in Airflow it writes only copies of records")
    visit.picture("failover-asking")
    assert too_faint(page) == []
    dialog.get_by_role("button", name="Start the run").click()
    expect(dialog).to_contain_text("Run manual__1")
    dialog.get_by_role("button", name="Close").click()
    assert [(run["dag_id"], run["conf"]) for run in visit.posted()] == [(f"{DAG}.failover", {"dry_run": True}), (f"{DAG}.failover", {})]


def test_a_question_of_a_failover_leads_to_airflow(visit: Visit) -> None:
    page = visit.open("failing_over", "viewer", flow=FLOW, view="failover")
    answer = page.get_by_role("link", name="Read and answer it in Airflow")
    expect(answer).to_have_attribute("href", re.compile("/dags/ferry.A.B.failover/runs/manual__over/tasks/confirm/required_actions$"))
    expect(page.get_by_role("list", name="Stages").get_by_role("listitem")).to_have_count(6)
    expect(page.get_by_role("button", name=re.compile("Show the plan|…$"))).to_have_count(0)


def with_plan(page: Page, **answer: Any) -> list[Route]:
    """The calls for the plan, which are answered so."""
    asked: list[Route] = []
    page.route(re.compile("/xcomEntries/"), lambda route: (asked.append(route), route.fulfill(**answer)))
    return asked


def test_of_a_long_plan_the_page_says_how_much_it_shows(visit: Visit) -> None:
    with_plan(visit.page, json={"value": json.dumps({"document": document_of(made_up.recovery_plan(5_000))})})
    card = visit.open("failing_over", flow=FLOW, view="failover").get_by_role("article", name="Failover")
    expect(card).to_contain_text("5,001 groups, 5,000 of them not exact")
    expect(card).to_contain_text("The 200 shown of 15,001 rows")


def test_a_plan_that_airflow_keeps_elsewhere_is_a_link(visit: Visit) -> None:
    with_plan(visit.page, json={"value": "s3://bucket/ferry.A.B.failover/plan_groups"})
    page = visit.open("failing_over", flow=FLOW, view="failover")
    link = page.get_by_role("link", name="Read it in the log of its task")
    expect(link).to_have_attribute("href", re.compile("/dags/ferry.A.B.failover/runs/manual__over/tasks/plan_groups$"))


@pytest.mark.parametrize(("status", "again"), [(403, False), (404, False), (503, True)])
def test_what_airflow_refuses_is_not_asked_for_again(visit: Visit, status: int, again: bool) -> None:
    visit.tolerate(str(status))
    visit.page.clock.install()
    # That clock would end calls before an answer can come.
    visit.page.add_init_script("AbortSignal.timeout = () => new AbortController().signal")
    looks: list[Request] = []
    visit.page.on("requestfinished", lambda request: looks.append(request) if "/api/recovery" in request.url else None)
    asked = with_plan(visit.page, status=status, json={})
    with visit.page.expect_response(re.compile("/xcomEntries/")):
        page = visit.open("failing_over", flow=FLOW, view="failover")
    # The page looks for the DAGs as often as for what may be asked again.
    while len(looks) < 4:
        page.clock.run_for(1_000)
    settled(page)
    assert (len(asked) > 1) is again
