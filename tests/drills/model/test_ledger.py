"""The ledger explains just what is there, to every reader, whatever is merged or undecided meanwhile; and what breaks without each rule."""

from __future__ import annotations

import pytest
from tests.drills.model.exploring import explore
from tests.drills.model.ledger import LedgerModel, LedgerRules

pytestmark = pytest.mark.unit

LESS = "a reader explains less than what lies below its bound"


@pytest.mark.parametrize(("compactions", "reads"), [(2, False), (1, True)])
def test_with_all_rules_receipts_say_what_is_there_and_readers_find_it(compactions: int, reads: bool) -> None:
    seen = explore(LedgerModel(LedgerRules(), compactions=compactions, reads=reads).world())
    print(f"{seen.states:,} states, {seen.steps:,} steps, {seen.goals} of them with all work done")  # noqa: T201 - for pytest -s
    assert not seen.violation, seen.text()
    assert seen.states > 1_000
    assert seen.goals


@pytest.mark.parametrize(
    ("rule", "harm"),
    [
        ("fence_compaction", "receipts were lost"),
        ("read_to_bound", LESS),
        ("data_bound_first", LESS),
        ("merged_first", LESS),
        ("receipt_before_commit", "records without a receipt"),
    ],
)
def test_without_a_rule(rule: str, harm: str) -> None:
    compactions = 2 if rule == "fence_compaction" else 1
    seen = explore(LedgerModel(LedgerRules(**{rule: False}), compactions=compactions, reads=compactions == 1).world())
    print(seen.text())  # noqa: T201 - for pytest -s
    assert seen.violation == harm
