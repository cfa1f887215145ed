"""Union and complement of ranges, checked offset by offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.coverage import SETTLING, covered, uncovered
from ferry.ledger.receipts import Receipt, ReceiptKind

pytestmark = pytest.mark.unit

OFFSETS = st.integers(0, 40)
RECEIPTS = st.lists(
    st.builds(
        lambda kind, start, length: Receipt(kind, "t", 0, "s", "A.t", "r", start, start + length),
        st.sampled_from(list(ReceiptKind)),
        OFFSETS,
        st.integers(0, 12),
    ),
    max_size=12,
)


def offsets_of(receipts: list[Receipt]) -> set[int]:
    return {offset for receipt in receipts if receipt.kind in SETTLING for offset in range(receipt.upstream_start, receipt.upstream_end)}


@given(RECEIPTS)
def test_covered_is_the_union_in_order_and_with_gaps_between(receipts: list[Receipt]) -> None:
    ranges = covered(receipts)
    assert {offset for start, end in ranges for offset in range(start, end)} == offsets_of(receipts)
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(set(edges))


@given(RECEIPTS, OFFSETS, OFFSETS)
def test_uncovered_is_the_complement_within_what_is_wanted(receipts: list[Receipt], start: int, end: int) -> None:
    missing = uncovered((start, end), covered(receipts))
    assert {offset for low, high in missing for offset in range(low, high)} == set(range(start, end)) - offsets_of(receipts)
    edges = [edge for pair in missing for edge in pair]
    assert edges == sorted(set(edges))


def test_seeds_cover_nothing() -> None:
    assert covered([Receipt(ReceiptKind.SEED, "t", 0, "s", "A.t", "r", 5, 9)]) == ()


def test_uncovered_ranges_before_between_and_after() -> None:
    assert uncovered((5, 20), ((0, 2), (3, 5), (8, 9), (12, 30))) == ((5, 8), (9, 12))
    assert uncovered((5, 20), ((0, 6), (19, 20), (25, 30))) == ((6, 19),)
    assert uncovered((5, 20), ((5, 8), (8, 9), (20, 30))) == ((9, 20),)
    assert uncovered((5, 5), ((0, 1),)) == ()
