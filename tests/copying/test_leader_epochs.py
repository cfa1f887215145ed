"""What a cursor says about truncation (KIP-320), over random logs with holes and leader epochs, beside a model of the broker's epoch cache.

A position's epoch must never make the log that was read look truncated, and must always show one that was truncated before it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.copying.feed_bench import TOPIC_ID, batch, task
from tests.wire.logs import limited

from ferry.clusters.logs.fetching import LATEST
from ferry.clusters.logs.leader_epochs import NO_LATER_EPOCH, Divergence, ReadTo, divergence_of
from ferry.clusters.net.leaders import Leader
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.cursor import PartitionCursor
from ferry.wire.produce_batch import ProduceBatch

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class EpochLog:
    """A partition at its leader: where its entries begin, how long they are, its epoch cache as (epoch, first offset), and its end."""

    entries: tuple[tuple[int, int], ...]
    cache: tuple[tuple[int, int], ...]
    end: int

    @property
    def epochs(self) -> tuple[int, ...]:
        return tuple(epoch for epoch, _ in self.cache)

    def epoch_of(self, offset: int) -> int:
        return max(epoch for epoch, start in self.cache if start <= offset)

    def end_of(self, asked: int) -> tuple[int, int]:
        """The largest epoch up to `asked`, and where it ends (LeaderEpochFileCache.endOffsetFor)."""
        if self.cache[-1][0] <= asked:
            return (asked, self.end) if self.cache[-1][0] == asked else (-1, -1)
        higher = next(start for epoch, start in self.cache if epoch > asked)
        return max((epoch for epoch, _ in self.cache if epoch <= asked), default=asked), higher

    def fetched(self, offset: int, entries: int) -> bytes:
        found = [entry for entry in self.entries if sum(entry) > offset][:entries]
        return b"".join(batch(*range(start, start + count), epoch=self.epoch_of(start)) for start, count in found)

    def rewritten(self, at: int, longer_by: int, *, older: bool) -> EpochLog:
        """After an unclean election: a leader whose log ended at `at` goes on from there under an epoch of its own.

        `older`: one that this log has never had, between its own; and then a third leader went on behind it.
        """
        kept = tuple((epoch, start) for epoch, start in self.cache if start < at)
        epoch = kept[-1][0] + 1 if older and kept else self.epochs[-1] + 1
        end = at + longer_by
        entries = tuple((start, min(count, at - start)) for start, count in self.entries if start < at)
        last = ((self.epochs[-1] + 2, end),) if older else ()
        return EpochLog((*entries, *((offset, 1) for offset in range(at, end))), (*kept, (epoch, at), *last), end)

    def moved(self, left: set[int]) -> EpochLog:
        """Compacted further, then replicated to another broker, whose cache knows only what is left; the last entry always is."""
        entries = tuple(entry for index, entry in enumerate(self.entries) if index in left or entry == self.entries[-1])
        starts: dict[int, int] = {}
        for start, _ in entries:
            starts.setdefault(self.epoch_of(start), start)
        return replace(self, entries=entries, cache=tuple(starts.items()))


class Broker:
    """Leader of partition t-0: answers OffsetForLeaderEpoch and Fetch as a broker does with this log."""

    def __init__(self, log: EpochLog) -> None:
        self._log = log

    def of(self, *_: object) -> Leader:
        return Leader(1, -1)

    def topic_id(self, _: str) -> UUID:
        return TOPIC_ID

    def name_of(self, *_: object) -> str:
        return "t"

    async def send(self, request: Any, node: int) -> Any:
        assert node == 1
        (topic,) = request.topics
        (part,) = topic.partitions
        if request.name == "OffsetForLeaderEpochRequest":
            epoch, end = self._log.end_of(part.leader_epoch)
            told = SimpleNamespace(partition=0, error_code=0, leader_epoch=epoch, end_offset=end)
            return SimpleNamespace(topics=[SimpleNamespace(topic="t", partitions=[told])])
        if request.name == "ListOffsetsRequest":
            offset = self._log.end if part.timestamp == LATEST else 0
            return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[SimpleNamespace(error_code=0, offset=offset)])])
        return SimpleNamespace(error_code=0, responses=[SimpleNamespace(topic="t", partitions=[_fetched(self._log, part.fetch_offset)])])


def _fetched(log: EpochLog, offset: int) -> SimpleNamespace:
    in_range = log.entries[0][0] <= offset < log.end
    records = log.fetched(offset, 1) if in_range else b""
    error = 0 if in_range else 1
    return SimpleNamespace(
        partition_index=0, error_code=error, records=records, aborted_transactions=[], last_stable_offset=log.end, high_watermark=log.end
    )


def judged(log: EpochLog, position: int, epoch: int) -> Divergence | None:
    """What a leader with this log says to a reader of another one."""
    broker: Any = Broker(log)
    return asyncio.run(divergence_of(broker, broker, TopicPartition("t", 0), ReadTo(position, epoch)))


@st.composite
def logs(draw: st.DrawFn) -> EpochLog:
    """Entries with holes between them; epochs begin anywhere at or behind a place where an entry once began."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=12))
    entries, offset = [], 0
    for hole, count in steps:
        entries.append((offset + hole, count))
        offset += hole + count
    inside = {place for start, count in entries for place in range(start + 1, start + count)}
    starts = draw(st.sets(st.sampled_from([place for place in range(1, offset + 1) if place not in inside]), max_size=4))
    epochs = draw(st.permutations(range(0, 16, 2)))[: len(starts) + 1]
    return EpochLog(tuple(entries), tuple(zip(sorted(epochs), (0, *sorted(starts)), strict=True)), offset)


