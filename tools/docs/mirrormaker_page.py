"""The tables of `docs/from-mirrormaker.md`: one row for every name of MM2's, between two comments of that page.

The rows come from the registry of properties and from `mirrormaker_names`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.docs.between import between
from tools.docs.mirrormaker_names import SECTIONS, Name, Verdict

from ferry.config.registry.flows import CHECKPOINTS, CONNECT, FILTERS, HEARTBEATS, PROPOSED, REMOVED, SOURCE, WITHOUT_EFFECT
from ferry.config.registry.property import Effect, Property
from ferry.config.registry.workers import FILE

PAGE = Path("docs/from-mirrormaker.md")
BEGIN, END = "<!-- names: begin -->", "<!-- names: end -->"
# Configs of the tests, each with three comments: what is in it, its source, and what Ferry does.
PUBLISHED = Path("tests/imports/published")
PUBLISHED_BEGIN, PUBLISHED_END = "<!-- published: begin -->", "<!-- published: end -->"

_PROPERTIES: Mapping[str, tuple[Property, ...]] = {
    "Properties of the file": FILE,
    "Properties of records and topics": SOURCE,
    "Properties of checkpoints and groups": CHECKPOINTS,
    "Properties of heartbeats": HEARTBEATS,
    "Properties that name classes": FILTERS,
    "Properties without effect": WITHOUT_EFFECT,
    "Properties inherited from Connect": CONNECT,
    "Properties that MM2 no longer has": REMOVED,
    "Properties that MM2 never had": PROPOSED,
}
VERDICTS = {
    Effect.HONOURED: Verdict.HONOURED,
    Effect.RENAMED: Verdict.HONOURED,
    Effect.NO_EFFECT: Verdict.NO_EFFECT,
    Effect.REFUSED: Verdict.REFUSED,
}


def names() -> Iterator[Name]:
    """Every row, in the order of the page."""
    for rows in _sections().values():
        yield from rows


def tables() -> str:
    """All tables, as Markdown."""
    return "\n".join(_table(title, rows) for title, rows in _sections().items())


def page() -> str:
    """The whole page, with the current tables."""
    return between(between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables()), PUBLISHED_BEGIN, PUBLISHED_END, _published())


def _published() -> str:
    rows = ["| Config | Source | Ferry |", "|---|---|---|"]
    for path in sorted(PUBLISHED.glob("*.properties")):
        what, source, verdict = (line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines()[:3])
        rows.append(f"| {what} | {source.removeprefix('source: ')} | {verdict.removeprefix('verdict: ')} |")
    return "\n".join(rows) + "\n"


def _sections() -> dict[str, tuple[Name, ...]]:
    return {**SECTIONS, **{title: tuple(map(_of_property, found)) for title, found in _PROPERTIES.items()}}


def _of_property(known: Property) -> Name:
    what = known.meaning if known.effect is Effect.HONOURED else known.why
    if known.effect is Effect.REFUSED:
        what = f"`{known.meaning}: {known.why}`"
    if known.effect is Effect.RENAMED:
        what = f"as `{known.successor}`. {known.why}"
    return Name(known.name, VERDICTS[known.effect], what)


def _table(title: str, rows: tuple[Name, ...]) -> str:
    cells = [(row.name if " " in row.name else f"`{row.name}`", row.verdict.value, row.what) for row in rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells]
    return f"### {title}\n\n| Name | Ferry | |\n|---|---|---|\n" + "\n".join(lines) + "\n"
