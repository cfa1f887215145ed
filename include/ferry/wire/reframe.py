"""Reframing puts the records of several batches into one new batch, without decoding keys, values or headers.

A record is: length, attributes, timestamp delta, offset delta, then key, value and headers. Only the first four depend on the batch around
them, so they are rewritten and the rest is copied verbatim. This is the one place where Ferry works per record, in three ways:
- `Reframer.take_small` reads a row of small uncompressed batches straight from the fetched bytes: the common case of many tiny batches;
- `records.append_all` takes neighbouring records that are all wanted: it need not read their offset deltas, which count up;
- `records.locate` finds the wanted records if a batch has holes (compaction) or extends beyond a bound.

Kafka: record layout clients/.../record/DefaultRecord.java; a record's timestamp is the batch's base timestamp plus its delta, also with the
delete-horizon bit (MemoryRecordsBuilder.java), or the batch's max timestamp if the broker set the time (DefaultRecordBatch.java).
"""

import struct
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c

from ferry.wire import compression
from ferry.wire.batch import CRC_FROM, DELETE_HORIZON, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, TRANSACTIONAL, BatchHeader, MalformedBatch
from ferry.wire.records import STAMPS, append_all, locate, times_of
from ferry.wire.varint import SMALL, Buffer, wrapped

# A record can grow by this much: its length by a byte or two, offset and timestamp deltas from 1 byte each to 5 and 10.
GROWTH_PER_RECORD = 16

_ALL_BUT_TRANSACTIONAL = 0xFFFF & ~TRANSACTIONAL
# The header without the producer's fields, and the first five bytes of the records.
_START = struct.Struct(">qiiBIhiqq14xi5B")
# Length, attributes, both deltas, key, value and header count in one byte each, after the part of the header that the length field counts.
_SHORTEST = HEADER_SIZE - LENGTH_OVERHEAD + 7
# A batch's length minus its only record's, if that one's own length takes one byte or two.
_ONE_BYTE_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD + 1
_TWO_BYTE_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD + 2


class TakenRow(NamedTuple):
    """What `Reframer.take_small` took: the index after it, and the next upstream offset of the last batch (-1: took none)."""

    stop: int
    next_offset: int


class SmallBatches(NamedTuple):
    """Which batches `Reframer.take_small` takes: of one leader epoch, offsets in [lower, upper), length and records below the limits."""

    lower: int
    upper: int
    length_below: int
    records_below: int
    epoch: int


