"""docs/licences.md lists what a release ships and needs; nothing has a licence that it may not have; somebody has read the lists."""

from __future__ import annotations

import re

import pytest
from tools.docs.licences_page import PAGE, page
from tools.release.licences import EXECUTORS, PERMISSIVE, REQUIRED_ONLY, WHEEL, WITH_SOURCE, allows, checksum, parts

pytestmark = pytest.mark.unit

SIGNED = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| ([^|]+) \| `([0-9a-f]+)` \|$", re.MULTILINE)
ALLOWED = {WHEEL: PERMISSIVE, EXECUTORS: PERMISSIVE | WITH_SOURCE}


def test_the_page_says_what_the_packages_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.docs, and read what has changed"


def test_somebody_has_checked_the_lists() -> None:
    rows = SIGNED.findall(PAGE.read_text(encoding="utf-8"))
    assert rows[-1][-1] == checksum(parts()), "read what has changed, and add a row to docs/licences.md"


def test_nothing_has_a_licence_that_it_may_not_have() -> None:
    found = [
        f"{part}: {inner.name} {inner.licence}"
        for part, pieces in parts().items()
        for piece in pieces
        for inner in (piece, *piece.inside)
        if not allows(ALLOWED.get(part, PERMISSIVE | WITH_SOURCE | REQUIRED_ONLY), inner.licence)
    ]
    assert found == []


def test_the_page_names_the_allowed_licences() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = [row.split(", ") for row in re.findall(r"^\| (?:in the|only installed)[^|]+\| ([^;|]+?)(?:;[^|]*)? \|$", text, re.MULTILINE)]
    assert [set(row) for row in told] == [set(PERMISSIVE - {"LLVM-exception"}), set(WITH_SOURCE), set(REQUIRED_ONLY)]


@pytest.mark.parametrize(("expression", "allowed"), [
    ("MIT", True), ("GPL-3.0-only", False), ("GPL-2.0-only OR MIT", True), ("GPL-2.0-only AND MIT", False),
    ("(MIT OR GPL-2.0-only) AND Unicode-3.0", True), ("Apache-2.0 WITH LLVM-exception", True),
    ("GPL-2.0-only WITH Classpath-exception-2.0", False),
])  # fmt: skip
def test_one_side_of_or_is_enough_and_and_needs_both(expression: str, allowed: bool) -> None:
    assert allows(PERMISSIVE, expression) is allowed
