"""Record batches for internal topics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry import clock

KeyValue = tuple[bytes, bytes | None]
# Receipts reach about 100 KB each; a batch stays well below the default max.message.bytes of 1 MiB.
BATCH_BYTES = 512 * 1024
RECORD_OVERHEAD_BYTES = 64


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

    own = size  # in memory it has as many

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes]:
        """A magic-2 batch, not compressed, in one buffer."""
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


def internal_batches(records: Iterable[KeyValue], timestamp: int = 0, limit: int = BATCH_BYTES) -> Iterator[InternalBatch]:
    """The records in order, in as few batches of about `limit` bytes as possible. `timestamp` in ms, 0: now."""
    timestamp = timestamp or clock.time_ms()
    chunk: list[KeyValue] = []
    size = 0
    for key, value in records:
        weight = len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
        if chunk and size + weight > limit:
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