@dataclass(slots=True)
class Reframer:
    """Collects records into one body, not compressed: offset deltas are 0 .. count-1, timestamp deltas relative to `base_timestamp` (ms).

    `base_timestamp` is the first record's, `max_timestamp` the greatest; both -1 when there are no records. `runs` says which upstream
    offsets the records have, in order: (first upstream offset, number of records), neighbours joined.
    """

    body: bytearray = field(default_factory=bytearray)
    count: int = 0
    base_timestamp: int = -1
    max_timestamp: int = -1
    runs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, header: BatchHeader, records: Buffer, lower: int, upper: int) -> None:
        """Appends the records of one batch with lower <= upstream offset < upper. Batches come in upstream order.

        `records`: decompressed, of magic 2, and not those of a control batch. Raises MalformedBatch when they and the header contradict
        each other; then nothing of the batch is kept.
        """
        size_before = len(self.body)
        inside = lower <= header.base_offset and header.next_offset <= upper
        data = bytes(records)
        try:
            if inside and header.contiguous and not header.attributes & DELETE_HORIZON:
                first, scale = times(header)
                base = self.base_timestamp if self.count else first
                append_all(self.body, data, header.count, self.count, shift=first - base, scale=scale)
                _join(self.runs, header.base_offset, header.count)
                self._count_in(base, header.count, header.max_timestamp)
            else:
                self._add_selected(header, data, lower, upper)
        except (IndexError, ValueError) as error:
            del self.body[size_before:]
            raise MalformedBatch(f"unreadable records in the batch at offset {header.base_offset}: {error}") from error

    # One function, and complex, on purpose: it runs once per tiny batch, where a call per step would cost more than the step.
    def take_small(self, data: memoryview, at: int, small: SmallBatches, body_limit: int) -> TakenRow:  # noqa: C901, PLR0912
        """Appends all records of the row of small batches that begins at index `at` of the fetched bytes.

        Takes batches that are magic 2, uncompressed, CreateTime, contiguous, within `small` and have a valid CRC, while the body is below
        `body_limit` bytes. Stops before the first other batch.
        """
        unpack, checksum, stamps, table, limit = _START.unpack_from, crc32c.crc32c, STAMPS, SMALL, len(SMALL)
        lower, upper, length_below, records_below, epoch = small
        body, runs = self.body, self.runs
        base, highest, index = self.base_timestamp, self.max_timestamp, self.count
        size = len(data)
        last = size - _START.size
        run_start = run_stop = -1
        while at <= last:
            offset, length, leader_epoch, magic, crc, attributes, last_delta, first, greatest, count, b0, b1, b2, b3, b4 = unpack(data, at)
            stop = at + LENGTH_OVERHEAD + length
            if (
                magic != 2
                or leader_epoch != epoch
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
            if not index:
                base = first
            shift = first - base
            # A single record that fills the batch, both deltas 0 as every producer writes it: where do its key and the rest begin?
            if count > 1:
                start = 0
            elif b0 < 0x80:
                start = 0 if b2 or b3 or b0 != (length - _ONE_BYTE_LENGTH) << 1 else at + HEADER_SIZE + 4
            else:
                start = 0 if b3 or b4 or b1 > 0x7F or (b0 & 0x7F | b1 << 7) != (length - _TWO_BYTE_LENGTH) << 1 else at + HEADER_SIZE + 5
            if start and 0 <= shift < limit and index < limit:
                record = stamps[shift] + table[index] + data[start:stop]
                # The old length fits into two bytes, and a delta from the tables into three: so `table` has the new length too.
                body += table[len(record)]
                body += record
            else:
                size_before = len(body)
                try:
                    append_all(body, bytes(data[at + HEADER_SIZE : stop]), count, index, shift=shift)
                except (IndexError, ValueError):
                    # `add` raises what is wrong with it.
                    del body[size_before:]
                    break
            if offset != run_stop:
                if run_stop >= 0:
                    _join(runs, run_start, run_stop - run_start)
                run_start = offset
            run_stop = offset + count
            if greatest > highest:  # noqa: PLR1730 (a call of max costs more than half a record)
                highest = greatest
            index += count
            at = stop
        if run_stop >= 0:
            _join(runs, run_start, run_stop - run_start)
            self.base_timestamp, self.max_timestamp, self.count = base, highest, index
        return TakenRow(at, run_stop)

    def _add_selected(self, header: BatchHeader, data: bytes, lower: int, upper: int) -> None:
        """Appends the records that lie within the bounds: some neighbours, perhaps with holes between their offsets."""
        starts, timestamps, offsets, _ = locate(data, header.count)
        low, high = bisect_left(offsets, lower - header.base_offset), bisect_left(offsets, upper - header.base_offset)
        if low >= high:
            return
        first, scale = times(header)
        base = self.base_timestamp if self.count else wrapped(first + timestamps[low] * scale)
        greatest = max(times_of(first, timestamps[low:high], scale))
        runs = _runs_of(offsets[low:high])
        append_all(self.body, data[starts[low] : starts[high]], high - low, self.count, shift=first - base, scale=scale)
        for start, count in runs:
            _join(self.runs, header.base_offset + start, count)
        self._count_in(base, high - low, greatest)

    def _count_in(self, base: int, count: int, greatest: int) -> None:
        self.base_timestamp = base
        self.max_timestamp = max(self.max_timestamp, greatest)
        self.count += count


def divided(header: BatchHeader, records: Buffer, limit: int) -> list[tuple[BatchHeader, bytes]]:
    """A magic-2 batch as several ones. Each has at most `limit` bytes, with the growth of its records, or one record.

    `records`: decompressed. The parts keep offsets, so their headers name more offsets than they have records. MalformedBatch as of `add`.
    """
    data = bytes(records)
    try:
        starts, _, _, _ = locate(data, header.count)
    except (IndexError, ValueError) as error:
        raise MalformedBatch(f"unreadable records in the batch at offset {header.base_offset}: {error}") from error
    parts, first = [], 0
    for index in range(1, header.count + 1):
        if index == header.count or starts[index + 1] - starts[first] + GROWTH_PER_RECORD * (index + 1 - first) > limit:
            parts.append((header._replace(count=index - first), data[starts[first] : starts[index]]))
            first = index
    return parts


def times(header: BatchHeader) -> tuple[int, int]:
    """What to add to a batch's timestamp deltas, and a factor to multiply them with before: 0 if the broker set one time for all."""
    return (header.max_timestamp, 0) if header.is_log_append_time else (header.base_timestamp, 1)


def assemble(reframed: Reframer, codec: int) -> bytearray:
    """A magic-2 CreateTime batch of the records, compressed with `codec`, at offset 0. ProduceBatch.encode writes producer and CRC."""
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


def _join(runs: list[tuple[int, int]], start: int, count: int) -> None:
    if runs and sum(runs[-1]) == start:
        runs[-1] = (runs[-1][0], runs[-1][1] + count)
    else:
        runs.append((start, count))


def _runs_of(offsets: list[int]) -> list[tuple[int, int]]:
    """Consecutive numbers put together: (first, how many). Raises ValueError unless they increase."""
    runs: list[tuple[int, int]] = []
    first = expected = offsets[0]
    for offset in offsets:
        if offset != expected:
            if offset < expected:
                raise ValueError("offsets that do not increase")
            runs.append((first, expected - first))
            first = offset
        expected = offset + 1
    runs.append((first, expected - first))
    return runs
