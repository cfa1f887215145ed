"""The parts of a batch's records that a comparison needs: offset, timestamp, and the bytes of key, value and headers.

These bytes do not depend on the batch that holds the record (ferry.wire.reframe). So they are compared as they are, and decoded only to say
which field differs. Layout: clients/.../record/DefaultRecord.java.
"""

import hashlib
from typing import NamedTuple

from ferry.wire import varint
from ferry.wire.batch import BatchHeader, MalformedBatch
from ferry.wire.records import locate, times_of
from ferry.wire.varint import Buffer

FIELDS = ("key", "value", "headers", "timestamp")
_DIGEST_BYTES = 12

Content = tuple[int, bytes]  # timestamp in ms, bytes of key, value and headers


class RecordColumns(NamedTuple):
    """Records of one batch, field by field: offsets, timestamps (ms), bytes of key, value and headers."""

    offsets: list[int]
    timestamps: list[int]
    payloads: list[bytes]


def contents_of(header: BatchHeader, records: Buffer) -> RecordColumns:
    """All records of one magic-2 batch, `records` decompressed. Raises MalformedBatch."""
    data = bytes(records)
    try:
        starts, timestamps, offsets, keys = locate(data, header.count)
    except (IndexError, ValueError) as problem:
        raise MalformedBatch(f"unreadable records in the batch at offset {header.base_offset}: {problem}") from problem
    base, first = header.base_offset, header.base_timestamp
    times = [header.max_timestamp] * len(offsets) if header.is_log_append_time else times_of(first, timestamps)
    return RecordColumns([base + delta for delta in offsets], times, [data[key:end] for key, end in zip(keys, starts[1:], strict=True)])


def digest(content: Content) -> bytes:
    return hashlib.blake2b(content[0].to_bytes(8, "big", signed=True) + content[1], digest_size=_DIGEST_BYTES).digest()


def field_digests(content: Content) -> tuple[bytes, ...]:
    """A digest for each of FIELDS. If the bytes are no record, all of them count as the value."""
    timestamp, payload = content
    try:
        key_end = _after(payload, 0)
        value_end = _after(payload, key_end)
    except (IndexError, ValueError):
        key_end, value_end = 0, len(payload)
    parts = (payload[:key_end], payload[key_end:value_end], payload[value_end:], timestamp.to_bytes(8, "big", signed=True))
    return tuple(hashlib.blake2b(part, digest_size=_DIGEST_BYTES).digest() for part in parts)


def _after(payload: bytes, at: int) -> int:
    length, at = varint.decode(payload, at)
    return at + max(0, length)
