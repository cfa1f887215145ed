"""The records of a batch as bytes: finds where they are, and writes them with new deltas.

A record is: length, attributes, timestamp delta, offset delta, then key, value and headers, which these functions do not read. Their loops
are the only work that Ferry does for each record, so they decode short varints in place, without a call.
Layout: clients/.../record/DefaultRecord.java.
"""

from collections.abc import Iterator

from ferry.wire import varint
from ferry.wire.batch import MalformedBatch
from ferry.wire.varint import SMALL

# Attributes byte and timestamp delta together, by the delta.
STAMPS = tuple(b"\0" + encoded for encoded in SMALL)
# The value of a one-byte varint, and 0 instead where the broker set one time for all records.
_SIGNED = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
_IGNORED = (0,) * 128


def locate(data: bytes, count: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """For the `count` records of `data`: where each starts (and the last ends), timestamp deltas, offset deltas, and where keys begin.

    ValueError or IndexError if `data` is not exactly that many records.
    """
    starts, timestamps, offsets, keys = [0], [], [], []
    at = 0
    for _ in range(count):
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
        # One byte of attributes precedes the timestamp.
        byte = data[at + 1]
        if byte < 0x80:
            at += 2
            timestamp = _SIGNED[byte]
        else:
            timestamp, at = varint.decode(data, at + 1)
        byte = data[at]
        if byte < 0x80:
            at += 1
            offset = _SIGNED[byte]
        elif (second := data[at + 1]) < 0x80:
            at += 2
            offset = byte & 0x7F | second << 7
            offset = offset >> 1 ^ -(offset & 1)
        else:
            offset, at = varint.decode(data, at)
        if at > end:
            raise ValueError("a record shorter than its own fields")
        timestamps.append(timestamp)
        offsets.append(offset)
        keys.append(at)
        starts.append(end)
        at = end
    if at != len(data):
        raise ValueError(f"{count} records fill {at} of {len(data)} bytes")
    return starts, timestamps, offsets, keys


def times_of(first: int, deltas: list[int], scale: int = 1) -> list[int]:
    """The timestamps that are these deltas, times `scale`, behind `first`."""
    times = [first + delta * scale for delta in deltas]
    return times if not times or (min(times) >= -(1 << 63) and max(times) < 1 << 63) else [varint.wrapped(time) for time in times]


def keys_and_values(data: bytes, count: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Offset delta, timestamp delta, key and value of each of the `count` records of `data`. MalformedBatch if they are cut off."""
    decode, at = varint.decode, 0
    for _ in range(count):
        try:
            length, at = decode(data, at)
            end = at + length
            timestamp, at = decode(data, at + 1)  # one byte of attributes precedes it
            offset, at = decode(data, at)
            size, at = decode(data, at)
            key = None if size < 0 else data[at : (at := at + size)]
            size, at = decode(data, at)
            value = None if size < 0 else data[at : (at := at + size)]
        except ValueError as problem:
            raise MalformedBatch(f"a record that is cut off: {problem}") from problem
        if at > end:
            raise MalformedBatch("a record that is shorter than its own fields")
        yield offset, timestamp, key, value
        at = end


# One function on purpose: this loop decides how fast small batches are copied; a call per record or per varint would halve the speed.
def append_all(body: bytearray, data: bytes, count: int, index: int, *, shift: int, scale: int = 1) -> None:
    """Append all `count` records of `data` to `body`: timestamp deltas times `scale` plus `shift` ms, offset deltas from `index` on.

    With scale 0 all records get one time. Lengths and timestamp deltas of one and two bytes (below 8 KiB, within 8 s) are decoded in place.
    ValueError or IndexError if `data` is not exactly that many records.
    """
    small, stamps, limit = SMALL, STAMPS, len(SMALL)
    signed = _SIGNED if scale else _IGNORED
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
            timestamp = (timestamp >> 1 ^ -(timestamp & 1)) * scale + shift
        else:
            timestamp, at = varint.decode(data, at + 1)
            timestamp = timestamp * scale + shift
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
