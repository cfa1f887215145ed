"""A receipt that grows says what the receipts of all its commits would say, and nothing of other runs, places or records."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.cursors import BACKFILLED, COPIED, task, unit

from ferry.copying import joined_receipts
from ferry.copying.cursor import PartitionCursor
from ferry.copying.joined_receipts import grown
from ferry.copying.lane_messages import Segment
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.receipts import Receipt, ReceiptKind

pytestmark = pytest.mark.unit


def receipt(start: int, end: int, downstream: int, **more: object) -> Receipt:
    """Copied records `[start, end)`, and the marker of their transaction behind them."""
    count = end - start
    delay = MinMeanMax(1, 2.0, 3, count)
    made = Receipt(
        COPIED, "t", 0, "source-id", "A.t", "remote-id", start, end, downstream + count, ((start, downstream, count),),
        Counters(count, count * 9, 1, record_age_ms=delay, replication_latency_ms=delay), min_timestamp=start, max_timestamp=end,
        remote_epoch=4, source_epoch=1,
    )  # fmt: skip
    return replace(made, **more)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=40))
def test_a_grown_receipt_is_the_sum_of_all(counts: list[int]) -> None:
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    commits = [receipt(end - count, end, end - count + index) for index, (count, end) in enumerate(zip(counts, ends, strict=True))]
    whole = commits[0]
    for commit in commits[1:]:
        whole = grown(whole, commit)
    assert (whole.upstream_start, whole.upstream_end, whole.downstream_end) == (0, ends[-1], commits[-1].downstream_end)
    assert whole.runs == tuple(run for commit in commits for run in commit.runs)
    assert (whole.counters.records, whole.counters.transactions) == (ends[-1], len(counts))
    assert whole.counters.record_age_ms is not None
    assert whole.counters.record_age_ms.count == ends[-1]
    assert (whole.min_timestamp, whole.max_timestamp, whole.remote_epoch) == (0, ends[-1], 4)


@pytest.mark.parametrize(
    "more",
    [
        receipt(11, 20, 12),  # after a gap
        receipt(10, 20, 11, remote_epoch=5),
        receipt(10, 20, 11, source_epoch=2),
        receipt(10, 20, 11, series="a seed"),
        receipt(10, 20, 11, kind=ReceiptKind.LOSS),
        receipt(10, 20, 11, counters=Counters(10, 1, 1, dropped=1)),
    ],
)
def test_what_does_not_belong_together_stays_apart(more: Receipt) -> None:
    assert grown(receipt(0, 10, 0), more) is more


def test_control_records_alone_do_not_ask_for_an_epoch() -> None:
    marker = receipt(10, 11, 0, runs=(), counters=Counters(transactions=1), remote_epoch=-1, downstream_end=-1, source_epoch=-1)
    whole = grown(receipt(0, 10, 0), marker)
    assert (whole.upstream_end, whole.downstream_end, whole.remote_epoch, whole.source_epoch) == (11, 10, 4, 1)
    assert grown(whole, receipt(11, 12, 12)).upstream_end == 12
    only_markers = grown(marker, replace(marker, upstream_start=11, upstream_end=12))
    assert grown(only_markers, receipt(12, 13, 12, remote_epoch=6)).remote_epoch == 6


def test_a_receipt_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_receipts, "RUNS", 2)
    first, second, third = (receipt(start, start + 1, start * 2) for start in range(3))
    both = grown(first, second)
    assert (both.upstream_end, grown(both, third)) == (2, third)


def commit(cursor: PartitionCursor, end: int, downstream: int) -> list[Receipt]:
    """Everything up to `end`, as one transaction."""
    start = cursor.fetched
    cursor.fetched_to(end, 3)
    cursor.accept(unit(start, end), downstream)
    found = cursor.receipts("run", remote_epoch=1)
    cursor.confirm()
    return found


def test_the_receipt_of_a_cursor_that_follows_grows_with_each_commit() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 5)), follows=True))
    kept = [commit(cursor, end, end + 10 * end) for end in (5, 9, 12)]
    assert [[(entry.upstream_start, entry.upstream_end) for entry in found] for found in kept] == [[(0, 5)], [(0, 9)], [(0, 12)]]
    assert all(after[0].runs[: len(before[0].runs)] == before[0].runs for before, after in pairwise(kept))
    assert not cursor.done


def test_an_abandoned_transaction_leaves_the_receipt_as_it_was() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 5)), follows=True))
    commit(cursor, 5, 0)
    cursor.fetched_to(9, 3)
    cursor.accept(unit(5, 9), 6)
    cursor.receipts("run", remote_epoch=1)
    cursor.revert()
    (found,) = commit(cursor, 8, 20)
    assert (found.upstream_start, found.upstream_end, found.runs) == (5, 8, ((5, 20, 3),)), "a new one: nothing of what was abandoned"


def test_a_cursor_that_does_not_follow_writes_a_receipt_a_commit() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 9)))
    assert [commit(cursor, end, end)[0].upstream_start for end in (5, 9)] == [0, 5]


def test_what_is_planned_comes_before_what_arrives_and_is_copied_whole() -> None:
    planned = task(Segment(BACKFILLED, 2, 4), Segment(COPIED, 10, 20), position=10)
    cursor = PartitionCursor(replace(planned, follows=True))
    assert cursor.segment == Segment(BACKFILLED, 2, 4)
    cursor.end_here(at_once=False)  # its time was over before it began
    commit(cursor, 4, 0)
    cursor.settle_fetched()
    commit(cursor, 20, 3)
    cursor.settle_fetched()
    assert (cursor.done, cursor.committed_position) == (True, 20)


def test_an_idle_cursor_that_follows_ends_where_it_is() -> None:
    cursor = PartitionCursor(replace(task(position=7), follows=True))
    cursor.settle_fetched()
    assert (cursor.done, cursor.wants_fetch, cursor.touched) == (False, True, False)
    commit(cursor, 9, 0)
    cursor.end_here(at_once=False)
    cursor.settle_fetched()
    assert (cursor.done, cursor.committed_position, cursor.touched) == (True, 9, False)


def test_a_cursor_that_must_end_at_once_leaves_the_rest_to_another_lane() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 50)), follows=True))
    commit(cursor, 5, 0)
    cursor.end_here(at_once=True)
    cursor.settle_fetched()
    assert (cursor.done, cursor.committed_position) == (True, 5)
