"""Record batches as a broker keeps them: the bytes that a producer sent, with the base offset and the leader epoch written into them.

Neither of the two is covered by the checksum (DefaultRecordBatch.java), so a batch is placed without reading its records. Only the search
for a time, compaction, and the check of keys in compacted topics read records. This code shares nothing with Ferry's own decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import crc32c
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

HEADER = struct.Struct(">qiiBIhiqqqhii")
LENGTH_OVERHEAD, CRC_FROM = 12, 21
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
NO_PRODUCER, NO_EPOCH, NO_SEQUENCE = -1, -1, -1
LARGEST_SEQUENCE = (1 << 31) - 1
# Of attributes and max timestamp, from the start of the batch.
_ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 21, 35
_PLACE, _EPOCH = struct.Struct(">q"), struct.Struct(">i")
# A record with key (version, type) and value (version, coordinator epoch), both of version 0.
_MARKER = struct.Struct(">BBBBBhhBhiB")


class Batch(NamedTuple):
    """One batch of a log. `next_offset`: of what follows it, also if compaction has removed its last records."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def commits(self) -> bool:
        """Of a marker: whether it commits. The type is the second number of its key."""
        return self.data[HEADER.size + 7 + 1] == 1

    @property
    def coordinator_epoch(self) -> int:
        """Of a marker."""
        found: int = _EPOCH.unpack_from(self.data, HEADER.size + 12)[0]
        return found

    @property
    def last_sequence(self) -> int:
        """Of its last offset; sequence numbers begin at 0 again after the largest."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.next_offset - self.base_offset - 1) % (LARGEST_SEQUENCE + 1)


class Sent(NamedTuple):
    """The header of a batch that a producer sent."""

    length: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)


def sent(data: bytes) -> Sent:
    """The header of the first batch in `data`; struct.error if that is too short."""
    _, length, _, magic, crc, attributes, delta, _, newest, producer, epoch, sequence, count = HEADER.unpack_from(data)
    return Sent(length, magic, crc, attributes, delta, newest, producer, epoch, sequence, count)


def is_intact(data: bytes, head: Sent) -> bool:
    """Whether the checksum holds."""
    return bool(crc32c.crc32c(memoryview(data)[CRC_FROM : LENGTH_OVERHEAD + head.length]) == head.crc)


def placed(data: bytes, base_offset: int, leader_epoch: int, appended: int | None = None) -> Batch:
    """A producer's batch at an offset of the log. `appended`: the broker's time in ms, for a topic that keeps this (LogAppendTime)."""
    if appended is not None:
        changed = bytearray(data)
        struct.pack_into(">h", changed, _ATTRIBUTES_AT, sent(data).attributes | LOG_APPEND_TIME)
        struct.pack_into(">q", changed, _MAX_TIMESTAMP_AT, appended)
        data = _with_checksum(changed)
    head = sent(data)
    data = _PLACE.pack(base_offset) + data[8:12] + _EPOCH.pack(leader_epoch) + data[16:]
    return Batch(
        base_offset,
        base_offset + head.last_offset_delta + 1,
        leader_epoch,
        data,
        head.attributes,
        head.max_timestamp,
        head.producer_id,
        head.producer_epoch,
        head.base_sequence,
        head.records,
    )


def marker(producer_id: int, producer_epoch: int, coordinator_epoch: int, now: int, *, commits: bool) -> bytes:
    """A control batch with the end of a transaction (EndTransactionMarker), still without a place."""
    # Lengths are zigzag varints; the record has 16 bytes after its length.
    record = _MARKER.pack(32, 0, 0, 0, 8, 0, int(commits), 12, 0, coordinator_epoch, 0)
    head = (0, HEADER.size + len(record) - LENGTH_OVERHEAD, 0, 2, 0, TRANSACTIONAL | CONTROL, 0, now, now)
    return _with_checksum(bytearray(HEADER.pack(*head, producer_id, producer_epoch, NO_SEQUENCE, 1) + record))


class Record(NamedTuple):
    """One record of a batch. `timestamp` in ms."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def records(batch: Batch) -> Iterator[Record]:
    """The records in order, decompressed."""
    if batch.records:
        for record in DefaultRecordBatch(batch.data):
            yield Record(record.offset, record.timestamp, record.key, record.value, record.headers)


def keys(data: bytes) -> Iterator[bytes | None]:
    """The keys of a batch that has no place yet."""
    return (record.key for record in DefaultRecordBatch(data))


def with_records(batch: Batch, kept: list[Record]) -> Batch:
    """The batch after compaction: the same offsets and header, only these records (LogCleaner; it keeps a producer's last batch empty)."""
    if len(kept) == batch.records:
        return batch
    built = DefaultRecordBatchBuilder(2, batch.attributes & 7, 0, batch.producer_id, batch.producer_epoch, batch.base_sequence, 1 << 30)
    for record in kept:
        built.append(record.offset - batch.base_offset, record.timestamp, record.key, record.value, record.headers)
    data = bytearray(built.build() if kept else batch.data[: HEADER.size])
    if not kept:
        struct.pack_into(">i", data, 8, HEADER.size - LENGTH_OVERHEAD)
        struct.pack_into(">i", data, HEADER.size - 4, 0)
    struct.pack_into(">h", data, _ATTRIBUTES_AT, batch.attributes)
    struct.pack_into(">i", data, _ATTRIBUTES_AT + 2, batch.next_offset - batch.base_offset - 1)
    struct.pack_into(">q", data, _MAX_TIMESTAMP_AT, max((one.timestamp for one in kept), default=batch.max_timestamp))
    return placed(_with_checksum(data), batch.base_offset, batch.leader_epoch)


def _with_checksum(data: bytearray) -> bytes:
    struct.pack_into(">I", data, CRC_FROM - 4, crc32c.crc32c(memoryview(data)[CRC_FROM:]))
    return bytes(data)
