"""What an operator does on the page: he sorts, searches and pages, opens what interests him, has gaps closed, by mouse or by keyboard."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect
from tests.page.contrast import too_faint
from tests.page.views import FLOW, VIEWS, drawn, settled, tab

if TYPE_CHECKING:
    from tests.page.browsing import Visit

pytestmark = pytest.mark.browser

DAG = "ferry.A.B"


def heads(page: Page) -> list[str]:
    return [text.strip() for text in page.get_by_role("table", name="Topics").locator("tbody tr td:first-child").all_inner_texts()]


def test_two_thousand_topics_are_sorted_searched_and_paged(visit: Visit) -> None:
    page = visit.open("many", flow=FLOW, view="topics")
    expect(page.get_by_text("1 to 50 of 2,000")).to_be_visible()
    assert heads(page)[0] == "topic-1999", "what lags most comes first"
    table = page.get_by_role("table", name="Topics")
    visit.picture("topics-many")

    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("51 to 100 of 2,000")).to_be_visible()
    expect(table.locator("tbody tr td:first-child").first).to_have_text("topic-1949")
    assert page.locator("tr").count() <= 100
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("1 to 50 of 2,000")).to_be_visible()
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()

    by_topic = table.get_by_role("columnheader", name="Topic", exact=True)
    by_topic.get_by_role("button").click()
    expect(by_topic).to_have_attribute("aria-sort", "ascending")
    expect(table.locator("tbody tr td:first-child").first).to_have_text("topic-0000")
    assert all(one < other for one, other in pairwise(heads(page)))
    by_topic.get_by_role("button").click()
    expect(by_topic).to_have_attribute("aria-sort", "descending")
    expect(table.locator("tbody tr td:first-child").first).to_have_text("topic-1999")

    page.get_by_role("searchbox").fill("topic-19")
    expect(page.get_by_text("1 to 50 of 100")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_role("searchbox").fill("nowhere")
    expect(page.get_by_text("No topic has “nowhere” in its name.")).to_be_visible()
    visit.picture("topics-nothing-found")
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_text("1 to 50 of 2,000")).to_be_visible()
    tab(page, "Coverage").click()
    settled(page)
    assert page.locator("li").count() <= 300, "a list of all topics would be too long"
    tab(page, "Groups").click()
    expect(page.get_by_text("1 to 50 of 2,000")).to_be_visible()


def test_a_topics_partitions_open_below_it(visit: Visit) -> None:
    page = visit.open("failing", flow=FLOW, view="topics")
    row = page.get_by_role("button", name="orders", exact=True)
    expect(row).to_have_attribute("aria-expanded", "false")
    row.click()
    expect(row).to_have_attribute("aria-expanded", "true")
    table = page.get_by_role("table", name="Partitions of orders")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(page.get_by_text("the source dropped offsets 100 to 140, which were not copied")).to_be_visible()
    visit.picture("topics-open")
    page.reload()
    expect(table).to_be_visible()
    row.click()
    expect(table).to_have_count(0)


def test_coverage_shows_what_became_of_each_offset(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="coverage", topic="payments")
    pieces = {
        0: ["copied 0 to 2,999", "loss 3,000 to 3,119", "copied 3,120 to 8,999", "ahead 9,000 to 9,039"],
        1: ["foreign 0 to 1,999", "copied 2,000 to 8,999", "ahead 9,000 to 9,039"],
        2: ["copied 0 to 39", "skipped 40", "copied 41 to 8,999", "ahead 9,000 to 9,039"],
    }
    for partition, names in pieces.items():
        drawn = page.get_by_role("group", name=f"partition {partition}").get_by_role("img")
        expect(drawn).to_have_count(len(names))
        assert [entry.get_attribute("aria-label") for entry in drawn.all()] == names
    seen = page.get_by_role("img", name="skipped 40").evaluate(
        "(piece) => { const at = piece.getBoundingClientRect(); return document.elementFromPoint(at.x + at.width / 2, at.y + 9) === piece }"
    )
    assert seen, "a single record is to be seen too"
    page.get_by_role("button", name="clicks", exact=True).click()
    expect(page.get_by_role("group", name="partition 0").get_by_role("img", name="backfilled 0 to 3,999")).to_be_visible()
    assert "topic=clicks" in page.url
    visit.picture("coverage-backfilled")
    page.go_back()
    expect(page.get_by_role("group", name="partition 0").get_by_role("img", name="loss 3,000 to 3,119")).to_be_visible()


def test_a_gap_is_closed_from_the_page(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="coverage", topic="orders")
    gap = page.get_by_role("group", name="partition 0").get_by_role("img", name="missing 0 to 2,499")
    expect(gap).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Backfill"))).to_have_count(3)
    visit.picture("coverage-missing")
    page.get_by_role("button", name="Backfill… partition 0, 0 to 2,499").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2,500 offsets")
    visit.picture("backfill-asking")
    assert too_faint(page) == []
    visit.theme("dark")
    visit.picture("backfill-asking-dark")
    assert too_faint(page) == []
    dialog.get_by_role("button", name="Start the run").click()
    expect(dialog).to_contain_text("has succeeded.")
    visit.picture("backfill-ended")
    expect(
        page.get_by_role("group", name="partition 0", include_hidden=True).locator("[aria-label='backfilled 0 to 2,499']")
    ).to_have_count(1)
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("Nothing is missing")).to_be_visible()
    expect(gap).to_have_count(0)
    visit.picture("coverage-closed")

    (run,) = visit.posted()
    assert (run["dag_id"], run["conf"]) == ("ferry.A.B", {"bound": "interval", "topics": ["orders"]})
    begin, end = (datetime.fromisoformat(run[name]) for name in ("data_interval_start", "data_interval_end"))
    assert end - begin == timedelta(minutes=2_500)
    assert datetime.now(UTC) - begin < timedelta(minutes=9_001)


def test_a_backfill_that_would_be_refused_is_not_offered(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="coverage", topic="users")
    expect(page.get_by_text("the remote topic is compacted")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^Backfill"))).to_have_count(0)
    visit.picture("coverage-refused")


def test_a_viewer_sees_everything_and_starts_nothing(visit: Visit) -> None:
    page = visit.open("healthy", "viewer", flow=FLOW, view="coverage", topic="orders")
    expect(page.get_by_role("img", name="missing 0 to 2,499")).to_be_visible()
    expect(page.get_by_text("You may not start runs of ferry.A.B")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Backfill"))).to_have_count(0)
    visit.picture("coverage-viewer")


def test_a_refusal_of_airflow_is_told_in_the_dialog(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="coverage", topic="orders")
    page.get_by_role("button", name=re.compile("^Backfill")).last.click()
    visit.become("healthy", "viewer")  # rights were taken away meanwhile
    visit.tolerate("403")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("You are not allowed to do this: Forbidden")
    visit.picture("backfill-forbidden")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert visit.posted() == []


def test_a_backfill_that_runs_stands_where_its_buttons_were(visit: Visit) -> None:
    page = visit.open("filling", flow=FLOW, view="coverage", topic="orders")
    expect(page.get_by_role("img", name="missing 0 to 2,499")).to_be_visible()
    expect(page.get_by_text(re.compile("Run manual__colleague copies what is missing. It is running, started .* ago."))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Backfill"))).to_have_count(0)
    visit.picture("coverage-filling")
    page.get_by_role("button", name="users", exact=True).click()
    expect(page.get_by_text("the remote topic is compacted")).to_have_count(1)
    expect(page.get_by_text("copies what is missing")).to_have_count(0)


@pytest.mark.parametrize(
    ("view", "button", "dag"), [("overview", "Run now", DAG), ("runs", "Run now", DAG), ("verify", "Verify now", f"{DAG}.verify")]
)
def test_a_run_is_started_from_the_page(visit: Visit, view: str, button: str, dag: str) -> None:
    page = visit.open("healthy", flow=FLOW, view=view)
    settled(page)
    page.get_by_role("button", name=button).first.click()
    expect(page.get_by_role("link", name="manual__0")).to_have_attribute("href", re.compile(f"/dags/{dag}/runs/manual__0$"))
    expect(page.get_by_text("has succeeded")).to_be_visible()
    visit.picture(f"started-{view}")
    (run,) = visit.posted()
    assert (run["dag_id"], run["conf"], run["note"]) == (dag, {}, "Started from the Ferry page")


@pytest.mark.parametrize(("view", "button"), [("overview", "Run now"), ("runs", "Run now"), ("verify", "Verify now")])
def test_a_viewer_starts_no_run(visit: Visit, view: str, button: str) -> None:
    page = visit.open("healthy", "viewer", flow=FLOW, view=view)
    settled(page)
    expect(page.get_by_role("button", name=button)).to_have_count(0)


@pytest.mark.parametrize("view", ["overview", "topics"])
def test_an_error_goes_when_it_is_read_again(visit: Visit, view: str) -> None:
    page = visit.open("unreachable", flow=FLOW, view=view)
    expect(page.get_by_text("did not answer within 10 s").first).to_be_visible()
    visit.picture(f"read-again-{view}")
    page.get_by_role("alert").get_by_role("button", name="Read again").click()
    expect(page.get_by_text("did not answer within 10 s")).to_have_count(0)
    expect(page.get_by_role("button", name="Read again").first).to_be_visible()


def test_the_next_step_of_a_gap_is_the_button_that_closes_it(visit: Visit) -> None:
    page = visit.open("missing")
    card = page.get_by_role("article", name=f"Flow {FLOW}")
    expect(card.get_by_text("3,707 records")).to_have_count(1)
    expect(card.get_by_text("ferry backfill mm2.properties")).to_be_hidden()
    reach(page, "as command")
    page.keyboard.press("Enter")
    expect(card.get_by_text("ferry backfill mm2.properties --flow 'A->B' --topic orders")).to_be_visible()
    assert too_faint(page) == []
    page.keyboard.press("Shift+Tab")
    expect(card.get_by_role("button", name="Backfill orders…")).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Backfill orders")
    expect(dialog).to_contain_text("3,700 offsets")
    page.reload()
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile("view=coverage&topic=orders$"))
    page.go_back()
    card.get_by_role("button", name="Backfill orders…").click()
    dialog.get_by_role("button", name="Start the run").click()
    expect(dialog).to_contain_text("has succeeded.")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Nothing is missing")).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)
    (run,) = visit.posted()
    assert run["conf"] == {"bound": "interval", "topics": ["orders"]}


def test_who_may_start_no_run_is_told_whom_to_ask(visit: Visit) -> None:
    page = visit.open("missing", "viewer")
    expect(page.get_by_text("Next: ask somebody who may start runs of ferry.A.B for a backfill of orders")).to_be_visible()
    expect(page.get_by_role("button", name="Backfill")).to_have_count(0)
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.get_by_role("img", name="missing 0 to 2,499")).to_be_visible()


def test_a_copied_command_is_called_copied_and_another_one_is_selected(visit: Visit) -> None:
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.open("new")
    page.get_by_text("as command").click()
    button = page.get_by_role("button", name="Copy", exact=True)
    button.click()
    expect(page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    command = "ferry run mm2.properties --flow 'A->B'"
    assert page.evaluate("navigator.clipboard.readText()") == command
    expect(button).to_be_visible()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")  # as without TLS
    button.click()
    expect(page.get_by_role("button", name="Selected: now copy it")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == command
    visit.picture("overview-selected")


def rows(page: Page) -> list[str]:
    return page.get_by_role("table", name="Flows").locator("tbody tr:not(.detail) td:first-child").all_inner_texts()


def test_many_flows_are_rows_with_the_ill_ones_first(visit: Visit) -> None:
    page = visit.open("forty")
    table = page.get_by_role("table", name="Flows")
    expect(table.locator("tbody tr:not(.detail)")).to_have_count(40)
    expect(page.get_by_role("status").first).to_have_text("6 of 40 flows need attention.")
    ill = ["store-31", "store-11", "store-23", "store-17", "store-29", "store-05"]
    assert rows(page)[:7] == [f"{name}->hub" for name in (*ill, "store-00")]
    expect(table.locator(".why")).to_have_count(6)
    expect(table.locator(".why").first).to_contain_text("cluster A (a.example:9092) did not answer within 10 s")
    assert too_faint(page) == []
    visit.theme("dark")
    visit.picture("overview-forty-dark")
    assert too_faint(page) == []

    reach(page, "Behind")
    page.keyboard.press("Enter")
    expect(table.get_by_role("columnheader", name="Behind")).to_have_attribute("aria-sort", "descending")
    assert rows(page)[:4] == ["store-05->hub", "store-29->hub", "store-23->hub", "store-11->hub"]
    assert rows(page)[-1] == "store-31->hub", "nobody knows how far it is behind"
    reach(page, "store-05->hub")
    page.keyboard.press("Enter")
    expect(tab(page, "Runs")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_label("Flow")).to_have_value("store-05->hub")
    page.go_back()
    table.get_by_role("button", name="Run now").first.click()
    expect(page.get_by_role("link", name="manual__0")).to_be_visible()


def test_runs_stand_before_charts(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="runs")
    drawn(page)
    table = page.get_by_role("table", name="Last runs")
    places = [found.bounding_box() for found in (page.get_by_role("button", name="Run now"), table, page.locator("canvas").first)]
    assert [box["y"] for box in places if box] == sorted(box["y"] for box in places if box)
    expect(table.locator("tbody tr")).to_have_count(8)
    page.get_by_role("button", name="Show 50 runs").click()
    expect(table.locator("tbody tr")).to_have_count(50)


def test_charts_draw_speed_by_topic_and_no_run_at_zero(visit: Visit) -> None:
    page = visit.open("broken", flow=FLOW, view="runs")
    drawn(page)
    speed = page.get_by_role("figure", name="Records per second")
    expect(speed).to_have_attribute("aria-label", re.compile("^Records per second: from 1,080 to 3,560, last "))
    expect(page.get_by_role("list", name="Marks in the charts")).to_have_text("a run failed")
    expect(page.get_by_role("figure", name="Age of records when they were copied")).to_have_attribute(
        "aria-label", re.compile("from 25 min")
    )
    page.get_by_label("Speed by").select_option("topic")
    for topic in ("users", "shipments", "payments", "orders", "invoices", "other topics"):
        expect(speed.locator(".u-label", has_text=topic)).to_be_visible()
    expect(page.get_by_role("figure", name="Bytes per second")).to_have_attribute(
        "aria-label", re.compile("users from .*kB to .*; shipments from")
    )
    visit.picture("runs-by-topic")
    assert too_faint(page) == []


def test_a_chart_without_a_number_says_why(visit: Visit) -> None:
    page = visit.open("quiet", flow=FLOW, view="runs")
    expect(page.get_by_text("No run has copied records in this time.")).to_have_count(2)
    expect(page.get_by_text("No run in this time has copied records whose age is known.")).to_be_visible()
    expect(page.get_by_text("No run in this time has left records that the source will delete.")).to_be_visible()
    drawn(page)
    expect(page.locator("canvas")).to_have_count(2)
    visit.picture("runs-quiet")
    assert too_faint(page) == []


def test_charts_mark_failures_and_losses(visit: Visit) -> None:
    page = visit.open("loss", flow=FLOW, view="runs")
    marks = page.get_by_role("list", name="Marks in the charts")
    expect(marks).to_have_text("records were lost")
    drawn(page)
    visit.picture("runs-marks")
    visit.become("failing", "admin")
    page.reload()
    expect(marks).to_have_text("a run failed")


def test_the_keyboard_is_enough(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW)
    settled(page)
    page.keyboard.press("Tab")
    expect(tab(page, "Overview")).to_be_focused()
    names = page.get_by_role("tab").all_inner_texts()
    assert sorted(names) == sorted(view.title() for view in VIEWS)
    for name in names[1:]:
        page.keyboard.press("ArrowRight")
        expect(tab(page, name)).to_be_focused()
        expect(tab(page, name)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Home")
    expect(tab(page, names[0])).to_be_focused()
    for _ in range(names.index("Coverage")):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="orders", exact=True)).to_be_visible()
    reach(page, "orders")
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="missing 0 to 2,499")).to_be_visible()
    reach(page, "Backfill")
    opener = page.evaluate_handle("document.activeElement")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)  # the browser hides it before the page takes it away
    assert page.evaluate("(opener) => document.activeElement === opener", opener), "the focus is back where it was"
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    reach(page, "Start the run")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("has succeeded.")
    reach(page, "Close")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert len(visit.posted()) == 1


def reach(page: Page, words: str) -> None:
    """Press Tab until something with these words has the focus; it must be seen that it has."""
    for _ in range(80):
        found = page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent")
        if found.strip().startswith(words):
            seen = page.evaluate(
                "(() => { const of = getComputedStyle(document.activeElement); return of.outlineStyle + of.outlineWidth })()"
            )
            assert seen not in {"none0px", "none3px"}, f"nobody sees that {words} has the focus"
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{words} cannot be reached by Tab")
