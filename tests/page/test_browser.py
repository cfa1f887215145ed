"""The page in a browser: what an operator sees when all is well and when it is not, and how he goes on from there."""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.page.contrast import measured, too_faint
from tests.page.views import FLOW, VIEWS, drawn, settled, tab, turn_to

from ferry import __version__

if TYPE_CHECKING:
    from tests.page.browsing import FixtureServer, Visit

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.hacked='1'>"


def card(page: Page, flow: str) -> Locator:
    return page.get_by_role("article", name=f"Flow {flow}")


SEEN = {
    "healthy": ("Healthy", ("All 2 flows are healthy.", "8 topics, 24 partitions", "14.0 k records")),
    "lagging": (
        "Lagging",
        (
            "7 topics are more than 10,000 records behind",
            "behind by 10 h",
            "420 k",
            "k records copied; Airflow shows it as failed, because task check_limits failed",
        ),
    ),
    "following": (
        "Healthy",
        (
            "Following since",
            "It follows until",
            "; then no run is due: the flow has no schedule.",
            "40 records when read,",
            " s; the newest records were committed less than 0.1 s ago",
        ),
    ),
    "copying": ("", ("of 27,000 records (", "MB/s, about", "most left: orders-3 (", "…", "of what was there")),
    "ending": ("", ("this try has ended; 4,500 of 9,000 records (50%)", "1 topic")),
    "loss": (
        "Data lost",
        ("the source deleted 120 records that Ferry had not copied: payments-0 offsets 3,000 to 3,119", "See what is lost"),
    ),
    "paused": (
        "Paused",
        (
            "its DAG is paused, so no run starts",
            "nothing was copied yet",
            "run manual__first was queued",
            "Next: unpause the DAG in Airflow; a run that somebody starts waits until then",
        ),
    ),
    "new": ("Never ran", ("nothing was copied yet", "Next:", "as command", "79.0 k records", "No run yet")),
    "queued": ("Queued", ("run manual__next was queued", "8 topics", "2 of 2 flows have a queued run.")),
    "refused": ("Healthy", ("8 topics", "All 2 flows are healthy", "refused")),
    "missing": (
        "Records missing",
        (
            (
                "3,707 records missing in 2 topics: orders, users "
                "(somebody told Ferry to skip them, with ferry seed, so no run copies them; a backfill does, and copies nothing twice; "
                "if that was meant, do nothing: they count as missing until the source drops them)"
            ),
            "nothing besides the missing",
            "Backfill orders… (3,700 records)",
            "See what is missing in users",
        ),
    ),
    "failing": (
        "Failing",
        (
            "1 partition stopped (SourceDataLost): orders-2: the source dropped",
            "invoices-1 on A (open for 3 h, 800 records wait behind it)",
            "Not counted: 800 records behind an open transaction.",
            "the last verify found 7 differences",
        ),
    ),
    "unreachable": (
        "Cannot be read",
        (
            "cluster A (a.example:9092) did not answer",
            "check that the cluster is up",
            "It is unknown how far behind the flow is now, and whether records are missing. The page last read it 20 min",
            "8 topics",
            "unknown when last read, at ",
        ),
    ),
    "dropped": (
        "Healthy, but 1 topic is not copied",
        (
            "A has 400 records of it that no run copied",
            "Next: payments: put it back into the property topics, and the next run",
            "nothing in the topics that are copied",
        ),
    ),
    "held": (
        "1 group not synced",
        ("group billing, because it has 1 member on B (app)", "Next: if the members run there by mistake, stop them, "),
    ),
    "slow": ("Healthy", ("8 topics",)),
}


@pytest.mark.parametrize("scenario", SEEN)
def test_the_first_look_says_how_each_flow_is(visit: Visit, scenario: str) -> None:
    page = visit.open(scenario)
    if scenario == "slow":
        expect(card(page, FLOW).get_by_text("Not read yet")).to_be_visible()
        visit.picture("overview-slow-waiting")
        visit.end_first_reading()
    word, texts = SEEN[scenario]
    expect(card(page, FLOW)).to_contain_text(word)
    for text in texts:
        expect(page.locator("body")).to_contain_text(text)
    expect(page.locator("footer")).to_have_text(f"Ferry {__version__}, documentation")
    expect(page.locator("footer a")).to_have_attribute("href", re.compile("/ferry/docs/$"))
    if scenario == "unreachable":
        expect(card(page, "B->C")).to_contain_text("Healthy")
        expect(card(page, FLOW).get_by_text("did not answer within 10 s")).to_have_count(1)
    visit.picture(f"overview-{scenario}")
    assert too_faint(page) == []


