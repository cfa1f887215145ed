"""A cursor without transactions: what its receipts and heads say of records that were acknowledged, and have no receipt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.copying.cursors import COPIED, seed_at, task, unit

from ferry.clusters.groups.group_model import CommittedOffset
from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Segment

pytestmark = pytest.mark.unit


def flushed(explained_end: int = 7, *, transactions: bool = False) -> PartitionCursor:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 30)), flushed=not transactions, explained_end=explained_end))
    cursor.fetched_to(30, 3)
    return cursor


def test_a_receipt_names_what_is_between_it_and_the_last_one() -> None:
    cursor = flushed()
    for start, base in ((0, 9), (10, 19), (20, 31)):  # others have written 7, 8, 29 and 30
        cursor.accept(unit(start, start + 10), base)
    (receipt,) = cursor.receipts("run")
    assert (receipt.repeated, receipt.counters.transactions, receipt.downstream_end) == (((7, 9), (29, 31)), 0, 41)
    assert cursor.head("run", "ledger").remote_end == 41


def test_what_was_given_up_is_named_by_what_is_copied_again() -> None:
    cursor = flushed()
    cursor.accept(unit(0, 10), 7)
    cursor.receipts("run")
    cursor.confirm()
    cursor.accept(unit(10, 20), 17)
    cursor.revert()
    cursor.fetched_to(20, 3)
    cursor.accept(unit(10, 20), 27)
    (receipt,) = cursor.receipts("run")
    assert receipt.repeated == ((17, 27),)


def test_a_transaction_names_only_what_is_before_it() -> None:
    cursor = flushed(transactions=True)
    cursor.accept(unit(0, 10), 9)
    (receipt,) = cursor.receipts("run")
    assert (receipt.repeated, receipt.counters.transactions) == (((7, 9),), 1)
    assert cursor.head("run", "ledger").remote_end == -1
    cursor.confirm()
    cursor.accept(unit(10, 20), 20)  # a marker is in between
    (receipt,) = cursor.receipts("run")
    assert receipt.repeated == ()


def test_where_no_head_says_where_the_receipts_end_one_is_written_first() -> None:
    assert not flushed().touched
    unopened = PartitionCursor(replace(task(Segment(COPIED, 0, 30)), flushed=True, explained_end=7, unopened=True))
    assert unopened.touched
    assert (unopened.receipts("run"), unopened.head("run", "ledger").remote_end) == ([], 7)
    unopened.confirm()
    assert not unopened.touched
    seeded = PartitionCursor(replace(task(seed=seed_at(0)), flushed=True, explained_end=0, unopened=True))
    assert [receipt.kind.value for receipt in seeded.receipts("run")] == ["seed"]


def test_the_group_may_be_behind() -> None:
    cursor = flushed()
    cursor.accept(unit(0, 10), 7)
    cursor.confirm()
    assert [cursor.agrees_with(CommittedOffset(offset)) for offset in (0, 10, 11)] == [True, True, False]
    exact = flushed(transactions=True)
    exact.accept(unit(0, 10), 7)
    exact.confirm()
    assert [exact.agrees_with(CommittedOffset(offset)) for offset in (0, 10, 11)] == [False, True, False]
