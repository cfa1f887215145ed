"""Compresses and decompresses record batches with Kafka's codecs, in frames that every client reads.

Ferry writes two frames itself, because Java does not read those of the library:
- snappy: Java (xerial's SnappyOutputStream) writes a 16-byte header and blocks with their lengths. On reading, Ferry takes several such
  streams in a row, and raw snappy, as Java does (xerial's SnappyInputStream).
- lz4: a standard frame, but with independent blocks: Java's reader refuses linked ones, and of several frames it reads the first only
  (Lz4BlockInputStream.java), see `all_read_lz4`. Any frames are accepted on reading, as several members of gzip and frames of zstd are.
  Magic-0 messages carry a wrong header checksum (KAFKA-3160), see `repair_legacy_lz4`.
"""

import mmap
import struct
from collections.abc import Callable
from typing import Any

import cramjam

from ferry.wire.batch import MalformedBatch, OversizedBatch
from ferry.wire.varint import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# No batch is larger: its length is an int32.
LARGEST_BYTES = (1 << 31) - 1

# Kafka's word for "as the producer has compressed it".
AS_PRODUCED = "producer"

_INT = struct.Struct(">i")
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# Format version 1, readable since version 1.
_XERIAL_HEADER = _XERIAL_MAGIC + bytes.fromhex("00000001 00000001")
# What xerial's writer uses; its reader allocates one buffer of this order per block.
_XERIAL_BLOCK = 32 * 1024

_LZ4_MAGIC = bytes.fromhex("04224d18")
# Version 1, independent blocks, no checksums; blocks of at most 64 KiB as Java writes them; the third byte is the checksum of the two.
_LZ4_HEADER = _LZ4_MAGIC + bytes.fromhex("604082")
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_BLOCK_CHECKSUM_FLAG, _LZ4_CONTENT_CHECKSUM_FLAG = 0x10, 0x04
_LZ4_CONTENT_SIZE_FLAG = 0x08
_LZ4_DICTIONARY_FLAG = 0x01
_LZ4_END = bytes(4)
_LITTLE = struct.Struct("<I")


def codec_named(name: str) -> int | None:
    """The number of a codec in a batch's attributes; None for AS_PRODUCED."""
    return None if name == AS_PRODUCED else CODEC_NAMES.index(name)


def compress(codec: int, data: Buffer) -> Buffer:
    """`data` compressed with codec 0-4 of a batch's attributes; codec 0 returns it as it is."""
    return _COMPRESS[codec](data)


def decompress(codec: int, data: Buffer, limit: int = LARGEST_BYTES) -> memoryview:
    """The plain bytes; codec 0 returns a view of `data`. Raises MalformedBatch for bytes that the codec cannot read.

    OversizedBatch when there are more than `limit` plain bytes. To find out, it touches no more memory than that.
    """
    if codec == NONE:
        if len(data) > limit:
            raise _oversized(limit)
        return memoryview(data)
    if codec not in _DECOMPRESS:
        raise MalformedBatch(f"there is no codec {codec}")
    try:
        return memoryview(_DECOMPRESS[codec](data, limit))
    except OversizedBatch:
        raise
    except (cramjam.DecompressionError, struct.error, ValueError, OverflowError, MemoryError) as error:
        raise MalformedBatch(f"bytes that {CODEC_NAMES[codec]} cannot decompress: {error}") from error


def _oversized(limit: int) -> OversizedBatch:
    return OversizedBatch(f"its records take more than {limit:,} bytes, which is as much as there is for one batch")


def _bounded(whole: Callable[[Buffer], Any], into: Callable[[Buffer, Any], int], ratio: int) -> Callable[[Buffer, int], Any]:
    """Bound a codec that makes at most `ratio` bytes of one. If that could exceed the limit, decompress into memory mapped on demand."""

    def decompress_bounded(data: Buffer, limit: int) -> Any:
        if len(data) * ratio <= limit:
            return whole(data)
        room = mmap.mmap(-1, limit)
        try:
            count = into(data, room)
        except cramjam.DecompressionError as error:
            if "whole buffer" in str(error):
                raise _oversized(limit) from None
            raise
        return memoryview(room)[:count]

    return decompress_bounded


