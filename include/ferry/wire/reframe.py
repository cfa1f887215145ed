"""Reframing: records of several batches put into one new batch, without decoding any key, value or header.

A record is: length, attributes, timestamp delta, offset delta, then key, value and headers. Only the first four depend on the batch around
them, so they are rewritten and the rest is copied verbatim. This is the one place where Ferry works per record, in three ways:
- `Reframer.gather` reads a row of small plain batches straight from the fetched bytes: the common case of many tiny batches;
- `_append_all` takes all records of a contiguous CreateTime batch: offset deltas need not be read, they count up;
- `_append_selected` does everything else: holes (compaction), pieces that straddle a bound, LogAppendTime.

Kafka: record layout clients/.../record/DefaultRecord.java; a record's timestamp is the batch's base timestamp plus its delta whatever the
delete-horizon bit says (MemoryRecordsBuilder.java), and the batch's max timestamp if the broker set the time (DefaultRecordBatch.java).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from ferry.wire import compression, varint
from ferry.wire.batch import (
    CRC_FROM,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    MalformedBatch,
)
from ferry.wire.varint import SMALL, Buffer

# A record can grow by this much: its length by a byte or two, offset and timestamp deltas from 1 byte each to 5 and 10.
GROWTH_PER_RECORD = 16

# Batches whose base timestamp is not the first record's time.
_OWN_TIMES = LOG_APPEND_TIME | DELETE_HORIZON
# Attributes byte and timestamp delta together, by the delta.
_STAMPS = tuple(b"\0" + encoded for encoded in SMALL)
# The value of a one-byte varint.
_SIGNED = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
# Length, attributes, both deltas, key, value and header count in one byte each, after the part of the header that the length field counts.
_SHORTEST = HEADER_SIZE - LENGTH_OVERHEAD + 7
_ALL_BUT_TRANSACTIONAL = 0xFFFF & ~TRANSACTIONAL


class Piece(NamedTuple):
    """Some of the records of one batch: those with lower <= upstream offset < upper. `records` is decompressed."""

    header: BatchHeader
    records: Buffer
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Reframed:
    """Records with offset deltas 0 .. count-1 and timestamp deltas relative to `base_timestamp` (ms), not compressed.

    `base_timestamp` is the first record's, `max_timestamp` the greatest; both -1 when there are no records. `runs` says which upstream
    offsets the records have, in order: (first upstream offset, number of records), neighbours joined.
    """

    body: bytearray
    count: int
    base_timestamp: int
    max_timestamp: int
    runs: tuple[tuple[int, int], ...]


class Gathered(NamedTuple):
    """What `Reframer.gather` took: batches, the index after them, and of the last one its leader epoch and next upstream offset."""

    batches: int
    stop: int
    leader_epoch: int
    next_offset: int


class SmallBatches(NamedTuple):
    """Which batches `Reframer.gather` takes: upstream offsets in [lower, upper), length field and number of records below the limits."""

    lower: int
    upper: int
    length_below: int
    records_below: int


class Reframer:
    """Collects records into one body. Pieces are magic 2, not control batches, in upstream order."""

    __slots__ = ("_base", "_max_timestamp", "_runs", "body", "count")

    def __init__(self) -> None:
        self.body = bytearray()
        self.count = 0
        self._base: int | None = None
        self._max_timestamp = -1
        self._runs: list[tuple[int, int]] = []

    def add(self, piece: Piece) -> None:
        """Appends the kept records of `piece`. Raises MalformedBatch when its records and its header contradict each other."""
        header, records, lower, upper = piece
        offset, kept, greatest = header.base_offset, header.count, header.max_timestamp
        try:
            if header.contiguous and lower <= offset and offset + kept <= upper and not header.attributes & _OWN_TIMES:
                if self._base is None:
                    self._base = header.base_timestamp
                _append_all(bytes(records), kept, header.base_timestamp - self._base, self.count, self.body)
                _extend(self._runs, offset, kept)
            else:
                kept, greatest = self._append_selected(piece)
        except (IndexError, ValueError) as error:
            raise MalformedBatch(f"unreadable records in the batch at offset {offset}: {error}") from error
        self.count += kept
        self._max_timestamp = max(self._max_timestamp, greatest)

    # One function on purpose: it runs once per tiny batch, where a call per step would cost more than the step.
    def gather(self, data: memoryview, at: int, small: SmallBatches, body_limit: int) -> Gathered:
        """Appends all records of the row of small batches that begins at index `at` of the fetched bytes.

        Takes only what needs no other treatment: magic 2, plain, CreateTime, contiguous, within `small`, the CRC valid, while the body is
        below `body_limit` bytes. Stops before the first batch that is otherwise, for whatever reason. Raises MalformedBatch as `add` does.
        """
        unpack, checksum, stamps, table, limit = HEADER.unpack_from, crc32c.crc32c, _STAMPS, SMALL, len(SMALL)
        lower, upper, length_below, records_below = small
        body, runs = self.body, self._runs
        base, highest, index = self._base, self._max_timestamp, self.count
        size = len(data)
        last = size - HEADER_SIZE
        batches = 0
        epoch = next_offset = run_start = run_stop = -1
        while at <= last:
            offset, length, leader_epoch, magic, crc, attributes, last_delta, first, greatest, _, _, _, count = unpack(data, at)
            stop = at + LENGTH_OVERHEAD + length
            if (
                magic != 2
                or attributes & _ALL_BUT_TRANSACTIONAL
                or not _SHORTEST <= length < length_below
                or last_delta != count - 1
                or not 0 < count < records_below
                or offset < lower
                or offset + count > upper
                or stop > size
                or len(body) > body_limit
                or checksum(data[at + CRC_FROM : stop]) != crc
            ):
                break
            if base is None:
                base = first
            shift = first - base
            byte = data[at + HEADER_SIZE]
            if byte < 0x80:
                start = at + HEADER_SIZE + 1
                end = start + (byte >> 1)
            else:
                start = at + HEADER_SIZE + 2
                end = start + ((byte & 0x7F | data[start - 1] << 7) >> 1)
            # A single record with a length of one or two bytes and both deltas 0, as every producer writes it.
            if count == 1 and end == stop and not data[start + 1] and not data[start + 2] and 0 <= shift < limit and index < limit:
                record = stamps[shift] + table[index] + data[start + 3 : stop]
                length = len(record)
                body += table[length] if length < limit else varint.encode(length)
                body += record
            else:
                try:
                    _append_all(bytes(data[at + HEADER_SIZE : stop]), count, shift, index, body)
                except (IndexError, ValueError) as error:
                    raise MalformedBatch(f"unreadable records in the batch at offset {offset}: {error}") from error
            if offset != run_stop:
                if run_stop >= 0:
                    _extend(runs, run_start, run_stop - run_start)
                run_start = offset
            next_offset = run_stop = offset + count
            highest = max(highest, greatest)
            index += count
            epoch = leader_epoch
            batches += 1
            at = stop
        if batches:
            _extend(runs, run_start, run_stop - run_start)
        self._base, self._max_timestamp, self.count = base, highest, index
        return Gathered(batches, at, epoch, next_offset)

    def finish(self) -> Reframed:
        """All that was collected."""
        base = -1 if self._base is None else self._base
        return Reframed(self.body, self.count, base, self._max_timestamp, tuple(self._runs))

    def _append_selected(self, piece: Piece) -> tuple[int, int]:
        """Appends the kept records of `piece`; returns how many there are and their greatest timestamp."""
        header, records, lower, upper = piece
        data = bytes(records)
        append_time = header.max_timestamp if header.is_log_append_time else None
        body = self.body
        index = self.count
        at = 0
        greatest = -1
        for _ in range(header.count):
            length, at = varint.decode(data, at)
            end = at + length
            delta, at = varint.decode(data, at + 1)
            offset_delta, at = varint.decode(data, at)
            if at > end:
                raise ValueError("a record shorter than its own fields")
            offset = header.base_offset + offset_delta
            if lower <= offset < upper:
                timestamp = header.base_timestamp + delta if append_time is None else append_time
                if self._base is None:
                    self._base = timestamp
                record = b"\0" + varint.encode(timestamp - self._base) + varint.encode(index) + data[at:end]
                body += varint.encode(len(record))
                body += record
                _extend(self._runs, offset, 1)
                index += 1
                greatest = max(greatest, timestamp)
            at = end
        if at != len(data):
            raise ValueError(f"{header.count} records fill {at} of {len(data)} bytes")
        return index - self.count, greatest


def reframe(pieces: Iterable[Piece]) -> Reframed:
    """The kept records of all pieces as one body. Pieces and errors: see `Reframer`."""
    reframer = Reframer()
    for piece in pieces:
        reframer.add(piece)
    return reframer.finish()


def assemble(reframed: Reframed, codec: int) -> bytearray:
    """A whole magic-2 CreateTime batch of the records, compressed with `codec`, at base offset 0, without producer and without CRC.

    It is a template: `forward` patches the producer in and sums it.
    """
    body = compression.compress(codec, reframed.body)
    size = HEADER_SIZE + len(body)
    batch = bytearray(size)
    count = reframed.count
    # fmt: off
    HEADER.pack_into(
        batch, 0,
        0, size - LENGTH_OVERHEAD, -1, 2, 0, codec, count - 1, reframed.base_timestamp, reframed.max_timestamp, -1, -1, -1, count,
    )
    # fmt: on
    batch[HEADER_SIZE:] = body
    return batch


def _extend(runs: list[tuple[int, int]], start: int, count: int) -> None:
    if runs and sum(runs[-1]) == start:
        runs[-1] = (runs[-1][0], runs[-1][1] + count)
    else:
        runs.append((start, count))


# One function on purpose: this loop is the speed limit of small batches; a call per record or per varint would halve it.
def _append_all(data: bytes, count: int, shift: int, index: int, body: bytearray) -> None:
    """Appends all `count` records of `data`: timestamp deltas changed by `shift` ms, offset deltas from `index` on.

    Lengths and timestamp deltas of one and two bytes (below 8 KiB, within 8 s) are decoded in place.
    """
    small, stamps, signed, limit = SMALL, _STAMPS, _SIGNED, len(SMALL)
    at = 0
    for delta in range(index, index + count):
        byte = data[at]
        if byte < 0x80:
            at += 1
            end = at + (byte >> 1)
        elif (second := data[at + 1]) < 0x80:
            at += 2
            end = at + ((byte & 0x7F | second << 7) >> 1)
        else:
            length, at = varint.decode(data, at)
            end = at + length
        # One byte of attributes, always 0, precedes the timestamp.
        timestamp = data[at + 1]
        if timestamp < 0x80:
            at += 2
            timestamp = signed[timestamp] + shift
        elif (second := data[at + 2]) < 0x80:
            at += 3
            timestamp = timestamp & 0x7F | second << 7
            timestamp = (timestamp >> 1 ^ -(timestamp & 1)) + shift
        else:
            timestamp, at = varint.decode(data, at + 1)
            timestamp += shift
        while data[at] > 0x7F:
            at += 1
        at += 1
        if at > end:
            raise ValueError("a record shorter than its own fields")
        record = (
            (stamps[timestamp] if 0 <= timestamp < limit else b"\0" + varint.encode(timestamp))
            + (small[delta] if delta < limit else varint.encode(delta))
            + data[at:end]
        )
        length = len(record)
        body += small[length] if length < limit else varint.encode(length)
        body += record
        at = end
    if at != len(data):
        raise ValueError(f"{count} records fill {at} of {len(data)} bytes")
