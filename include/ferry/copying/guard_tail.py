"""Keeps a lane's guard up to date while it follows: with the records that the other flow has written since the run was planned.

A fetched response waits until the other flow's ledger was read up to a high watermark that was asked for after the response came. Its
records lie below a last stable offset taken before, so their receipts are all there, as in guard_reading.py. Only then does the lane take
the records, without those that receipts name. A receipt names offsets under a leader epoch, and a batch has the epoch under which it was
appended: where both agree, it is the other flow's batch.

The ledger need not exist. As long as no broker knows it, the other flow has never run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kafka.future import Future

from ferry import clock
from ferry.clusters.logs.fetch_round import FetchRound, Told, key_of
from ferry.clusters.logs.fetching import Fetched, log_bounds
from ferry.clusters.logs.internal_reader import PARTITION_BYTES, InternalRecord, records_of
from ferry.clusters.logs.offset_listing import READ_UNCOMMITTED, vote
from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.error_policy import FETCH, METADATA, Action
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.config import Flow
from ferry.copying.guard_reading import concerned
from ferry.copying.lane_messages import PartitionTask
from ferry.copying.loop_guard import DECLARED, GuardDraft
from ferry.errors import OriginUnclear, UnreadableRecord
from ferry.ledger.formats import place_of
from ferry.policy.naming import ledger_topic
from ferry.wire.batch import MalformedBatch, iterate_batches
from ferry.wire.ranges import Ranges, union, within

# Rounds without news after which the caller tries again.
ROUNDS = 20
PAUSE_SECONDS = 0.05
# A lane without records reads on at this interval. Otherwise it would have much to read at once later.
QUIET_SECONDS = 5.0
# Stands for the leader epoch of a receipt that does not name it.
NO_EPOCH = -1


@dataclass
class _Place:
    """The next offset to read in a partition of the ledger, and the leader epoch of the record before it."""

    offset: int
    epoch: int = NO_EPOCH


class GuardTail:
    """The guard of one lane's partitions. `connection`: to the source, and not one that waits for records."""

    def __init__(self, connection: ClusterConnection, flow: Flow, tasks: Iterable[PartitionTask]) -> None:
        guarded = {task.key: (task, task.other_ledger) for task in tasks if task.other_ledger is not None}
        self._connection, self._topic = connection, ledger_topic(flow.target.alias)
        self._where, self._back = place_of(flow.source, self._topic), flow.reverse_name
        self._pairs = {task.topic: task for task, _ in guarded.values()}
        # By source partition: the offsets that the other flow wrote, by leader epoch.
        self._written: dict[TopicPartition, dict[int, Ranges]] = {key: {} for key in guarded}
        self._low = dict.fromkeys(guarded, 0)
        for key, (_, read) in guarded.items():
            self._add(key, read.ahead)
        reads = [read for _, read in guarded.values()]
        self._ids = {read.topic_id for read in reads} - {""}
        numbers = {number for read in reads for number in read.positions}
        self._places = {number: _Place(min(read.positions.get(number, 0) for read in reads)) for number in numbers}
        self.declared: set[TopicPartition] = set()  # partitions with records that an operator has declared
        self._asked = self._covered = 0
        self._read_at = clock.monotonic()
        self._reading: Future | None = None

    @classmethod
    def of(cls, connection: ClusterConnection, flow: Flow, tasks: Collection[PartitionTask]) -> Self | None:
        """None if no other flow can write any of the partitions."""
        return cls(connection, flow, tasks) if any(task.other_ledger is not None for task in tasks) else None

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether another flow can write the source partition."""
        return key in self._written

    @property
    def is_old(self) -> bool:
        """Whether the ledger was not read for a while."""
        return clock.monotonic() - self._read_at > QUIET_SECONDS

    def written(self, key: TopicPartition, records: memoryview) -> Ranges:
        """The offsets of these records, as fetched, that the other flow wrote. MalformedBatch."""
        by_epoch = self._written[key]
        if not by_epoch:
            return ()
        return union(
            span
            for header, _ in iterate_batches(records)
            for epoch in (header.leader_epoch, NO_EPOCH)
            for span in within(by_epoch.get(epoch, ()), header.base_offset, header.next_offset)
        )

    def ever_written(self, key: TopicPartition) -> Ranges:
        """All offsets that receipts name, under any epoch."""
        return union(span for ranges in self._written.get(key, {}).values() for span in ranges)

    def forget(self, key: TopicPartition, before: int) -> None:
        """Nobody asks any more for offsets of the source partition before this one."""
        self._low[key] = before
        for epoch, ranges in list(self._written[key].items()):
            if ranges[-1][1] <= before:
                del self._written[key][epoch]
            elif ranges[0][1] <= before:
                self._written[key][epoch] = within(ranges, before, ranges[-1][1])

    async def catch_up(self) -> None:
        """Read everything that the ledger holds at the time of the call. RequestNotSent, RequestLost and FerryError."""
        self._asked += 1
        wanted = self._asked
        while self._covered < wanted:
            if self._reading is None:
                self._reading = self._connection.loop.start(self._read, self._asked)
            await self._reading

    async def _read(self, covers: int) -> None:
        try:
            left = await self._partitions()
            if left:
                await self._read_on(left)
                await self._partitions()  # it may be another ledger by now
            self._covered, self._read_at = covers, clock.monotonic()
        finally:
            self._reading = None

    async def _partitions(self) -> set[TopicPartition]:
        """The partitions of the ledger; none if there is none, and never was. OriginUnclear if it is another ledger than before."""
        leaders = self._connection.leaders
        await leaders.known({self._topic})
        if leaders.is_missing(self._topic):
            await vote(self._connection, self._topic)
        if code := leaders.refused(self._topic):
            raise self._connection.denied(f"reading {self._topic}", METADATA.right(code, topic=self._topic))
        topic_id = leaders.topic_id(self._topic)
        self._ids |= {str(topic_id)} - {"None"}
        if leaders.is_missing(self._topic) and not self._ids:
            return set()
        if len(self._ids) > 1 or leaders.is_gone(self._topic):
            topic, partition = next(iter(self._written))
            raise OriginUnclear(
                topic, partition, f"the ledger of flow {self._back} was deleted: nobody knows which records came from there"
            )
        if topic_id is None or not leaders.partitions(self._topic):
            raise RequestNotSent(f"{self._where} has no leader")
        return {TopicPartition(self._topic, number) for number in leaders.partitions(self._topic)}

    async def _read_on(self, left: set[TopicPartition]) -> None:
        """Read at least to the high watermarks of now, and to the end that the last answer names, as internal_reader.py does."""
        ends, silent = dict[TopicPartition, int](), 0
        while left:
            places = {key: self._places.setdefault(key.partition, _Place(0)) for key in left}
            told = await self._fetch(places, left - ends.keys())
            for key, end in told.ends.items():
                ends.setdefault(key, end)
            left |= {TopicPartition(self._topic, number) for number in told.partitions} - ends.keys()
            before = [place.offset for place in places.values()]
            for part in told.fetched:
                await self._take(part, ends)
            silent = silent + 1 if before == [place.offset for place in places.values()] and not told.ends else 0
            left = {key for key in left if key not in ends or self._places.setdefault(key.partition, _Place(0)).offset < ends[key]}
            if left and silent:
                if silent > ROUNDS:
                    raise RequestNotSent(f"{self._where} cannot be read to its end")
                await self._connection.loop.sleep(PAUSE_SECONDS)

    async def _fetch(self, places: Mapping[TopicPartition, _Place], unknown: set[TopicPartition]) -> Told:
        """What follows these places. `unknown`: partitions whose end is not known."""
        positions, epochs = {key: place.offset for key, place in places.items()}, {key: place.epoch for key, place in places.items()}
        fetch = FetchRound(positions, PARTITION_BYTES, READ_UNCOMMITTED, epochs=epochs, ending=unknown, anew=bool(unknown))
        return await fetch.ask(self._connection)

    async def _take(self, part: Fetched, ends: dict[TopicPartition, int]) -> None:
        key = key_of(part)
        place = self._places[key.partition]
        if not part.error and not part.diverged:
            if key in ends:
                ends[key] = max(ends[key], part.high_watermark)
                try:
                    records, place.offset = records_of(part, ends[key])
                except MalformedBatch as problem:
                    raise UnreadableRecord(f"{self._where}, partition {key.partition}: {problem}") from problem
                place.epoch = records[-1].epoch if records else place.epoch
                self._note(records)
        elif part.diverged or FETCH.action(part.error) is Action.BOUNDS:  # records were lost, at the end or at the beginning
            place.offset, place.epoch = (await log_bounds(self._connection, self._connection.leaders, *key))[0], NO_EPOCH
        elif FETCH.action(part.error) is Action.DENIED:
            raise self._connection.denied(f"reading {self._topic}", FETCH.right(part.error, topic=self._topic))

    def _note(self, records: Sequence[InternalRecord]) -> None:
        drafts = {key: GuardDraft(low) for key, low in self._low.items()} if records else {}
        for record in records:
            if told := concerned(record, self._pairs, drafts, self._where):
                draft, receipt = told
                draft.add(receipt)
                if receipt.kind in DECLARED and max(receipt.found, receipt.downstream_end) >= 0:
                    self.declared.add(TopicPartition(receipt.remote_topic, receipt.partition))
        for key, draft in drafts.items():
            self._add(key, draft.beyond(draft.low))

    def _add(self, key: TopicPartition, written: Iterable[tuple[int, int, int]]) -> None:
        for epoch, ranges in grouped((epoch, (start, end)) for epoch, start, end in written).items():
            self._written[key][epoch] = union([*self._written[key].get(epoch, ()), *ranges])
