"""The tables of `docs/from-mirrormaker.md`: one row for every name of MM2's that is no property, between two comments of that page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.docs.between import between
from tools.docs.mirrormaker_names import SECTIONS, Name

PAGE = Path("docs/from-mirrormaker.md")
BEGIN, END = "<!-- names: begin -->", "<!-- names: end -->"
# Configs of the tests, each with three comments: what is in it, its source, and what Ferry does.
PUBLISHED = Path("tests/imports/published")
PUBLISHED_BEGIN, PUBLISHED_END = "<!-- published: begin -->", "<!-- published: end -->"


def names() -> Iterator[Name]:
    """Every row, in the order of the page."""
    for rows in SECTIONS.values():
        yield from rows


def tables() -> str:
    """All tables, as Markdown."""
    return "\n".join(_table(title, rows) for title, rows in SECTIONS.items())


def page() -> str:
    """The whole page, with the current tables."""
    return between(between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables()), PUBLISHED_BEGIN, PUBLISHED_END, _published())


def _published() -> str:
    rows = ["| Config | Source | Ferry |", "|---|---|---|"]
    for path in sorted(PUBLISHED.glob("*.properties")):
        what, source, verdict = (line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines()[:3])
        rows.append(f"| {what} | {source.removeprefix('source: ')} | {verdict.removeprefix('verdict: ')} |")
    return "\n".join(rows) + "\n"


def _table(title: str, rows: tuple[Name, ...]) -> str:
    cells = [(row.name if " " in row.name else f"`{row.name}`", row.verdict.value, row.what) for row in rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]
    return f"### {title}\n\n| Name | Ferry | |\n|---|---|---|\n" + "\n".join(lines) + "\n"
