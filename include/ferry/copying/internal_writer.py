"""Appends records to Ferry's own topics (ledger, state), as batches, within a transaction that the caller holds."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.clusters.connections import ClusterConnection, Wakeup
from ferry.clusters.coordination import ProducerIdentity
from ferry.clusters.leaders import Leaders
from ferry.clusters.partitions import TopicPartition
from ferry.copying.appender import Appender
from ferry.errors import ClusterUnreachable, NotAuthorized

# The longest wait for an answer before batches that were postponed are looked at again.
IDLE_SECONDS = 0.05

KeyValue = tuple[bytes, bytes | None]
# Receipts reach about 100 KB each; a batch stays well below the default max.message.bytes of 1 MiB.
BATCH_BYTES = 512 * 1024
RECORD_OVERHEAD_BYTES = 64


class InternalWriter:
    """Writes under one transactional id. Call `adopt` before each transaction."""

    def __init__(
        self, connection: ClusterConnection, leaders: Leaders, wakeup: Wakeup, transactional_id: str, *, transactions_v2: bool
    ) -> None:
        self._alias = connection.alias
        self._leaders = leaders
        self._wakeup = wakeup
        self._appender = Appender(
            connection, leaders, wakeup, transactional_id=transactional_id, transactions_v2=transactions_v2, halve=split_batch
        )

    def adopt(self, identity: ProducerIdentity) -> None:
        """Write as this producer from now on."""
        self._appender.adopt(identity)

    async def append(self, records: Mapping[TopicPartition, Sequence[KeyValue]]) -> None:
        """Returns when all records are accepted. Fenced, OutcomeUnknown; if a topic takes none, NotAuthorized or ClusterUnreachable."""
        for key, pairs in records.items():
            for batch in internal_batches(pairs):
                self._appender.enqueue(key, batch)
        while any(self._appender.busy(key) for key in records):
            self._appender.pump()
            await self._wakeup.wait(IDLE_SECONDS)
            for _ in self._appender.settle():
                pass
            if self._appender.leaders_stale and self._leaders.rested:
                self._appender.leaders_stale = False
                await self._leaders.refresh()
        for key in records:
            refusal = self._appender.refusal(key)
            if refusal is not None:
                kind = NotAuthorized if refusal.denied else ClusterUnreachable
                raise kind(f"cluster {self._alias}: {key.topic}-{key.partition} takes no records: {refusal.problem}")


@dataclass(frozen=True)
class InternalBatch:
    """Some records (key, value; a tombstone has none) for one partition of an internal topic."""

    records: tuple[KeyValue, ...]
    timestamp: int

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in self.records)

    @property
    def own(self) -> int:
        """Bytes in memory, roughly."""
        return self.size

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes]:
        """As a magic-2 batch, not compressed, in one buffer."""
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=transactional,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=base_sequence,
            batch_size=1 << 30,
        )
        for offset, (key, value) in enumerate(self.records):
            builder.append(offset, self.timestamp, key, value, [])
        return (bytes(builder.build()),)


def internal_batches(records: Iterable[KeyValue]) -> Iterator[InternalBatch]:
    """The records in order, in as few batches as their size allows, with the current time (ms) as timestamp."""
    timestamp = time.time_ns() // 1_000_000
    chunk: list[KeyValue] = []
    size = 0
    for key, value in records:
        weight = len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
        if chunk and size + weight > BATCH_BYTES:
            yield InternalBatch(tuple(chunk), timestamp)
            chunk, size = [], 0
        chunk.append((key, value))
        size += weight
    if chunk:
        yield InternalBatch(tuple(chunk), timestamp)


def split_batch(batch: InternalBatch) -> tuple[InternalBatch, InternalBatch]:
    """Two batches with half the records each, for a topic that takes only smaller batches. `batch` has at least two records."""
    middle = batch.count // 2
    return InternalBatch(batch.records[:middle], batch.timestamp), InternalBatch(batch.records[middle:], batch.timestamp)