@pytest.mark.parametrize(
    ("scenario", "text"),
    [("nothing", "You can see no flow"), ("config", "FERRY_CONFIG is not set")],
)
def test_without_flows_the_page_says_why(visit: Visit, scenario: str, text: str) -> None:
    page = visit.open(scenario)
    expect(page.locator("body")).to_contain_text(text)
    visit.picture(f"overview-{scenario}")
    assert too_faint(page) == []
    expect(page.get_by_text("The data below")).to_have_count(0)


@pytest.mark.parametrize("view", ["overview", "runs"])
def test_a_bar_shows_how_far_a_run_is_and_moves(visit: Visit, view: str) -> None:
    page = visit.open("copying", flow=FLOW, view=view)
    bar = page.get_by_role("progressbar", name="Run manual__copies")
    expect(bar).to_have_attribute(
        "aria-valuetext", re.compile(r"^\d+,000 of 27,000 records [(]\d+%[)], .* left; most left: orders-3 [(].*[)]")
    )
    assert (bar.get_attribute("aria-valuemin"), bar.get_attribute("aria-valuemax")) == ("0", "100")
    expect(bar).to_have_attribute("aria-valuenow", "88")  # 8,000 of 9,000: it moved there
    page.wait_for_function("document.querySelector('.live-bar > div').offsetWidth / document.querySelector('.live-bar').offsetWidth > 0.8")
    for width, theme in ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        visit.theme(theme)
        visit.picture(f"{view}-copying-{width}-{theme}")
        assert too_faint(page) == []
        assert page.evaluate(CUT) == []


def test_a_bar_goes_while_nobody_knows_how_far_the_run_is(visit: Visit) -> None:
    page = visit.open("copying", flow=FLOW, view="runs")
    bar = page.get_by_role("progressbar", name="Run manual__copies")
    expect(bar).to_be_visible()

    def away(route: Route) -> None:
        problem = {"error": "ClusterUnreachable", "message": "cluster B does not answer", "next_step": "wait"}
        route.fulfill(json={**route.fetch().json(), "problem": problem})

    page.route(re.compile("/api/progress"), away)
    expect(bar).to_have_count(0)
    page.unroute(re.compile("/api/progress"))
    expect(bar).to_be_visible()


def test_a_run_without_a_known_end_has_no_bar_that_says_how_far_it_is(visit: Visit) -> None:
    page = visit.open("following", flow=FLOW, view="runs")
    expect(page.get_by_text(re.compile(r"following: records are on the target after \d+\.\d s"))).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    page = visit.open("healthy", flow=FLOW)
    settled(page)
    expect(page.get_by_role("progressbar")).to_have_count(0)


# In a scenario where the view has something to tell.
TROUBLED = {
    "runs": "failing",
    "verify": "failing",
    "topics": "loss",
    "coverage": "healthy",
    "groups": "healthy",
    "drift": "healthy",
    "failover": "failing_over",
    "config": "healthy",
}
TOLD = {
    "runs": ("Records behind after each run", "partly failed", "Hangs: invoices-1 on A", "the cluster aborts the transaction"),
    "verify": ("differs", "altered", "the remote topic is compacted"),
    "topics": ("payments", "! 1 lost", "A.orders"),
    "coverage": ("partition 2", "loss", "A.payments", "Nothing is missing"),
    "groups": ("fraud-detection", "it has 2 members on B", "up to date"),
    "drift": ("retention.ms: 604800000 -> 259200000", "grow", "sync.topic.acls.enabled is false", "config.properties.exclude"),
    "failover": (
        "It waits for a person.",
        "write these groups?",
        "reads at most 40 again: records are read again",
        "40 offsets in 1 partition",
        "ask whether the groups shall be written",
    ),
    "config": ("orders, payments.*", "A->B.ferry.schedule", "${env:TRUST}", "[hidden]"),
}


@pytest.mark.parametrize("view", TROUBLED)
def test_each_view_shows_its_data_in_both_themes(visit: Visit, view: str) -> None:
    query = {"topic": "payments"} if view == "coverage" else {}
    page = visit.open(TROUBLED[view], flow=FLOW, view=view, **query)
    settled(page)
    expect(tab(page, view)).to_have_attribute("aria-selected", "true")
    for text in TOLD[view]:
        expect(page.get_by_role("tabpanel")).to_contain_text(text)
    if view == "runs":
        drawn(page)
    visit.picture(f"{view}-light")
    assert too_faint(page) == []
    visit.theme("dark")
    visit.picture(f"{view}-dark")
    assert too_faint(page) == []
    assert unnamed(page) == []


