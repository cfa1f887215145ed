"""The page's views, as tests find them."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

VIEWS = ("overview", "topics", "coverage", "groups", "drift", "runs", "verify", "failover", "config")
FLOW = "A->B"


def tab(page: Page, name: str) -> Locator:
    """The tab of a view."""
    return page.get_by_role("tab", name=name.title(), exact=True)


def settled(page: Page) -> None:
    """Everything that is asked for has been answered."""
    expect(page.get_by_role("tablist")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^\s*Reading .*…"))).to_have_count(0)


def turn_to(page: Page, view: str) -> None:
    """Press the view's tab."""
    tab(page, view).click()
    expect(tab(page, view)).to_have_attribute("aria-selected", "true")
    settled(page)


def drawn(page: Page) -> None:
    """The charts are there, and not blank; those without a number say why."""
    expect(page.locator(".ferry figure:is(:has(canvas), :has(.empty))")).to_have_count(6)
    page.wait_for_function("""() => [...document.querySelectorAll(".ferry canvas")].every((canvas) =>
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0))""")
