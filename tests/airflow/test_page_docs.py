"""Pages of the documentation as HTML, and links to them in logs."""

from __future__ import annotations

import pytest

from ferry.airflow.page_docs import DOCS, linked, page_as_html
from ferry.errors import all_errors

pytestmark = pytest.mark.airflow

LOG = "https://airflow.example/base/dags/ferry.A.B/runs/manual__1/tasks/plan_run?try_number=1"


def test_a_page_has_its_title_tables_and_headings_that_links_find() -> None:
    shown = page_as_html(
        "# Exit codes, and `more`\n\n<!-- not run -->\n| a | b |\n|---|---|\n| 1 | [x](cli.md#run-report) |\n\n## What was tried\n"
    )
    assert "<title>Exit codes, and `more` - Ferry</title>" in shown
    assert '<h1 id="exit-codes-and-more">' in shown
    assert '<h2 id="what-was-tried">' in shown
    assert '<td><a href="cli.md#run-report">x</a></td>' in shown


def test_every_page_that_an_error_names_becomes_a_link_to_one_that_is_there() -> None:
    named = {kind.next_step for kind in all_errors() if "docs/" in kind.next_step}
    assert len(named) > 2
    for step in named:
        found = linked(step, LOG)
        page = found.partition("https://airflow.example/base/ferry/docs/")[2].partition(".md")[0]
        assert (DOCS / f"{page}.md").is_file(), found


@pytest.mark.parametrize("url", ["", "None", "/dags/ferry.A.B/runs/1"])
def test_without_an_address_of_airflow_the_text_stays(url: str) -> None:
    assert linked("see docs/cli.md", url) == "see docs/cli.md"
