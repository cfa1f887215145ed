"""Puts tables into a page that people write, between two comments of it."""

from __future__ import annotations


def between(page: str, begin: str, end: str, tables: str) -> str:
    """`page` with `tables` between the comments `begin` and `end`. ValueError if it lacks them."""
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page lacks {begin} and {end}")
    return f"{before}{begin}\n\n{tables}\n{end}{after}"
