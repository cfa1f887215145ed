"""What a person changes on the page, in Airflow: the DAG is paused and unpaused, a run is stopped, and one that failed runs again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.page.contrast import too_faint
from tests.page.test_browser_actions import reach
from tests.page.views import FLOW, settled

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
    expect(page.get_by_text("task copy_records failed: somebody stopped the run on the Ferry page").first).to_be_visible()
    visit.picture("stopped")

    page.get_by_role("button", name="Retry… run manual__now").click()
    expect(dialog).to_contain_text("with the same id and for the same topics and interval")
    visit.picture("retry-asking")
    dialog.get_by_role("button", name="Clear all tasks").click()
    expect(dialog.get_by_role("status")).to_contain_text("has cleared all tasks")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Stop… run manual__now")).to_be_visible()
    note = f"What somebody wrote\n\n{STOPPED}"
    stopped, cleared = visit.changed()
    assert stopped == {"what": "manual__now", "dag": DAG, "state": "failed", "note": note}
    assert cleared == {"what": "manual__now", "dag": DAG, "dry_run": False, "only_failed": False}


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
    expect(card.get_by_role("table", name="Where groups continue").locator("tbody tr")).to_have_count(2)
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