@dataclass(frozen=True)
class Way:
    """How a log is read: how many entries a fetch brings, where the run ends, what is left out, and whether answers lag behind fetches."""

    entries: int
    end: int
    excluded: tuple[tuple[int, int], ...]
    lagging: bool


@st.composite
def ways(draw: st.DrawFn) -> tuple[EpochLog, Way]:
    log = draw(logs())
    edges = sorted(draw(st.sets(st.integers(0, log.end), max_size=4)))
    excluded = tuple(pair for pair in list(pairwise(edges))[::2])
    return log, Way(draw(st.integers(1, 4)), draw(st.integers(1, log.end)), excluded, draw(st.booleans()))


def read(log: EpochLog, way: Way) -> list[tuple[int, int]]:
    """Every position that a commit could write down on the way, with the epoch that goes with it."""
    cursor = PartitionCursor(replace(task(end=way.end), excluded=way.excluded, last_epoch=-1))
    said: list[tuple[int, int]] = []
    waiting: list[ProduceBatch] = []

    def settle() -> None:
        for unit in waiting:
            cursor.accept(unit, unit.upstream_start)
            said.append((cursor.position, cursor.head("", "").source_epoch))
        waiting.clear()
        cursor.settle_fetched()
        said.append((cursor.position, cursor.head("", "").source_epoch))

    while not cursor.done:
        cursor.pass_excluded()
        if not cursor.wants_fetch:
            settle()
            continue
        transformed = limited(
            memoryview(log.fetched(cursor.fetched, way.entries)),
            {"FORWARD_RECORDS": 1},
            position=cursor.fetched,
            end=way.end,
            excluded=way.excluded,
        )
        cursor.fetched_to(transformed.next_position, transformed.last_leader_epoch)
        said.append((cursor.fetched, cursor.fetch_position().last_epoch))
        waiting += transformed.batches
        if not way.lagging:
            settle()
    return said


# A compacted topic: epoch 2 began inside the hole, and the run ended behind it.
HOLED = EpochLog(((0, 10), (15, 8)), ((0, 0), (2, 10)), 23)


@given(drawn=ways())
@example(drawn=(HOLED, Way(4, 15, (), lagging=False)))
@example(drawn=(HOLED, Way(4, 23, (), lagging=True)))
def test_a_log_that_was_not_truncated_never_looks_so(drawn: tuple[EpochLog, Way]) -> None:
    log, way = drawn
    for position, epoch in read(log, way):
        if epoch >= 0:
            found, end = log.end_of(epoch)
            assert (found, end >= position) == (epoch, True), (position, epoch)


@given(drawn=ways(), left=st.sets(st.integers(0, 12)))
@example(drawn=(HOLED, Way(4, 15, (), lagging=False)), left=set())
def test_a_log_that_was_only_compacted_and_moved_is_the_same_one(drawn: tuple[EpochLog, Way], left: set[int]) -> None:
    log, way = drawn
    for position, epoch in read(log, way):
        if epoch >= 0:
            assert judged(log, position, epoch) is None
            assert judged(log.moved(left), position, epoch) is None


@given(drawn=ways(), share=st.floats(0, 1, exclude_max=True), longer_by=st.integers(1, 30), older=st.booleans())
@example(drawn=(HOLED, Way(4, 15, (), lagging=False)), share=0.1, longer_by=30, older=False)
@example(drawn=(HOLED, Way(4, 23, (), lagging=False)), share=0.2, longer_by=30, older=True)
def test_a_log_that_was_rewritten_before_a_position_is_another_one(
    drawn: tuple[EpochLog, Way], share: float, longer_by: int, older: bool
) -> None:
    log, way = drawn
    edges = [at for at in range(log.end) if not any(start < at < start + count for start, count in log.entries)]
    at = edges[int(share * len(edges))]  # a batch is kept or lost as a whole
    other = log.rewritten(at, longer_by, older=older)
    for position, epoch in read(log, way):
        if epoch >= 0:
            divergence = judged(other, position, epoch)
            assert (divergence is not None) == (position > at), (position, epoch)
            assert divergence is None or divergence.end < position
        unknown = judged(other, position, -1)
        assert unknown == (Divergence(NO_LATER_EPOCH, other.end) if position > other.end else None)
        assert unknown is None or not unknown.proven


def test_a_log_whose_leader_knows_no_such_epoch_and_that_ends_before_the_position_was_truncated_if_nothing_lags() -> None:
    """As of a topic that was deleted and created again in a cluster without topic ids."""
    again = EpochLog(((0, 5),), ((0, 0),), 5)
    assert judged(again, 9, 7) == Divergence(NO_LATER_EPOCH, 5)
    assert judged(again, 5, 7) == Divergence(0, 4)
    assert judged(again, 9, 0) == Divergence(0, 5), "this one its epochs prove"


@given(drawn=ways())
def test_an_epoch_is_known_wherever_an_entry_was_read(drawn: tuple[EpochLog, Way]) -> None:
    """A position of which none is known has no truncation detected: only what was left out unread may leave one."""
    log, way = drawn
    for position, epoch in read(log, replace(way, excluded=())):
        assert (epoch >= 0) == (position > 0)
