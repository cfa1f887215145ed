"""The lists of `docs/licences.md`: what a release ships and needs, by licence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.docs.between import between
from tools.release.licences import ALWAYS, EXECUTORS, WHEEL, Piece, checksum, parts

PAGE = Path("docs/licences.md")
BEGIN, END = "<!-- licences: begin -->", "<!-- licences: end -->"
_TITLES = {
    WHEEL: "In the wheel and the source distribution",
    EXECUTORS: "In the archive for executors",
    ALWAYS: "Installed by pip with the package",
}


def page() -> str:
    """The whole page, with the current lists. A part leaves out what a part above it has."""
    found, listed, seen = parts(), "", set[Piece]()
    for part, pieces in found.items():
        new = [piece for piece in pieces if part in {WHEEL, EXECUTORS} or piece not in seen]
        seen |= {*pieces}
        title = _TITLES.get(part, f"Installed by pip with the {part.replace(' ', ' `')}`")
        inside = "".join(f"\nCompiled into `{piece.name}`:\n\n{_table(piece.inside)}" for piece in new if piece.inside)
        listed += f"### {title}\n\n{_table(new)}{inside}\n"
    return between(PAGE.read_text(encoding="utf-8"), BEGIN, END, f"{listed}Checksum of these lists: `{checksum(found)}`\n")


def _table(pieces: Sequence[Piece]) -> str:
    if not pieces:
        return "Nothing that is not in a list above.\n"
    by_licence: dict[str, list[str]] = {}
    for piece in pieces:
        by_licence.setdefault(piece.licence, []).append(f"{piece.name} {piece.version}".strip())
    rows = "".join(f"| {licence} | {', '.join(names)} |\n" for licence, names in sorted(by_licence.items()))
    return f"| licence | packages |\n|---|---|\n{rows}"
