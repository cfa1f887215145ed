"""The ledger as people read it."""

from __future__ import annotations

import pytest

from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.monitoring.ledger_ranges import covered_ranges

pytestmark = pytest.mark.unit


def receipt(kind: ReceiptKind, start: int, end: int, **fields: object) -> Receipt:
    return Receipt(kind, "t", 0, "source-id", "A.t", "remote-id", start, end, **fields)  # type: ignore[arg-type]


def test_neighbours_become_one_range() -> None:
    ranges = covered_ranges(
        [
            receipt(ReceiptKind.COPIED, 10, 20, counters=Counters(records=9, bytes=90), min_timestamp=7, max_timestamp=9),
            receipt(ReceiptKind.COPIED, 0, 10, counters=Counters(records=10, bytes=100), min_timestamp=5, max_timestamp=6),
        ]
    )
    assert [(entry.start, entry.end, entry.records, entry.bytes, entry.min_timestamp, entry.max_timestamp) for entry in ranges] == [
        (0, 20, 19, 190, 5, 9)
    ]


def test_kinds_and_gaps_stay_apart() -> None:
    ranges = covered_ranges(
        [
            receipt(ReceiptKind.SEED, 5, 5, reason="start policy earliest"),
            receipt(ReceiptKind.LOSS, 5, 8, reason="expired"),
            receipt(ReceiptKind.COPIED, 8, 10),
            receipt(ReceiptKind.COPIED, 12, 14),
        ]
    )
    assert [(entry.kind, entry.start, entry.end) for entry in ranges] == [
        ("seed", 5, 5),
        ("loss", 5, 8),
        ("copied", 8, 10),
        ("copied", 12, 14),
    ]


def test_a_receipt_inside_a_range_adds_nothing() -> None:
    ranges = covered_ranges(
        [
            receipt(ReceiptKind.COPIED, 0, 20, counters=Counters(records=20)),
            receipt(ReceiptKind.COPIED, 5, 10, counters=Counters(records=5)),
        ]
    )
    assert [(entry.start, entry.end, entry.records) for entry in ranges] == [(0, 20, 20)]
