"""What a newer Ferry wrote is told apart from what is damaged, and the place is named."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.errors import NewerFormat, UnreadableRecord
from ferry.ledger.formats import require_version

pytestmark = pytest.mark.unit

WHERE = "cluster B: topic ferry-ledger.A"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_up_to_the_one_that_is_understood_pass(version: int) -> None:
    require_version({"version": version}, WHERE, 3)


@pytest.mark.parametrize(
    "document", [{}, {"version": None}, {"version": "1"}, {"version": True}, {"version": 0}, {"version": -1}, {"version": 1.0}]
)
def test_a_record_without_a_version_is_damaged(document: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRecord, match=f"{WHERE} holds a record without a format version"):
        require_version(document, WHERE)


def test_a_newer_version_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(
        NewerFormat, match=rf"{WHERE} holds format version 2, .* versions up to 1: a newer Ferry writes there; upgrade this one"
    ):
        require_version({"version": 2}, WHERE)
