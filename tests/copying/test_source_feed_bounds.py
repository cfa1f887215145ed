"""The reading half of a lane where a source refuses an offset, contradicts an epoch, or sends no whole batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.copying.feed_bench import Bench, batch, task

from ferry.clusters.logs.leader_epochs import NO_LATER_EPOCH, Divergence, ReadTo
from ferry.clusters.net.connections import RequestNotSent
from ferry.copying import source_feed as module
from ferry.copying.lane_messages import Failure, PartitionTask
from ferry.copying.source_feed import PATIENCE_SECONDS, PAUSE_SECONDS
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit

OUT_OF_RANGE = 1
TRUNCATED = (
    "the source log was truncated to offset 4; copied up to {}; ferry plan names the offset at which ferry.on.recreate=restart goes on"
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def build(*tasks: PartitionTask, **more: Any) -> Bench:
        made = Bench(*(tasks or (task(),)), **more)
        monkeypatch.setattr(module, "clock", made.source)
        monkeypatch.setattr(module, "log_bounds", made.source.log_bounds)
        monkeypatch.setattr(module, "divergence_of", made.source.divergence_of)
        return made

    return build


@pytest.mark.parametrize(
    ("bounds", "fetched", "failure", "receipts"),
    [
        ((12, 100), 12, None, [(ReceiptKind.LOSS, 5, 12, "deleted at the source before it was copied: its log starts at 12")]),
        ((5, 100), 5, None, []),
        ((0, 5), 5, None, []),
        ((0, 4), 5, Failure("SourceTruncated", TRUNCATED.format(5), passing=False), []),
    ],
)
def test_an_offset_that_the_source_does_not_have_has_expired_or_was_truncated(
    bench: Callable[..., Bench], bounds: tuple[int, int], fetched: int, failure: Failure | None, receipts: list[Any]
) -> None:
    made = bench(task(start=5))
    cursor = made.cursors[0]
    made.feed.pump(0)
    made.answer(error=OUT_OF_RANGE)
    assert (cursor.doubted, cursor.wants_fetch) == (True, False)
    made.source.bounds = bounds
    made.source.divergence = Divergence(3, 4) if failure else None
    made.mend()
    assert cursor.doubted, "asked only when nothing of it is under way"
    made.source.throttled_nodes = {1}
    made.mend(cursor)
    assert cursor.doubted
    made.source.throttled_nodes = set()
    made.mend(cursor)
    assert (cursor.doubted, cursor.fetched, cursor.failure) == (False, fetched, failure)
    assert cursor.fetch_position().last_epoch == (3 if failure else -1)
    assert [(entry.kind, entry.upstream_start, entry.upstream_end, entry.reason) for entry in cursor.receipts("run")] == receipts


@pytest.mark.parametrize("answer", [{"diverged": 3}, {"diverged": 9}, {"error": OUT_OF_RANGE}])
def test_a_log_that_contradicts_the_epoch_is_another_one_only_if_it_proves_to_be(
    bench: Callable[..., Bench], answer: dict[str, Any]
) -> None:
    made = bench(task(start=5))
    cursor = made.cursors[0]
    made.feed.pump(0)
    made.answer(**answer)
    assert (cursor.failure, cursor.wants_fetch) == (None, False)
    made.mend(cursor)
    assert (cursor.failure, cursor.wants_fetch, cursor.fetch_position().last_epoch) == (None, True, -1)
    assert made.source.judged == [ReadTo(5, 3)]
    made.feed.pump(0)
    made.answer(records=batch(5, epoch=8))
    assert cursor.fetch_position().last_epoch == 8
    made.source.divergence = Divergence(3, 4)
    made.feed.pump(0)
    made.answer(**answer)
    made.mend(cursor)
    assert cursor.failure == Failure("SourceTruncated", TRUNCATED.format(6), passing=False)


@pytest.mark.parametrize(("epoch", "told"), [(3, None), (3, Divergence(NO_LATER_EPOCH, 4)), (-1, None)])
def test_a_leader_that_lags_behind_makes_no_log_look_truncated(bench: Callable[..., Bench], epoch: int, told: Divergence | None) -> None:
    """It says that the log ends before the position; its epochs do not, or the position's is not known."""
    made = bench(replace(task(start=5), last_epoch=epoch))
    cursor, made.source.divergence = made.cursors[0], told
    made.source.bounds = (0, 4)
    made.feed.pump(0)
    made.answer(error=OUT_OF_RANGE)
    made.mend(cursor)
    assert (cursor.failure, made.source.judged) == (None, [ReadTo(5, 3)] if epoch >= 0 else [])
    made.feed.pump(0)
    assert made.source.requests == [], "a pause first"
    made.source.now += 1.0
    made.feed.pump(0)
    made.source.bounds = (0, 100)
    made.answer(records=batch(5))
    assert (cursor.failure, cursor.fetched, cursor.troubled_since) == (None, 6, 0.0)
    made.source.bounds = (0, 4)
    while cursor.failure is None:
        made.feed.pump(0)
        made.answer(error=OUT_OF_RANGE)
        made.mend(cursor)
        made.source.now += 5.0
    problem = "not readable for 75 s: the source log ends at 4, before the position 6"
    assert cursor.failure == Failure("PartitionUnavailable", problem, passing=True)


