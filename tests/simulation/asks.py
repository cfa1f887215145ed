"""Requests as data: each class makes one request of kafka-python, from plain values and from what earlier answers said (`Memory`).

Unit tests ask a simulated cluster with them; a script of them is asked of a real broker too (script.py). The same requests go over Ferry's
connections: batches as Ferry's BatchesRequest, the others as kafka-python's classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DeleteRecordsRequest, DescribeProducersRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.clusters.logs.producing import BatchesRequest

NO_ID = UUID(int=0)
NOBODY = (-1, -1)
# Newest versions before KIP-890, and those of Ferry otherwise.
V1_PRODUCE, V2_PRODUCE, V1_END, V2_END, V1_OFFSETS, V2_OFFSETS = 11, 13, 4, 5, 4, 5


@dataclass
class Memory:
    """What answers have said. `time`: ms, the base of all times of records."""

    time: int
    pairs: dict[str, tuple[int, int]] = field(default_factory=dict)  # producer id and epoch, by the names that a test gives
    topic_ids: dict[str, UUID] = field(default_factory=dict)

    def pair(self, name: str, epochs: int = 0) -> tuple[int, int]:
        """A pair, with an epoch that is so much larger."""
        producer_id, epoch = self.pairs.get(name, NOBODY)
        return producer_id, epoch + epochs


@dataclass(frozen=True)
class Ask:
    """One request."""

    def request(self, memory: Memory) -> Any:
        raise NotImplementedError

    def learn(self, memory: Memory, answer: Any) -> None:
        """Take what later requests need."""


def batch(
    memory: Memory,
    pair: tuple[int, int],
    sequence: int,
    values: Sequence[bytes],
    *,
    transactional: bool,
    keys: Sequence[bytes | None] = (),
    ages: Sequence[int] = (),
) -> bytes:
    """A record batch as a producer sends it. `ages`: ms before `memory.time`, by record."""
    built = DefaultRecordBatchBuilder(2, 0, transactional, *pair, sequence, 1 << 30)
    for offset, value in enumerate(values):
        key = keys[offset] if keys else b"k%d" % offset
        built.append(offset, memory.time - (ages[offset] if ages else 0), key, value, [])
    return bytes(built.build())


@dataclass(frozen=True)
class Produce(Ask):
    """One batch. `writer`: whose pair; empty: without one. `id`: the transactional id; empty: no transaction."""

    topic: str
    partition: int = 0
    writer: str = ""
    id: str = ""
    sequence: int = 0
    values: tuple[bytes, ...] = (b"v",)
    keys: tuple[bytes | None, ...] = ()
    ages: tuple[int, ...] = ()
    epochs: int = 0  # added to the epoch of the pair
    version: int = V2_PRODUCE
    damaged: bool = False
    topic_id: UUID | None = None

    def request(self, memory: Memory) -> BatchesRequest:
        pair = memory.pair(self.writer, self.epochs) if self.writer else NOBODY
        sequence = self.sequence if self.writer else -1
        data = batch(memory, pair, sequence, self.values, transactional=bool(self.id), keys=self.keys, ages=self.ages)
        if self.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        topic_id = self.topic_id or memory.topic_ids.get(self.topic, NO_ID)
        return BatchesRequest([(self.topic, topic_id, [(self.partition, (data,))])], self.id or None, self.version)


@dataclass(frozen=True)
class Fetch(Ask):
    topic: str
    partition: int = 0
    offset: int = 0
    committed: bool = False
    epoch: int = -1  # the leader epoch that the client knows
    last_epoch: int = -1
    limit: int = 1 << 20
    total: int = 1 << 20
    wait: int = 0
    least: int = 1
    version: int | None = None

    def request(self, memory: Memory) -> FetchRequest:
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=self.partition,
            current_leader_epoch=self.epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self.last_epoch,
            partition_max_bytes=self.limit,
        )
        topic = FetchRequest.FetchTopic(topic=self.topic, topic_id=memory.topic_ids.get(self.topic, NO_ID), partitions=[part])
        return FetchRequest(
            max_wait_ms=self.wait,
            min_bytes=self.least,
            max_bytes=self.total,
            isolation_level=int(self.committed),
            topics=[topic],
            max_version=self.version,
        )


@dataclass(frozen=True)
class ListOffsets(Ask):
    """`at`: a special timestamp, or with `age` ms before the base of times."""

    topic: str
    partition: int = 0
    at: int = -1
    age: int | None = None
    committed: bool = False
    epoch: int = -1

    def request(self, memory: Memory) -> ListOffsetsRequest:
        kind = ListOffsetsRequest.ListOffsetsTopic
        at = self.at if self.age is None else memory.time - self.age
        part = kind.ListOffsetsPartition(partition_index=self.partition, current_leader_epoch=self.epoch, timestamp=at)
        topics = [kind(name=self.topic, partitions=[part])]
        return ListOffsetsRequest(isolation_level=int(self.committed), topics=topics, timeout_ms=10_000)


@dataclass(frozen=True)
class EpochEnd(Ask):
    topic: str
    partition: int = 0
    asked: int = 0
    epoch: int = -1

    def request(self, memory: Memory) -> OffsetForLeaderEpochRequest:
        kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        part = kind.OffsetForLeaderPartition(partition=self.partition, current_leader_epoch=self.epoch, leader_epoch=self.asked)
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=[kind(topic=self.topic, partitions=[part])])


@dataclass(frozen=True)
class DeleteRecords(Ask):
    topic: str
    partition: int = 0
    offset: int = -1

    def request(self, memory: Memory) -> DeleteRecordsRequest:
        kind = DeleteRecordsRequest.DeleteRecordsTopic
        part = kind.DeleteRecordsPartition(partition_index=self.partition, offset=self.offset)
        return DeleteRecordsRequest(topics=[kind(name=self.topic, partitions=[part])], timeout_ms=10_000)


@dataclass(frozen=True)
class Producers(Ask):
    topic: str
    partition: int = 0

    def request(self, memory: Memory) -> DescribeProducersRequest:
        kind = DescribeProducersRequest.TopicRequest
        return DescribeProducersRequest(topics=[kind(name=self.topic, partition_indexes=[self.partition])])


@dataclass(frozen=True)
class Init(Ask):
    """The pair is remembered as `writer`. `holding`: the pair in the request; empty: none. `id` None: idempotence only."""

    id: str | None
    writer: str = "w"
    holding: str = ""
    epochs: int = 0
    timeout: int = 60_000

    def request(self, memory: Memory) -> InitProducerIdRequest:
        producer_id, epoch = memory.pair(self.holding, self.epochs) if self.holding else NOBODY
        return InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=self.timeout,
            producer_id=producer_id,
            producer_epoch=epoch,
            min_version=3,
            max_version=5,
        )

    def learn(self, memory: Memory, answer: Any) -> None:
        if answer.error_code == 0:
            memory.pairs[self.writer] = answer.producer_id, answer.producer_epoch


@dataclass(frozen=True)
class End(Ask):
    """`learn` takes the pair after it, where the protocol says one."""

    id: str
    commits: bool = True
    writer: str = "w"
    epochs: int = 0
    version: int = V2_END

    def request(self, memory: Memory) -> EndTxnRequest:
        producer_id, epoch = memory.pair(self.writer, self.epochs)
        return EndTxnRequest(
            transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=self.commits, max_version=self.version
        )

    def learn(self, memory: Memory, answer: Any) -> None:
        if answer.error_code == 0 and self.version >= V2_END and not self.epochs:
            memory.pairs[self.writer] = answer.producer_id, answer.producer_epoch


@dataclass(frozen=True)
class AddPartitions(Ask):
    id: str
    topic: str
    partition: int = 0
    writer: str = "w"
    epochs: int = 0
    beside: tuple[str, ...] = ()  # more topics, partition 0

    def request(self, memory: Memory) -> AddPartitionsToTxnRequest:
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        producer_id, epoch = memory.pair(self.writer, self.epochs)
        topics = [kind(name=self.topic, partitions=[self.partition]), *(kind(name=name, partitions=[0]) for name in self.beside)]
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
            max_version=3,
        )


@dataclass(frozen=True)
class AddOffsets(Ask):
    id: str
    group: str
    writer: str = "w"

    def request(self, memory: Memory) -> AddOffsetsToTxnRequest:
        producer_id, epoch = memory.pair(self.writer)
        return AddOffsetsToTxnRequest(transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, group_id=self.group)


@dataclass(frozen=True)
class CommitInTransaction(Ask):
    id: str
    group: str
    topic: str
    partition: int = 0
    offset: int = 0
    metadata: str = ""
    writer: str = "w"
    epochs: int = 0
    version: int = V2_OFFSETS

    def request(self, memory: Memory) -> TxnOffsetCommitRequest:
        kind = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        part = kind.TxnOffsetCommitRequestPartition(
            partition_index=self.partition, committed_offset=self.offset, committed_leader_epoch=-1, committed_metadata=self.metadata
        )
        producer_id, epoch = memory.pair(self.writer, self.epochs)
        return TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=self.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[kind(name=self.topic, partitions=[part])],
            max_version=self.version,
        )
