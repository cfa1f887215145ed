"""Receipts of a cursor around records that a handler dropped or the target refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.copying.cursors import COPIED, task, unit

from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Segment
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit


def test_what_a_handler_dropped_counts_once_it_is_settled() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 40)))
    for end in (4, 7):  # two fetches without a unit, then one with one
        cursor.fetched_to(end, 3)
        cursor.note_dropped(end)
    cursor.fetched_to(20, 3)
    cursor.note_dropped(5)
    cursor.accept(unit(7, 15), 0)
    (receipt,) = cursor.receipts("run")
    assert (receipt.upstream_end, receipt.counters.records, receipt.counters.dropped) == (15, 8, 11), (
        "what lies behind the settled offset does not count yet"
    )
    cursor.confirm()
    cursor.fetched_to(30, 3)
    cursor.note_dropped(10)
    cursor.settle_fetched()
    (receipt,) = cursor.receipts("run")
    assert (receipt.upstream_start, receipt.upstream_end, receipt.counters.dropped) == (15, 30, 15)
    cursor.revert()
    cursor.fetched_to(30, 3)
    cursor.settle_fetched()
    assert [entry.counters.dropped for entry in cursor.receipts("run")] == [0], (
        "what an abandoned transaction held is fetched and counted anew"
    )


def test_what_a_handler_dropped_just_before_a_refused_record_counts() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(6, 3)
    cursor.note_dropped(6)
    cursor.fetched_to(10, 3)
    cursor.skip(unit(6, 10, runs=((6, 1),)), "refused")
    cursor.settle_fetched()
    found = [(entry.upstream_start, entry.upstream_end, entry.counters.dropped, entry.reason) for entry in cursor.receipts("run")]
    assert found == [(0, 6, 6, ""), (6, 7, 0, "refused"), (7, 10, 0, "")]


@pytest.mark.parametrize(("end", "settled"), [(1, []), (2, [(COPIED, 1, 2)])])
def test_a_refused_record_at_the_very_beginning(end: int, settled: list[tuple[ReceiptKind, int, int]]) -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(end, -1)
    cursor.skip(unit(0, end, runs=((0, 1),), epoch=-1), "refused")
    assert [(entry.kind, entry.upstream_start, entry.upstream_end) for entry in cursor.receipts("run")] == [
        (ReceiptKind.SKIPPED, 0, 1),
        *settled,
    ]


def test_a_refused_record_of_which_no_epoch_is_known_leaves_none() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(10, -1)
    cursor.skip(unit(0, 10, runs=((4, 1),), epoch=-1), "refused")
    assert (cursor.position, cursor.head("run", "ledger").source_epoch) == (10, -1)


def test_what_a_handler_dropped_around_a_refused_record_counts() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(10, 3)
    cursor.accept(replace(unit(0, 4, runs=((0, 2),)), kind="handled", places=(0,), dropped=2), 100)
    cursor.skip(replace(unit(4, 10, runs=((6, 1),)), kind="handled", places=(0,), dropped=5), "refused")
    receipts = cursor.receipts("run")
    assert [(entry.kind, entry.upstream_start, entry.upstream_end) for entry in receipts] == [
        (COPIED, 0, 6),
        (ReceiptKind.SKIPPED, 6, 7),
        (COPIED, 7, 10),
    ]
    assert sum(entry.counters.records + entry.counters.dropped for entry in receipts) == 9
    assert all(entry.counters.handled or entry.counters.dropped for entry in receipts if entry.kind == COPIED), (
        "a verify would look for all their records"
    )


def test_receipts_around_a_refused_record_say_that_a_handler_was_at_work() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(10, 3)
    cursor.skip(replace(unit(0, 10, runs=((4, 1),)), kind="handled", places=(0,), dropped=9), "refused")
    before, refused, behind = cursor.receipts("run")
    assert (before.upstream_start, refused.upstream_start, behind.upstream_start, behind.upstream_end) == (0, 4, 5, 10)
    assert all(entry.counters.handled or entry.counters.dropped for entry in (before, behind)), "a verify would look for all their records"
    assert sum(entry.counters.dropped for entry in (before, refused, behind)) == 9
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(5, 3)
    cursor.skip(replace(unit(0, 5, runs=((0, 1),)), kind="handled", places=(0,), dropped=4), "refused")
    cursor.fetched_to(10, 3)
    cursor.skip(unit(5, 10, runs=((5, 1),)), "refused")
    found = [(entry.upstream_start, entry.upstream_end, entry.counters.dropped, entry.counters.handled) for entry in cursor.receipts("run")]
    assert found == [(0, 1, 0, 0), (1, 5, 4, 1), (5, 6, 0, 0), (6, 10, 0, 0)]