def _compress_snappy(data: Buffer) -> Buffer:
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = memoryview(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
        parts += (_INT.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> Any:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        return _decompress_block(view, limit, limit)
    parts: list[memoryview] = []
    left = limit
    # The 8 bytes of versions are not compared: some writers put them in the other byte order.
    at = len(_XERIAL_HEADER)
    while at < len(view):
        if view[at : at + 8] == _XERIAL_MAGIC:  # another stream
            at += len(_XERIAL_HEADER)
            continue
        length = _INT.unpack_from(view, at)[0]
        at += _INT.size
        if not 0 <= length <= len(view) - at:
            raise ValueError(f"a block of {length} bytes with {len(view) - at} left")
        parts.append(memoryview(_decompress_block(view[at : at + length], left, limit)))
        left -= len(parts[-1])
        at += length
    return b"".join(parts)


def _decompress_block(block: memoryview, left: int, limit: int) -> Any:
    if cramjam.snappy.decompress_raw_len(block) > left:
        raise _oversized(limit)
    return cramjam.snappy.decompress_raw(block)


def _compress_lz4(data: Buffer) -> Buffer:
    view = memoryview(data)
    parts: list[Buffer] = [_LZ4_HEADER]
    for at in range(0, len(view), _LZ4_BLOCK):
        plain = view[at : at + _LZ4_BLOCK]
        block = memoryview(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (_LITTLE.pack(len(block)), block)
        else:
            parts += (_LITTLE.pack(len(plain) | _LZ4_STORED), plain)
    parts.append(_LZ4_END)
    return b"".join(parts)


def all_read_lz4(data: Buffer) -> bool:
    """Whether these bytes are one LZ4 frame with independent blocks and no dictionary: what brokers and Java's clients read."""
    last = len(data) - 4
    if last < len(_LZ4_HEADER) or data[:4] != _LZ4_MAGIC or data[4] & 0xE3 != _LZ4_HEADER[4]:
        return False
    flags, at = data[4], len(_LZ4_HEADER)
    at += 8 if flags & _LZ4_CONTENT_SIZE_FLAG else 0
    behind_size = 8 if flags & _LZ4_BLOCK_CHECKSUM_FLAG else 4
    while at <= last:
        size = _LITTLE.unpack_from(data, at)[0] & ~_LZ4_STORED
        if not size:
            return at + (4 if flags & _LZ4_CONTENT_CHECKSUM_FLAG else 0) == last
        at += size + behind_size
    return False


def repair_legacy_lz4(data: Buffer) -> Buffer:
    """An LZ4 frame with the header checksum of the format. Clients that write magic 0 sum the frame's magic too (KAFKA-3160)."""
    frame = bytearray(data)
    if frame[:4] != _LZ4_MAGIC or len(frame) < len(_LZ4_HEADER):
        return data
    checksum_at = 6 + 8 * bool(frame[4] & _LZ4_CONTENT_SIZE_FLAG) + 4 * bool(frame[4] & _LZ4_DICTIONARY_FLAG)
    if checksum_at < len(frame):
        frame[checksum_at] = (_xxh32_short(frame[4:checksum_at]) >> 8) & 0xFF
    return frame


def _xxh32_short(data: Buffer) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes: an LZ4 frame descriptor has 2 to 14 (xxHash specification, steps 1, 4, 5 and 6)."""
    mask = 0xFFFFFFFF
    total = (374761393 + len(data)) & mask
    words, rest = divmod(len(data), 4)
    for index in range(words):
        total = (total + _LITTLE.unpack_from(data, 4 * index)[0] * 3266489917) & mask
        total = (((total << 17) | (total >> 15)) & mask) * 668265263 & mask
    for byte in data[len(data) - rest :]:
        total = (total + byte * 374761393) & mask
        total = (((total << 11) | (total >> 21)) & mask) * 2654435761 & mask
    total = ((total ^ (total >> 15)) * 2246822519) & mask
    total = ((total ^ (total >> 13)) * 3266489917) & mask
    return total ^ (total >> 16)


_COMPRESS: tuple[Callable[[Buffer], Buffer], ...] = (
    lambda data: data,
    lambda data: memoryview(cramjam.gzip.compress(data)),
    _compress_snappy,
    _compress_lz4,
    lambda data: memoryview(cramjam.zstd.compress(data)),
)
# The most that a codec can make of one byte: deflate 1,032, an LZ4 block 255, a zstd block of 4 bytes 128 KiB.
_DECOMPRESS: dict[int, Callable[[Buffer, int], Any]] = {
    GZIP: _bounded(cramjam.gzip.decompress, cramjam.gzip.decompress_into, 1_032),
    SNAPPY: _decompress_snappy,
    LZ4: _bounded(cramjam.lz4.decompress, cramjam.lz4.decompress_into, 255),
    ZSTD: _bounded(cramjam.zstd.decompress, cramjam.zstd.decompress_into, 32_768),
}
