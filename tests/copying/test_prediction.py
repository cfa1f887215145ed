"""Receipts before the answers: predicted offsets, corrections, and what ends the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.cursors import COPIED, task, unit

from ferry.clusters.groups.coordination import OutcomeUnknown
from ferry.copying.appender import Accepted
from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Segment
from ferry.copying.prediction import Prediction
from ferry.ledger.receipts import Receipt
from ferry.wire.produce_batch import ProduceBatch

pytestmark = pytest.mark.unit


class Followed:
    """One partition of a lane that follows, and the log that it is copied to."""

    def __init__(self) -> None:
        self.cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 0), position=0), follows=True))
        self.key = self.cursor.task.remote
        self.prediction, self.end = Prediction(), 0

    def fetched(self, *sizes: int, holes: int = 0) -> list[ProduceBatch]:
        """Batches of so many records, and offsets behind them that have no record."""
        batches = []
        for size in sizes:
            start = self.cursor.fetched
            batches.append(unit(start, start + size))
            self.cursor.fetched_to(start + size, 3)
        self.cursor.fetched_to(self.cursor.fetched + holes, 3)
        return batches

    def predicted(self, batches: Sequence[ProduceBatch]) -> bool:
        return self.prediction.predict({self.key: batches}, {self.key: self.cursor})

    def answered(self, batches: Sequence[ProduceBatch], others: Sequence[int] = ()) -> None:
        """The target has appended them. `others`: so many records of somebody else before each."""
        for number, batch in enumerate(batches):
            self.end += others[number] if number < len(others) else 0
            if not self.prediction.take(Accepted(self.key, batch, self.end)):
                self.cursor.accept(batch, self.end)
            self.end += batch.count

    def corrected(self) -> list[object]:
        return list(self.prediction.correct({self.key: self.cursor}))

    def committed(self) -> list[Receipt]:
        receipts = self.cursor.receipts("run")
        self.confirmed()
        return receipts

    def confirmed(self) -> None:
        self.cursor.confirm()
        self.prediction.committed()
        self.end += 1

    def first(self) -> Followed:
        """After a commit that nobody could predict."""
        batches = self.fetched(2)
        assert not self.predicted(batches), "nobody knows where the remote partition ends"
        self.answered(batches)
        self.committed()
        return self


def test_what_is_in_flight_is_where_the_last_commit_ended() -> None:
    followed = Followed().first()
    batches = followed.fetched(3, 1, holes=2)
    assert followed.predicted(batches)
    (early,) = followed.cursor.receipts("run")
    assert (early.upstream_end, early.runs) == (8, ((0, 0, 2), (2, 3, 4))), "behind the marker at offset 2"
    followed.answered(batches)
    assert followed.corrected() == []
    followed.confirmed()
    assert (followed.cursor.committed_position, followed.cursor.touched) == (8, False)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=3), st.integers(0, 2), st.integers(0, 3))
def test_a_corrected_receipt_is_the_one_that_waits_for_answers(sizes: list[int], others: list[int], holes: int, before: int) -> None:
    """`before`: records of the transaction that were answered before the others were predicted."""
    early, late = Followed().first(), Followed().first()
    for followed, predicts in ((early, True), (late, False)):
        if before:
            followed.answered(followed.fetched(before))
        batches = followed.fetched(*sizes, holes=holes)
        if predicts:
            assert followed.predicted(batches)
            written = {(one.kind, one.upstream_start) for one in followed.cursor.receipts("run")}
        followed.answered(batches, others)
        if predicts:
            assert bool(followed.corrected()) == any(others[: len(sizes)])
        else:
            followed.cursor.settle_fetched()
    if any(others[: len(sizes)]):
        right, known = (
            [replace(one, counters=one.counters._replace(replication_latency_ms=None, record_age_ms=None)) for one in followed.committed()]
            for followed in (late, early)
        )
        assert known == right
        assert {(one.kind, one.upstream_start) for one in known} >= written
    assert (early.cursor.position, early.cursor.settled) == (late.cursor.position, late.cursor.settled)


def test_a_batch_that_was_halved_is_still_there() -> None:
    followed = Followed().first()
    (batch,) = followed.fetched(4)
    assert followed.predicted([batch])
    followed.cursor.receipts("run")
    followed.answered([unit(2, 4), unit(4, 6)])
    assert followed.corrected() == [followed.key]
    assert [one.runs for one in followed.committed()] == [((0, 0, 2), (2, 3, 4))]


def test_what_is_not_accepted_ends_the_transaction() -> None:
    followed = Followed().first()
    batches = followed.fetched(1, 1)
    assert followed.predicted(batches)
    followed.answered(batches[:1])
    with pytest.raises(OutcomeUnknown, match="not accepted"):
        followed.corrected()
    followed.cursor.revert()
    assert (followed.cursor.settled, followed.cursor.touched) == (2, False)


def test_a_partition_that_has_an_end_is_not_predicted() -> None:
    followed = Followed().first()
    batches = followed.fetched(1)
    followed.cursor.end_here(at_once=True)
    assert not followed.predicted(batches)


def test_where_a_topic_keeps_its_name_nothing_is_predicted() -> None:
    """The flow in the other direction takes every receipt for true, before its transaction ends."""
    followed = Followed()
    followed.cursor.task = replace(followed.cursor.task, remote_topic="t")
    batches = followed.fetched(2)
    followed.answered(batches)
    followed.committed()
    assert not followed.predicted(followed.fetched(2))