def unnamed(page: Page) -> list[str]:
    """What can be pressed or filled in and has no name for those who cannot see it."""
    script = """() => [...document.querySelectorAll("button, a, input, select, [role=tab], [role=link]")]
        .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length || one.title)).map((one) => one.outerHTML)"""
    found: list[str] = page.evaluate(script)
    return found


EMPTY = {
    "overview": "No run yet",
    "runs": "No run yet",
    "topics": "copies no topic yet",
    "coverage": "No topics yet",
    "groups": "no consumer groups",
    "drift": "Nothing differs",
    "verify": "has left a result",
    "failover": "Airflow has no DAG ferry.A.B.failover",
    "config": "topics to copy",
}


def test_a_new_flow_has_something_to_say_in_each_view(visit: Visit) -> None:
    page = visit.open("idle")
    assert EMPTY.keys() == set(VIEWS)
    for view, words in EMPTY.items():
        turn_to(page, view)
        expect(page.get_by_role("tabpanel")).to_contain_text(words)
        visit.picture(f"{view}-empty")
        assert too_faint(page) == []


def test_each_view_keeps_the_last_data_of_an_unreachable_cluster(visit: Visit) -> None:
    page = visit.open("unreachable", flow=FLOW, view="runs")
    table = page.get_by_role("table").first
    kept = {"verify": page.get_by_role("article").first, "coverage": page.get_by_role("group", name="partition 0")}
    for view in (name for name in VIEWS[1:] if name not in {"failover", "config"}):  # which read no cluster
        turn_to(page, view)
        told = page.get_by_role("tabpanel").get_by_role("alert").first
        expect(told).to_contain_text("ClusterUnreachable")
        expect(told).to_contain_text("was read 20 min")
        expect(kept.get(view, table)).to_be_visible()
        visit.picture(f"{view}-unreachable")
        assert too_faint(page) == []


def test_losses_stand_with_the_command_that_acknowledges_them(visit: Visit) -> None:
    page = visit.open("loss", flow=FLOW, view="runs")
    losses = page.get_by_role("table", name="Losses").locator("tbody tr")
    expect(losses).to_have_count(2)
    expect(losses.first).to_contain_text("3,000 to 3,119")
    expect(losses.first).to_contain_text("not yet")
    expect(page.get_by_text("ferry ack-loss mm2.properties --flow 'A->B'", exact=True).last).to_be_visible()
    page.get_by_role("table", name="Last runs").get_by_role("button").first.click()
    expect(page.get_by_text("payments-0 offsets 3,000 to 3,119: dropped")).to_be_visible()
    visit.picture("runs-loss")
    assert too_faint(page) == []


def test_the_theme_follows_airflow_and_the_system(visit: Visit) -> None:
    page = visit.open("failing", flow=FLOW, view="runs")
    settled(page)

    def ground() -> Any:
        return page.evaluate("getComputedStyle(document.querySelector('.ferry')).backgroundColor")

    bright = ground()
    visit.theme("dark")
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    dark = ground()
    assert dark != bright
    visit.theme("light")
    expect(page.locator("html")).not_to_have_class(re.compile(r"\bdark\b"))
    assert ground() == bright
    page.evaluate("document.documentElement.classList.add('dark')")  # Airflow's switch
    assert ground() == dark
    for entry in measured(page):
        assert entry["ratio"] >= entry["needed"], entry


def test_hostile_names_are_text(visit: Visit) -> None:
    page = visit.open("hostile")
    for view in (name for name in VIEWS if name not in {"failover", "config"}):  # which name no topic or group here
        turn_to(page, view)
        if view == "coverage":
            page.get_by_role("button", name=HOSTILE).click()
        closed = page.get_by_role("button", name=HOSTILE, expanded=False).or_(
            page.get_by_role("table", name="Last runs").get_by_role("button")
        )
        if closed.count():
            closed.first.click()
        settled(page)
        expect(page.get_by_role("tabpanel").get_by_text(HOSTILE).first).to_be_visible()
        if view == "groups":
            command = f"ferry explain mm2.properties --flow 'A->B' --group {quote(HOSTILE)}"
            expect(page.get_by_text(command)).to_be_visible()
        assert page.evaluate("window.hacked") is None
        assert page.locator(".ferry img").count() == 0
        visit.picture(f"{view}-hostile")


def test_a_session_that_ended_is_said(visit: Visit) -> None:
    visit.tolerate("401", "favicon.ico")
    page = visit.open("healthy", "anonymous")
    expect(page.locator("body")).to_contain_text("Not authenticated")
    page = visit.open("healthy", flow=FLOW)
    settled(page)
    visit.become("healthy", "anonymous")
    tab(page, "Topics").click()
    expect(page.get_by_text("You are not logged in any more.").first).to_be_visible()
    again = page.get_by_role("link", name="Log in again").first
    expect(again).to_have_attribute("href", re.compile("/api/v2/auth/login[?]next=http.*view%3Dtopics"))
    visit.picture("topics-logged-out")
    assert too_faint(page) == []


