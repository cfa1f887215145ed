"""What a comparison needs of a batch's records: offset, timestamp, and the bytes of key, value and headers.

These bytes do not depend on the batch that holds the record (ferry.wire.reframe). So they are compared as they are, and decoded only to say
which field differs. Layout: clients/.../record/DefaultRecord.java.
"""

import hashlib
from typing import NamedTuple

from ferry.wire import varint
from ferry.wire.batch import BatchHeader, MalformedBatch
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
    try:
        return _read(header, bytes(records))
    except (IndexError, ValueError) as problem:
        raise MalformedBatch(f"unreadable records in the batch at offset {header.base_offset}: {problem}") from problem


def _read(header: BatchHeader, data: bytes) -> RecordColumns:
    base, first = header.base_offset, header.base_timestamp
    offsets, timestamps, payloads = [], [], []
    at = 0
    decode = varint.decode
    for _ in range(header.count):
        byte = data[at]
        if byte < 0x80:
            at += 1
            end = at + (byte >> 1)
        elif (second := data[at + 1]) < 0x80:
            at += 2
            end = at + ((byte & 0x7F | second << 7) >> 1)
        else:
            length, at = decode(data, at)
            end = at + length
        byte = data[at + 1]  # one byte of attributes precedes the timestamp
        if byte < 0x80:
            at += 2
            timestamp = byte >> 1 ^ -(byte & 1)
        else:
            timestamp, at = decode(data, at + 1)
        byte = data[at]
        if byte < 0x80:
            at += 1
            offset = byte >> 1 ^ -(byte & 1)
        elif (second := data[at + 1]) < 0x80:
            at += 2
            offset = byte & 0x7F | second << 7
            offset = offset >> 1 ^ -(offset & 1)
        else:
            offset, at = decode(data, at)
        if at > end:
            raise ValueError("a record shorter than its own fields")
        offsets.append(base + offset)
        timestamps.append(first + timestamp)
        payloads.append(data[at:end])
        at = end
    if at != len(data):
        raise ValueError(f"{header.count} records fill {at} of {len(data)} bytes")
    if header.is_log_append_time:
        timestamps = [header.max_timestamp] * len(offsets)
    return RecordColumns(offsets, timestamps, payloads)


def digest(content: Content) -> bytes:
    """A digest of a whole record, which takes less memory than the record."""
    return hashlib.blake2b(content[0].to_bytes(8, "big", signed=True) + content[1], digest_size=_DIGEST_BYTES).digest()


def field_digests(content: Content) -> tuple[bytes, bytes, bytes, bytes]:
    """A digest for each of FIELDS. If the bytes are no record, all of them count as the value."""
    timestamp, payload = content
    try:
        key_end = _after(payload, 0)
        value_end = _after(payload, key_end)
    except (IndexError, ValueError):
        key_end, value_end = 0, len(payload)
    parts = (payload[:key_end], payload[key_end:value_end], payload[value_end:], timestamp.to_bytes(8, "big", signed=True))
    key, value, headers, moment = (hashlib.blake2b(part, digest_size=_DIGEST_BYTES).digest() for part in parts)
    return key, value, headers, moment


def _after(payload: bytes, at: int) -> int:
    length, at = varint.decode(payload, at)
    return at + max(0, length)
