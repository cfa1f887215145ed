"""Reframing: records of several batches put into one new batch, without decoding any key, value or header.

A record is: length, attributes, timestamp delta, offset delta, then key, value and headers. Only the first four depend on the batch around
them, so they are rewritten and the rest is copied verbatim. This is the one place where Ferry works per record; two loops do it:
- `_append_all` for whole contiguous CreateTime batches: offset deltas need not be read, they count up;
- `_append_selected` for everything else: holes (compaction), pieces that straddle a bound, LogAppendTime.

Kafka: record layout clients/.../record/DefaultRecord.java; a record's timestamp is the batch's base timestamp plus its delta whatever the
delete-horizon bit says (MemoryRecordsBuilder.java), and the batch's max timestamp if the broker set the time (DefaultRecordBatch.java).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ferry.wire import compression, varint
from ferry.wire.batch import DELETE_HORIZON, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, LOG_APPEND_TIME, BatchHeader, MalformedBatch
from ferry.wire.varint import SMALL

# Batches whose base timestamp is not the first record's time.
_OWN_TIMES = LOG_APPEND_TIME | DELETE_HORIZON
# Attributes byte and timestamp delta together, by the delta.
_STAMPS = tuple(b"\0" + encoded for encoded in SMALL)

# A record can grow by this much: its length by a byte or two, offset and timestamp deltas from 1 byte each to 5 and 10.
GROWTH_PER_RECORD = 16


class Piece(NamedTuple):
    """Some of the records of one batch: those with lower <= upstream offset < upper. `records` is decompressed."""

    header: BatchHeader
    records: memoryview
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Reframed:
    """Records with offset deltas 0 .. count-1 and timestamp deltas relative to `base_timestamp` (ms).

    `base_timestamp` is the first record's, `max_timestamp` the greatest; both -1 when there are no records. `runs` says which upstream
    offsets the records have, in order: (first upstream offset, number of records), neighbours joined.
    """

    body: bytearray
    count: int
    base_timestamp: int
    max_timestamp: int
    runs: tuple[tuple[int, int], ...]


def reframe(pieces: Sequence[Piece]) -> Reframed:
    """The kept records of all pieces as one body, not compressed.

    Pieces are magic 2, not control batches, in upstream order. Raises MalformedBatch when records and header of a piece contradict.
    """
    body = bytearray()
    runs: list[tuple[int, int]] = []
    count = 0
    base: int | None = None
    max_timestamp = -1
    for piece in pieces:
        header, records, lower, upper = piece
        offset, _, _, _, _, attributes, last_delta, first_timestamp, greatest, _, _, _, kept = header
        try:
            if kept == last_delta + 1 and lower <= offset and offset + kept <= upper and not attributes & _OWN_TIMES:
                if base is None:
                    base = first_timestamp
                _append_all(bytes(records), kept, first_timestamp - base, count, body)
                if runs and sum(runs[-1]) == offset:
                    runs[-1] = (runs[-1][0], runs[-1][1] + kept)
                elif kept:
                    runs.append((offset, kept))
            else:
                base, kept, greatest = _append_selected(piece, base, count, body, runs)
        except (IndexError, ValueError) as error:
            raise MalformedBatch(f"unreadable records in the batch at offset {offset}: {error}") from error
        count += kept
        max_timestamp = max(max_timestamp, greatest)
    return Reframed(body, count, -1 if base is None else base, max_timestamp, tuple(runs))


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
    small, stamps, limit = SMALL, _STAMPS, len(SMALL)
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
            timestamp = (timestamp >> 1 ^ -(timestamp & 1)) + shift
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


def _append_selected(
    piece: Piece, base: int | None, index: int, body: bytearray, runs: list[tuple[int, int]]
) -> tuple[int | None, int, int]:
    """Appends the kept records of `piece`, offset deltas from `index` on.

    Returns the base timestamp (the first record's own, if `base` was still None), how many records were kept, and their greatest timestamp.
    """
    header, records, lower, upper = piece
    data = bytes(records)
    append_time = header.max_timestamp if header.is_log_append_time else None
    at = kept = 0
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
            if base is None:
                base = timestamp
            record = b"\0" + varint.encode(timestamp - base) + varint.encode(index + kept) + data[at:end]
            body += varint.encode(len(record))
            body += record
            _extend(runs, offset, 1)
            kept += 1
            greatest = max(greatest, timestamp)
        at = end
    if at != len(data):
        raise ValueError(f"{header.count} records fill {at} of {len(data)} bytes")
    return base, kept, greatest
