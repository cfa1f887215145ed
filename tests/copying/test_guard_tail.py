"""Which of the fetched records the other flow wrote, and that none is taken before that is known. test_following.py reads real ledgers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.feed_bench import Bench, batch, task

from ferry.clusters.logs.fetching import Fetched, FetchPosition
from ferry.clusters.net.connections import RequestLost, RequestNotSent
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying import source_feed
from ferry.copying.guard_tail import NO_EPOCH, GuardTail, _Place
from ferry.copying.loop_guard import LedgerRead
from ferry.errors import OriginUnclear
from ferry.wire.ranges import Ranges, size

KEY = task().key
FLOW: Any = SimpleNamespace(source=SimpleNamespace(alias="A"), target=SimpleNamespace(alias="B"), reverse_name="B->A")
FOLLOWED = replace(task(end=10), follows=True, other_ledger=LedgerRead("", {}))


def tail(*ahead: tuple[int, int, int]) -> GuardTail:
    made = GuardTail.of(None, FLOW, [replace(task(), other_ledger=LedgerRead("", {}, ahead))])  # type: ignore[arg-type]
    assert made is not None
    return made


def test_only_a_flow_that_may_be_written_from_the_other_side_has_one() -> None:
    assert GuardTail.of(None, FLOW, [task()]) is None  # type: ignore[arg-type]
    assert KEY in tail()


def test_a_batch_of_another_leader_epoch_is_not_the_one_that_the_receipt_names() -> None:
    found = tail((4, 10, 12), (NO_EPOCH, 20, 22))
    same, other = (memoryview(batch(10, 11, epoch=epoch) + batch(20, 21, epoch=epoch)) for epoch in (4, 5))
    assert found.written(KEY, same) == ((10, 12), (20, 22))
    assert found.written(KEY, other) == ((20, 22),)
    assert found.ever_written(KEY) == ((10, 12), (20, 22))


def test_what_lies_before_the_last_commit_is_forgotten() -> None:
    found = tail((4, 10, 12), (4, 20, 25), (5, 3, 5))
    found.forget(KEY, 22)
    assert found.ever_written(KEY) == ((22, 25),)
    found.forget(KEY, 25)
    assert found.ever_written(KEY) == ()


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 60), st.integers(1, 9)), max_size=12), st.lists(st.integers(0, 3), min_size=1))
def test_offsets_and_epochs_must_both_agree(receipts: list[tuple[int, int, int]], epochs: list[int]) -> None:
    ahead = tuple((epoch, start, start + count) for epoch, start, count in receipts)
    data = memoryview(b"".join(batch(2 * number, 2 * number + 1, epoch=epoch) for number, epoch in enumerate(epochs)))
    wanted = {
        offset
        for number, epoch in enumerate(epochs)
        for offset in (2 * number, 2 * number + 1)
        if any(start <= offset < end and named in {epoch, NO_EPOCH} for named, start, end in ahead)
    }
    found = tail(*ahead).written(KEY, data)
    assert {offset for start, end in found for offset in range(start, end)} == wanted
    assert size(found) == len(wanted)


class Told:
    """A guard; `problems` meet its next looks, and `ranges` are what the other flow wrote."""

    is_old = False

    def __init__(self, *problems: Exception, ranges: Ranges = ()) -> None:
        self.problems, self.ranges, self.looks = list(problems), ranges, 0
        self.declared: set[TopicPartition] = set()

    def __contains__(self, _: object) -> bool:
        return True

    def written(self, *_: object) -> Ranges:
        assert self.looks or not self.ranges
        return self.ranges

    def forget(self, *_: object) -> None: ...

    async def catch_up(self) -> None:
        self.looks += 1
        if self.problems:
            raise self.problems.pop(0)


def answered(made: Bench, records: bytes) -> list[tuple[int, int]]:
    """(first offset, records) of what the next response gives, once all that it starts has ended."""

    async def answer() -> Any:
        found = made.answer(records=records)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        return [*found, *made.feed.arrivals()]

    return [run for _, units in asyncio.run(answer()) for unit in units for run in unit.runs]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_feed, "PATIENCE_SECONDS", 5.0)


def test_what_was_planned_is_taken_at_once_and_no_more() -> None:
    guard = Told()
    made = Bench(FOLLOWED, guard=guard)
    made.feed.pump(0)
    assert answered(made, batch(8, 9) + batch(10, 11)) == [(8, 2)]
    assert guard.looks == 0
    made.feed.pump(0)
    assert answered(made, batch(10, 11)) == [(10, 2)]
    assert guard.looks == 1


@pytest.mark.parametrize("problem", [RequestLost("reset"), RequestNotSent("no leader")])
def test_records_wait_until_the_ledger_can_be_read(problem: Exception) -> None:
    guard = Told(problem, problem, ranges=((10, 12),))
    made = Bench(replace(FOLLOWED, position=10, segments=()), guard=guard)
    made.feed.pump(0)
    assert answered(made, batch(10, 11) + batch(12, 13)) == [(12, 2)]
    assert (guard.looks, made.source.requests, made.cursors[0].failure) == (3, [], None)


@pytest.mark.parametrize("problem", [OriginUnclear("t", 0, "deleted"), ZeroDivisionError("a bug")])
def test_records_are_not_taken_if_nobody_will_ever_know(problem: Exception) -> None:
    made = Bench(replace(FOLLOWED, position=10, segments=()), guard=Told(problem))
    made.feed.pump(0)
    assert answered(made, batch(10, 11)) == []
    failure = made.cursors[0].failure
    assert failure is not None
    assert failure.error in {"OriginUnclear", "UnreadableRecord"}


def test_a_partition_about_which_an_operator_has_spoken_is_planned_again() -> None:
    guard = Told()
    guard.declared.add(KEY)
    made = Bench(replace(FOLLOWED, position=10, segments=()), guard=guard)
    made.feed.pump(0)
    assert answered(made, batch(10, 11)) == []
    failure = made.cursors[0].failure
    assert failure is not None
    assert failure.passing


def test_the_ledger_is_read_to_where_it_ends_meanwhile() -> None:
    """Compaction may have removed a receipt because a newer one is behind the end that was asked for."""
    ledger, ends = TopicPartition("mm2-ferry-ledger.B.internal", 0), {TopicPartition("mm2-ferry-ledger.B.internal", 0): 3}
    found = tail()
    found._places[0] = _Place(3)
    asyncio.run(found._take(Fetched(FetchPosition(*ledger, 3, -1), 0, memoryview(b""), [], False, 5, 7), ends))
    assert ends == {ledger: 7}
