"""Magic 0 and 1 messages turned into magic-2 records, and decompressed batches of any magic as magic 2.

A message has its own CRC-32, a nullable key and value, and (magic 1) a timestamp. A compressed message is a wrapper: its value is a message
set. Offsets inside a wrapper are absolute in magic 0; in magic 1 they are relative, and the wrapper has the absolute offset of the last
one. If the broker set a magic-1 wrapper's time, every message in it has the wrapper's (AbstractLegacyRecordBatch.java:
DeepRecordsIterator). Magic-0 messages have no timestamp: they keep -1.
"""

import struct
from collections.abc import Iterator

from ferry.wire import compression, varint
from ferry.wire.batch import HEADER_SIZE, BatchHeader, MalformedBatch, crc_is_valid, iterate_batches
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.varint import Buffer

_INT = struct.Struct(">i")
# Offset, size, CRC, magic and attributes; magic 1 has a timestamp too.
_KEY_AT = (18, 26)
Nullable = memoryview | None


def opened(header: BatchHeader, view: memoryview, limit: int = LARGEST_BYTES) -> tuple[BatchHeader, Buffer]:
    """A magic-2 header of one whole entry of any magic, with its codec, and its records, decompressed. Raises MalformedBatch.

    OversizedBatch if the records have more than `limit` bytes; it is raised before the memory is taken. The header of a converted entry
    says CreateTime. Holes in the offsets stay holes.
    """
    if header.magic >= 2:
        return header, compression.decompress(header.codec, view[HEADER_SIZE:], limit)
    messages = list(_messages(header, view, limit))
    if not messages:
        raise MalformedBatch(f"an empty message set at offset {header.base_offset}")
    first, start, _, _ = messages[0]
    body = bytearray()
    for offset, timestamp, key, value in messages:
        deltas = varint.encode(timestamp - start) + varint.encode(offset - first)
        record = b"\0" + deltas + _field(key) + _field(value) + b"\0"  # no headers
        body += varint.encode(len(record)) + record
    converted = header._replace(
        base_offset=first,
        length=49 + len(body),
        magic=2,
        crc=0,
        attributes=header.codec,
        last_offset_delta=messages[-1][0] - first,
        base_timestamp=start,
        max_timestamp=max(timestamp for _, timestamp, _, _ in messages),
        count=len(messages),
    )
    return converted, memoryview(body)


def _messages(header: BatchHeader, view: memoryview, limit: int) -> Iterator[tuple[int, int, Nullable, Nullable]]:
    """The messages of a plain entry or a wrapper, by strictly increasing offsets: offset, timestamp in ms (-1: none), key, value."""
    key, value = _key_and_value(header, view)
    if not header.codec:
        yield header.base_offset, header.base_timestamp, key, value
        return
    if value is None:
        raise MalformedBatch(f"a compressed message without a value at offset {header.base_offset}")
    if header.codec == compression.LZ4 and header.magic == 0:
        value = memoryview(compression.repair_legacy_lz4(value))
    inner = list(iterate_batches(compression.decompress(header.codec, value, limit)))
    shift = header.base_offset - inner[-1][0].base_offset if inner and header.magic == 1 else 0
    previous = -1
    for inner_header, inner_view in inner:
        offset = inner_header.base_offset + shift
        if inner_header.magic != header.magic or inner_header.codec or not crc_is_valid(inner_view) or offset <= previous:
            raise MalformedBatch(f"an invalid message within the wrapper at offset {header.base_offset}")
        timestamp = header.base_timestamp if header.is_log_append_time else inner_header.base_timestamp
        yield (offset, timestamp, *_key_and_value(inner_header, inner_view))
        previous = offset


def _key_and_value(header: BatchHeader, view: memoryview) -> tuple[Nullable, Nullable]:
    key, at = _nullable(view, _KEY_AT[header.magic])
    value, at = _nullable(view, at)
    if at != len(view):
        raise MalformedBatch(f"{len(view) - at} bytes too many in the message at offset {header.base_offset}")
    return key, value


def _nullable(view: memoryview, at: int) -> tuple[Nullable, int]:
    if at + _INT.size > len(view):
        raise MalformedBatch("a message that is shorter than its fields")
    length = _INT.unpack_from(view, at)[0]
    at += _INT.size
    if length == -1:
        return None, at
    if not 0 <= length <= len(view) - at:
        raise MalformedBatch(f"a key or value of {length} bytes in a message with {len(view) - at} left")
    return view[at : at + length], at + length


def _field(data: Nullable) -> bytes:
    return varint.encode(-1) if data is None else varint.encode(len(data)) + data
