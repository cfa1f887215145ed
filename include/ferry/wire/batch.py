"""The entries of a Fetch response: magic-2 record batches with 61-byte headers, and older message sets.

A response holds entries one after the other. A broker cuts the last one off at the size limit of the request: so an incomplete last entry
is left out without an error. Bytes that no broker writes raise `MalformedBatch`. Nothing is copied: entries are views into the response.

Layout: clients/.../record/DefaultRecordBatch.java (magic 2), LegacyRecord.java (magic 0 and 1).
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import crc32c

HEADER = struct.Struct(">qiiBIhiqqqhii")
HEADER_SIZE = HEADER.size  # 61
# Base offset and length precede what the length field counts.
LENGTH_OVERHEAD = 12
# The magic byte stands at the same place in all three formats.
MAGIC_AT = 16
# Magic 2: the CRC-32C covers everything from the attributes on.
CRC_FROM = 21
# CRC, magic, attributes, key length, value length; magic 1 has a timestamp too.
LEGACY_MINIMUM_LENGTH = (14, 22)

CODEC_MASK = 0x07
# None, gzip, snappy, lz4, zstd.
LAST_CODEC = 4
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
# Kafka's default of max.message.bytes.
DEFAULT_BATCH_LIMIT = 1_048_588

_START = struct.Struct(">qi")
_LEGACY = struct.Struct(">IBb")
_TIMESTAMP = struct.Struct(">q")
_CRC = struct.Struct(">I")
_new_tuple = tuple.__new__


class MalformedBatch(ValueError):
    """Bytes that are no valid record batch: wrong checksum, impossible lengths or counts, unreadable compression."""


class BatchHeader(NamedTuple):
    """The header of one entry, field by field as on the wire.

    For magic 0 and 1 `base_offset` is the offset on the entry (of a compressed wrapper: that of its LAST record), both timestamps are the
    entry's, producer fields are -1, and `count` is 1, or -1 for a wrapper whose records are not counted before it is decompressed.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # the field's name in Kafka; nobody counts a header's items

    @property
    def last_offset(self) -> int:
        """The last offset of the entry, even if compaction has removed its record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset from which to read after this entry."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL) and self.magic >= 2

    @property
    def is_log_append_time(self) -> bool:
        """The broker set the time: every record has `max_timestamp`. Magic 0 has no such bit."""
        return bool(self.attributes & LOG_APPEND_TIME) and self.magic >= 1

    @property
    def size(self) -> int:
        """Bytes of the whole entry."""
        return LENGTH_OVERHEAD + self.length

    @property
    def contiguous(self) -> bool:
        """No holes: as many records as offsets."""
        return self.count == self.last_offset_delta + 1 and self.count > 0


class OversizedBatch(MalformedBatch):
    """A batch whose records take more memory, when they are decompressed, than one batch may have."""


def iterate_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Each complete entry of a Fetch response's records, in order, as of `read_entry`. Checksums are not looked at: see `crc_is_valid`."""
    at = 0
    while (entry := read_entry(data, at)) is not None:
        yield entry
        at += len(entry[1])


def read_entry(data: memoryview, at: int) -> tuple[BatchHeader, memoryview] | None:
    """The entry that begins at index `at`: its header and a view of all its bytes; None if it is not complete. Raises MalformedBatch."""
    if len(data) - at < LENGTH_OVERHEAD:
        return None
    base_offset, length = _START.unpack_from(data, at)
    if length < LEGACY_MINIMUM_LENGTH[0]:
        raise MalformedBatch(f"the batch at offset {base_offset} claims {length} bytes, fewer than any record has")
    stop = at + LENGTH_OVERHEAD + length
    if stop > len(data):
        return None
    view = data[at:stop]
    return read_header(view), view


def read_header(view: memoryview) -> BatchHeader:
    """The header of one whole entry; raises MalformedBatch when its fields contradict each other."""
    magic = view[MAGIC_AT]
    if magic < 2:
        return _legacy_header(view, magic)
    if magic > 2 or len(view) < HEADER_SIZE:
        raise MalformedBatch(f"the batch at offset {_START.unpack_from(view)[0]} has magic {magic} in {len(view)} bytes")
    header = _new_tuple(BatchHeader, HEADER.unpack_from(view))
    if header[5] & CODEC_MASK > LAST_CODEC:
        raise MalformedBatch(f"the batch at offset {header[0]} is compressed with a codec that no Kafka knows: {header[5] & CODEC_MASK}")
    if header[6] < 0 or header[12] < 0 or header[12] > header[6] + 1 or header[0] < 0:
        raise MalformedBatch(f"the batch at offset {header[0]} claims {header[12]} records within {header[6] + 1} offsets")
    return header


def _legacy_header(view: memoryview, magic: int) -> BatchHeader:
    base_offset, length = _START.unpack_from(view)
    if length < LEGACY_MINIMUM_LENGTH[magic] or base_offset < 0:
        raise MalformedBatch(f"the message at offset {base_offset} has magic {magic} in {length} bytes")
    crc, _, attributes = _LEGACY.unpack_from(view, LENGTH_OVERHEAD)
    timestamp = _TIMESTAMP.unpack_from(view, LENGTH_OVERHEAD + _LEGACY.size)[0] if magic == 1 else -1
    count = -1 if attributes & CODEC_MASK else 1
    return BatchHeader(base_offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, count)


def crc_is_valid(view: memoryview) -> bool:
    """Whether the entry matches its checksum. `view`: one whole entry of any magic."""
    if view[MAGIC_AT] < 2:
        stored: int = _LEGACY.unpack_from(view, LENGTH_OVERHEAD)[0]
        return zlib.crc32(view[MAGIC_AT:]) == stored  # of everything from the magic byte on
    return bool(crc32c.crc32c(view[CRC_FROM:]) == _CRC.unpack_from(view, 17)[0])
