"""Keeps a lane's guard up to date while it follows: what the flow in the other direction has written since the run was planned.

A fetched response waits until the other flow's ledger was read to the high watermark that it has after the response. The records in the
response lie below a last stable offset of before, so their receipts were appended before, as in guard_reading.py. Only then does the lane
take the records, without those that the receipts name.

The ledger need not exist: as long as the cluster has no such topic, no other flow of Ferry writes into this flow's topics.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka.future import Future

from ferry.clusters.answers import FETCH, METADATA, Action
from ferry.clusters.connections import ClusterConnection, RequestNotSent
from ferry.clusters.fetch_round import FetchRound, key_of
from ferry.clusters.internal_reader import PARTITION_BYTES, InternalRecord, records_of
from ferry.clusters.leader_epochs import ask_epoch_ends
from ferry.clusters.leaders import Leaders
from ferry.clusters.offset_listing import READ_UNCOMMITTED
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.cursor import PartitionCursor
from ferry.copying.guard_reading import concerned
from ferry.copying.loop_guard import DECLARED, GuardDraft, TopicPair
from ferry.errors import OriginUnclear, PartitionUnavailable
from ferry.ledger.formats import place_of
from ferry.policy.naming import ledger_topic

# Rounds without news after which the fetched records are given up and fetched again.
ROUNDS = 20
PAUSE_SECONDS = 0.05


def guard_tail(connection: ClusterConnection, leaders: Leaders, flow: Flow, cursors: Iterable[PartitionCursor]) -> GuardTail | None:
    """For the cursors of a lane; None if no other flow can write its partitions. As of GuardTail."""
    writable = [cursor for cursor in cursors if cursor.task.other_ledger is not None]
    return GuardTail(connection, leaders, flow, writable) if writable else None


class GuardTail:
    """Excludes offsets in the cursors of one lane. `connection`: to the source, and not one that waits for records."""

    def __init__(self, connection: ClusterConnection, leaders: Leaders, flow: Flow, cursors: Iterable[PartitionCursor]) -> None:
        """`leaders`: of the lane's source topics."""
        self._connection, self._leaders = connection, leaders
        self._cursors = {cursor.task.key: cursor for cursor in cursors}
        tasks = [cursor.task for cursor in self._cursors.values()]
        self._pairs = {
            task.topic: TopicPair(task.topic, str(task.topic_id), task.remote_topic, str(task.remote_topic_id)) for task in tasks
        }
        self._topic = ledger_topic(flow.target.alias)
        self._where, self._back = place_of(flow.source, self._topic), f"{flow.target.alias}->{flow.source.alias}"
        reads = [task.other_ledger for task in tasks if task.other_ledger is not None]
        self._ids = {read.topic_id for read in reads} - {""}
        self._positions = {number: min(read.positions.get(number, 0) for read in reads) for read in reads for number in read.positions}
        self._asked = self._covered = 0
        self._reading: Future | None = None

    async def catch_up(self) -> None:
        """Exclude what the ledger says now or later. RequestNotSent, RequestLost and FerryError: nobody knows what it says."""
        self._asked += 1
        wanted = self._asked
        while self._covered < wanted:
            if self._reading is None:
                self._reading = self._connection.loop.start(self._read, self._asked)
            await self._reading

    async def _read(self, covers: int) -> None:
        try:
            left = await self._partitions()
            records, positions = await self._news(left) if left else ([], {})
            await self._exclude(records)
            self._positions |= positions
            self._covered = covers
        finally:
            self._reading = None

    async def _partitions(self) -> dict[TopicPartition, int]:
        """Where to read on in each partition of the ledger; none if there is no ledger."""
        leaders = self._connection.leaders
        await leaders.known({self._topic})
        if code := leaders.refused(self._topic):
            raise self._connection.denied(f"reading {self._topic}", METADATA.right(code, topic=self._topic))
        topic_id = leaders.topic_id(self._topic)
        if topic_id is not None:
            self._ids.add(str(topic_id))
        if len(self._ids) > (topic_id is not None):
            self._stop(f"the ledger of flow {self._back} was deleted: nobody knows which records came from there")
            return {}
        return {TopicPartition(self._topic, number): self._positions.get(number, 0) for number in leaders.partitions(self._topic)}

    async def _news(self, left: dict[TopicPartition, int]) -> tuple[list[InternalRecord], dict[int, int]]:
        """The records up to the high watermarks of now, and the positions after them."""
        found, ends, positions, silent = list[InternalRecord](), dict[TopicPartition, int](), dict[int, int](), 0
        while left:
            unknown = [key for key in left if key not in ends]
            told = await FetchRound(left, PARTITION_BYTES, READ_UNCOMMITTED, ending=unknown, anew=bool(unknown)).ask(self._connection)
            ends |= told.ends
            before, left = left, dict(left)
            for part in told.fetched:
                if not part.error:
                    records, left[key_of(part)] = records_of(part, ends.get(key_of(part), 0))
                    found += records
                elif FETCH.action(part.error) is Action.DENIED:
                    raise self._connection.denied(f"reading {self._topic}", FETCH.right(part.error, topic=self._topic))
            silent = silent + 1 if left == before else 0
            positions |= {key.partition: position for key, position in left.items()}
            left = {key: position for key, position in left.items() if key not in ends or position < ends[key]}
            if left and silent > ROUNDS:
                raise RequestNotSent(f"{self._where} cannot be read to its end")
            if silent:
                await self._connection.loop.sleep(PAUSE_SECONDS)
        return found, positions

    async def _exclude(self, records: Iterable[InternalRecord]) -> None:
        drafts = {key: GuardDraft(cursor.committed_offset) for key, cursor in self._cursors.items()}
        for record in records:
            if found := concerned(record, self._pairs, drafts, self._where):
                draft, receipt = found
                draft.add(receipt)
                if receipt.kind in DECLARED and max(receipt.found, receipt.downstream_end) >= 0:
                    key = TopicPartition(receipt.remote_topic, receipt.partition)
                    problem = f"an operator told flow {self._back} which records of it came from there: the run plans it again"
                    self._cursors[key].stop(PartitionUnavailable, problem)
        # The leader's own epoch has no end yet.
        older = {key: draft.epochs - {self._leaders.of(*key).epoch} for key, draft in drafts.items()}
        asked = {key: epochs for key, epochs in older.items() if epochs}
        ends = await ask_epoch_ends(self._connection, asked) if asked else {}
        if ends.keys() != asked.keys():
            raise RequestNotSent(f"the leaders of {sorted(asked.keys() - ends.keys())} do not say where older epochs end")
        for key, draft in drafts.items():
            self._cursors[key].exclude(draft.finish(ends.get(key))[0])

    def _stop(self, problem: str) -> None:
        for cursor in self._cursors.values():
            cursor.stop(OriginUnclear, problem)