def test_a_server_that_is_gone_is_said_and_the_page_recovers(visit: Visit, fixture_server: FixtureServer) -> None:
    visit.tolerate("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
    page = visit.open("healthy", flow=FLOW, view="topics")
    expect(page.get_by_role("table", name="Topics")).to_be_visible()
    fixture_server.stop()
    try:
        page.get_by_role("columnheader", name="Topic", exact=True).get_by_role("button").click()
        expect(page.get_by_text("The server does not answer. Trying again.").first).to_be_visible()
        visit.picture("topics-server-gone")
    finally:
        fixture_server.start()
    expect(page.get_by_role("columnheader", name="Topic", exact=True)).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_text("The server does not answer. Trying again.")).to_have_count(0)


def test_an_answer_that_was_cut_off_is_no_answer(visit: Visit) -> None:
    page = visit.page
    page.route(re.compile("/api/overview"), lambda route: route.fulfill(body='{"flows": [', content_type="application/json"))
    visit.open("healthy", flow=FLOW, view="topics")
    expect(page.get_by_text("The server does not answer. Trying again.").first).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("table", name="Topics")).to_be_visible()


PHONE = {"viewport": {"width": 390, "height": 664}}
# What Airflow's own navigation leaves of such a screen.
IN_AIRFLOW = {"viewport": {"width": 286, "height": 664}}
# What is wider than its place: somebody would have to move it sideways, or never see its end.
CUT = """() => [document.documentElement, ...document.querySelectorAll(".ferry, .ferry *")]
    .filter((one) => one.checkVisibility() && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1
        && (one === document.documentElement || getComputedStyle(one).overflowX !== "visible"))
    .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize(
    ("scenario", "theme"), [("failing", "light"), ("loss", "dark"), ("unreachable", "light"), ("hostile", "dark"), ("forty", "light")]
)
@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_a_small_screen_shows_every_view_and_cuts_nothing(visit: Visit, scenario: str, theme: str) -> None:
    page = visit.open(scenario)
    visit.theme(theme)
    for view in VIEWS:
        turn_to(page, view)
        opener = page.get_by_role("tabpanel").locator("button[aria-expanded=false]")
        if opener.count():
            opener.first.click()
            settled(page)
        visit.picture(f"{view}-{scenario}-small-{theme}")
        assert page.evaluate(CUT) == [], view
        assert too_faint(page) == [], view


@pytest.mark.parametrize("visit", [IN_AIRFLOW], indirect=True)
def test_on_a_small_screen_every_tab_is_in_sight(visit: Visit) -> None:
    page = visit.open("failing", flow=FLOW, view="verify")
    tabs = [tab(page, view).bounding_box() for view in VIEWS]
    assert len({box["y"] for box in tabs if box}) <= 3, "the tabs leave room for the view"
    for view in VIEWS:
        expect(tab(page, view)).to_be_in_viewport(ratio=0.95)  # its place is rounded to pixels


ANSWERS = {
    "failing": ("✕ Failing", "588 records", "the last verify found 7 differences", "note what is lost (ferry ledger"),
    "missing": ("◌ Records missing", "nothing", "3,707 records missing in 2 topics: orders, users", "Backfill orders…"),
    "unreachable": ("⌁ Cannot be read", "did not answer within 10 s", "Next: check that the cluster is up", "The page last read it"),
}


@pytest.mark.parametrize("scenario", ANSWERS)
@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_the_first_small_screen_says_how_it_is_and_what_to_do(visit: Visit, scenario: str) -> None:
    page = visit.open(scenario)
    for words in ANSWERS[scenario]:
        expect(card(page, FLOW).get_by_text(words).first).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("group", name="Clusters and flows")).to_be_hidden()


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_on_a_small_screen_a_row_is_a_card_with_its_number_second(visit: Visit) -> None:
    page = visit.open("failing", flow=FLOW, view="topics")
    row = page.get_by_role("table", name="Topics").locator("tbody tr").first
    expect(row).to_be_visible()
    cells = {cell.get_attribute("data-label"): cell.bounding_box() for cell in row.locator("td[data-label]").all()}
    places = sorted((box["y"], box["x"], label) for label, box in cells.items() if box)
    assert [label for *_, label in places][:2] == ["Topic", "Behind"]
    sorting = page.get_by_role("columnheader", name="Topic", exact=True)
    sorting.get_by_role("button").click()
    expect(sorting).to_have_attribute("aria-sort", "ascending")
