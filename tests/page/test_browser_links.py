"""What one takes along from the page: a link that leads another person to the same place, and the rows of a table as a file."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.page.test_browser_actions import reach
from tests.page.views import FLOW, settled, tab

if TYPE_CHECKING:
    from tests.page.browsing import Visit

pytestmark = pytest.mark.browser


def asked(page: Page) -> dict[str, str]:
    """What the address says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def first_topic(page: Page) -> str:
    return page.get_by_role("table", name="Topics").locator("tbody tr td").first.inner_text().strip()


def test_a_link_leads_to_the_same_search_and_order(visit: Visit) -> None:
    page = visit.open("many", flow=FLOW, view="topics")
    page.get_by_role("searchbox").fill("topic-19")
    expect(page.get_by_text("1 to 50 of 100")).to_be_visible()
    page.get_by_role("columnheader", name="Topic", exact=True).get_by_role("button").click()
    expect(page.get_by_role("table", name="Topics").locator("tbody tr td").first).to_have_text("topic-1900")
    assert asked(page) == {"flow": FLOW, "view": "topics", "search": "topic-19", "sort": "topic"}
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("topic-19")
    expect(page.get_by_text("1 to 50 of 100")).to_be_visible()
    assert first_topic(page) == "topic-1900"
    page.get_by_role("button", name="topic-1900", exact=True).click()
    expect(page.get_by_role("table", name="Partitions of topic-1900")).to_be_visible()
    assert asked(page)["search"] == "topic-19", "opening a topic ends no search"
    tab(page, "Groups").click()
    settled(page)
    assert asked(page) == {"flow": FLOW, "view": "groups"}, "a search belongs to its view"
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("topic-19")


def test_a_link_leads_to_the_same_days(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="runs", days="30")
    expect(page.get_by_role("combobox", name="Last")).to_have_value("30")
    page.get_by_role("combobox", name="Last").select_option("1")
    expect(page.get_by_role("combobox", name="Last")).to_have_value("1")
    assert asked(page)["days"] == "1"
    visit.become("healthy")
    page.goto(page.url.replace("days=1", "days=99999"))
    expect(page.get_by_role("combobox", name="Last")).to_have_value("7")


def test_a_link_leads_to_the_backfill_of_a_range(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="coverage", topic="orders")
    page.get_by_role("button", name="Backfill… partition 0, 0 to 2,499").click()
    expect(page.get_by_role("dialog")).to_contain_text("2,500 offsets")
    assert asked(page) == {"flow": FLOW, "view": "coverage", "topic": "orders", "range": "0.0"}
    page.reload()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2,500 offsets")
    dialog.get_by_role("button", name="Cancel").click()
    assert "range" not in asked(page)

    link = f"{page.url}&range=all"
    visit.become("healthy", "viewer")
    page.goto(link)
    expect(page.get_by_text("The range of this link is not offered")).to_be_visible()
    expect(dialog).to_have_count(0)
    visit.become("healthy")
    page.goto(link)
    expect(dialog).to_contain_text("2 ranges")
    dialog.get_by_role("button", name="Start the run").click()
    expect(dialog).to_contain_text("has succeeded.")
    dialog.get_by_role("button", name="Close").click()
    page.goto(link)
    expect(page.get_by_text("The range of this link is not offered")).to_be_visible()
    visit.picture("coverage-link-is-over")


def saved(page: Page, name: str, directory: Path) -> Path:
    """The file that a button gives."""
    with page.expect_download() as given:
        page.get_by_role("button", name=name, exact=True).click()
    path = directory / given.value.suggested_filename
    given.value.save_as(path)
    return path


def test_the_rows_of_a_table_are_saved(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("many", flow=FLOW, view="topics")
    expect(page.get_by_text("The 50 shown of 2,000 rows as")).to_be_visible()
    visit.picture("topics-export")
    path = saved(page, "Topics as CSV", tmp_path)
    assert re.fullmatch(r"ferry-topics-\d{4}-\d\d-\d\dt\d\d-\d\d-\d\d\.csv", path.name)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (len(rows), rows[0]["topic"], rows[0]["remote_topic"], rows[0]["partitions"]) == (50, "topic-1999", "A.topic-1999", "2")
    found: list[dict[str, Any]] = json.loads(saved(page, "Topics as JSON", tmp_path).read_text())
    assert [row["topic"] for row in found] == [row["topic"] for row in rows]
    assert found[0]["partitions"] == 2

    tab(page, "Runs").click()
    settled(page)
    expect(page.get_by_text("The 8 shown of 50 rows as")).to_be_visible()
    page.get_by_role("button", name="Show 50 runs").click()
    expect(page.get_by_text(re.compile("^50 rows as"))).to_be_visible()
    reach(page, "Last runs as CSV")
    with page.expect_download() as given:
        page.keyboard.press("Enter")
    given.value.save_as(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert json.loads(first["topics"])[0]["topic"] == "audit.log", "what is nested is JSON"


def test_no_cell_of_a_file_is_a_formula(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("formulas", flow=FLOW, view="groups")
    path = saved(page, "Groups as CSV", tmp_path)
    with path.open(newline="") as file:
        names = [row["group"] for row in csv.DictReader(file)]
    wanted = ["'+1", "'-1", "'=1+1", "'@SUM(1)", 'a "quoted", name']
    assert sorted(names) == sorted(wanted)
    assert "=1+1" in [row["group"] for row in json.loads(saved(page, "Groups as JSON", tmp_path).read_text())]


def test_an_empty_table_has_nothing_to_save(visit: Visit) -> None:
    page = visit.open("idle", flow=FLOW, view="topics")
    settled(page)
    expect(page.get_by_role("button", name=re.compile("as CSV"))).to_have_count(0)


def test_a_property_is_found_with_its_value_and_its_place(visit: Visit) -> None:
    page = visit.open("healthy", flow=FLOW, view="config")
    table = page.get_by_role("table", name="Properties")
    row = table.get_by_role("row", name=re.compile("^topics A->B"))
    expect(row).to_contain_text("orders, payments.*")
    expect(row).to_contain_text("line 10")
    reach(page, "Search properties")
    page.keyboard.type("truststore")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table).to_contain_text("${env:TRUST}")
    expect(page).to_have_url(re.compile("search=truststore"))
    page.get_by_role("searchbox").fill("")
    page.get_by_label("only what the file sets").check()
    expect(page.get_by_text(re.compile("^The 9 shown of"))).to_be_visible()
    visit.picture("config-given")
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.get_by_text("No such property.")).to_be_visible()