def test_all_partitions_in_doubt_are_looked_at_together(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1), task(2))
    made.feed.pump(0)
    made.answer_all({}, errors={0: OUT_OF_RANGE, 1: OUT_OF_RANGE, 2: OUT_OF_RANGE})
    made.mend(*made.cursors)
    assert (made.source.most_looks, [cursor.doubted for cursor in made.cursors]) == (3, [False] * 3)


def test_an_offset_that_is_refused_although_the_log_has_it_is_asked_again_with_pauses_and_patience(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(start=5), last_epoch=-1))
    cursor = made.cursors[0]
    asked = 0
    while cursor.failure is None:
        made.feed.pump(0)
        assert len(made.source.requests) == 1
        asked += 1
        made.answer(error=OUT_OF_RANGE)
        made.mend(cursor)
        made.feed.pump(0)
        assert made.source.requests == [], "a pause first"
        made.source.now += 5.0
    assert asked == 2 + PATIENCE_SECONDS // 5
    problem = "not readable for 75 s: the source does not give offset 5, although its log goes from 0 to 100"
    assert cursor.failure == Failure("PartitionUnavailable", problem, passing=True)


@pytest.mark.parametrize("records", [b"", batch(0, 1)[:70]], ids=["nothing", "a piece"])
def test_answers_without_a_whole_batch_are_asked_again_with_pauses_and_patience(bench: Callable[..., Bench], records: bytes) -> None:
    made = bench()
    cursor = made.cursors[0]
    while cursor.failure is None:
        made.feed.pump(0)
        made.answer(records=records)
        made.feed.pump(0)
        assert made.source.requests == [], "a pause first"
        made.source.now += 5.0
    problem = "not readable for 75 s: the source sends no whole batch at offset 0, although its last stable offset is 100"
    assert cursor.failure == Failure("PartitionUnavailable", problem, passing=True)


def test_a_partition_that_others_left_no_room_in_the_answer_is_not_in_trouble(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.feed.pump(0)
    made.answer_all({0: batch(0, 1), 1: b""})
    assert [cursor.troubled_since for cursor in made.cursors] == [0.0, 0.0]
    made.feed.pump(0)
    made.answer_all({0: b"", 1: b""})
    assert [cursor.troubled_since for cursor in made.cursors] == [made.source.now] * 2


def test_bounds_that_nobody_tells_are_asked_for_again(bench: Callable[..., Bench]) -> None:
    made = bench()
    cursor = made.cursors[0]
    made.feed.pump(0)
    made.answer(error=OUT_OF_RANGE)
    made.source.bounds = RequestNotSent("no leader")
    made.mend(cursor)
    assert (cursor.doubted, cursor.failure, made.source.slept) == (True, None, [PAUSE_SECONDS])
    made.source.now += PATIENCE_SECONDS + 1
    made.mend(cursor)
    assert cursor.failure is not None
    assert cursor.failure.problem == "not readable for 75 s: no leader"


def test_a_last_stable_offset_behind_the_position_has_the_bounds_looked_at(bench: Callable[..., Bench]) -> None:
    made = bench(task(start=5))
    made.feed.pump(0)
    made.answer(lso=4)
    assert made.cursors[0].doubted
    made = bench(task(start=5))
    made.feed.pump(0)
    made.answer(lso=6)
    assert (made.cursors[0].doubted, made.cursors[0].failure) == (False, None)
