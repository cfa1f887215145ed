"""Batches written and read by other people's code: kafka-python frames the records, the standard library and raw codecs compress them."""

from __future__ import annotations

import gzip
import struct
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import cramjam
import pytest

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder
    from kafka.record.util import calc_crc32c

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


class Row(NamedTuple):
    """One record as a consumer sees it."""

    offset: int
    timestamp: int
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[tuple[str, bytes | None], ...] = ()


def squeeze(codec: int, data: bytes) -> bytes:
    """Compressed as another client would: xerial blocks of 100 bytes, LZ4 with checksums of blocks and content."""
    if codec == GZIP:
        return gzip.compress(data)
    if codec == SNAPPY:
        blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 100])) for at in range(0, len(data), 100)]
        return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    if codec == LZ4:
        stream = cramjam.lz4.Compressor(block_linked=False)
        stream.compress(data)
        return bytes(stream.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def expand(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == SNAPPY:
        assert data[:16] == XERIAL
        plain, at = b"", 16
        while at < len(data):
            (length,) = struct.unpack_from(">i", data, at)
            plain += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length]))
            at += 4 + length
        return plain
    if codec == LZ4:
        return bytes(cramjam.lz4.decompress(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.decompress(data))
    return data


def seal(batch: bytearray) -> bytes:
    """The batch with its length and CRC made right."""
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, calc_crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def build(
    rows: Sequence[Row],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    codec: int = 0,
    attributes: int = 0,
    producer_id: int = -1,
    max_timestamp: int | None = None,
    leader_epoch: int = 7,
) -> bytes:
    """One batch of `rows`, whose offsets may have holes, before `base_offset` and after `last_offset` too."""
    first = rows[0].offset if base_offset is None else base_offset
    last = rows[-1].offset if last_offset is None else last_offset
    builder = DefaultRecordBatchBuilder(2, 0, False, producer_id, 0 if producer_id >= 0 else -1, 0 if producer_id >= 0 else -1, 1 << 30)
    for row in rows:
        builder.append(row.offset - first, row.timestamp, row.key, row.value, row.headers)
    whole = builder.build()
    batch = whole[:61] + squeeze(codec, bytes(whole[61:])) if rows else whole[:61]
    struct.pack_into(">q", batch, 0, first)
    struct.pack_into(">i", batch, 12, leader_epoch)
    struct.pack_into(">hi", batch, 21, attributes | codec, last - first)
    if max_timestamp is not None:
        struct.pack_into(">q", batch, 35, max_timestamp)
    return seal(batch)


def control(offset: int, producer_id: int, kind: int) -> bytes:
    """An abort (0) or commit (1) marker as a transaction coordinator writes it."""
    row = Row(offset, 5, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))
    return build([row], attributes=0x30, producer_id=producer_id)


def message_set(rows: Sequence[Row], magic: int, codec: int = 0, *, append_time: int | None = None) -> bytes:
    """Magic 0 or 1 messages; compressed: one wrapper, with relative offsets and the last offset on the wrapper in magic 1."""
    base = rows[0].offset if codec and magic else 0
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
    for row in rows:
        builder.append(row.offset - base, row.timestamp, row.key, row.value)
    inner = bytes(builder.build())
    if not codec:
        return inner
    squeezed = squeeze(codec, inner)
    if codec == LZ4 and magic == 0:
        # KAFKA-3160: the header checksum is wrong, whatever it is exactly.
        squeezed = squeezed[:6] + bytes([squeezed[6] ^ 0x55]) + squeezed[7:]
    timestamp = max(row.timestamp for row in rows) if append_time is None else append_time
    return wrapper(squeezed, magic, codec | (0x08 if append_time is not None else 0), rows[-1].offset, timestamp)


def wrapper(value: bytes, magic: int, attributes: int, offset: int, timestamp: int) -> bytes:
    """One message of magic 0 or 1 with any attributes, as a broker would store it."""
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
    builder._buffer.extend(bytearray(builder.size_in_bytes(0, timestamp, None, value)))
    builder._encode_msg(0, offset, timestamp, None, value, attributes)
    return bytes(builder._buffer)


def read(batch: bytes | bytearray) -> list[Row]:
    """The records of one valid magic-2 batch, read by kafka-python."""
    assert DefaultRecordBatch(bytes(batch)).validate_crc()
    codec = batch[22] & 7
    plain = bytearray(batch[:61]) + expand(codec, bytes(batch[61:]))
    plain[22] &= ~7
    return [
        # Java's sums are of 64 bits.
        Row(record.offset, (record.timestamp + (1 << 63)) % (1 << 64) - (1 << 63), record.key, record.value, tuple(record.headers))
        for record in DefaultRecordBatch(seal(plain))
    ]


def read_units(units: Sequence[Any]) -> list[Row]:
    """The records of units under their upstream offsets; checks on the way what a broker checks."""
    rows = []
    for unit in units:
        batch = b"".join(unit.encode(900, 4, 77, True))
        base_offset, length, epoch, magic, _, attributes, delta, _, _, pid, producer_epoch, sequence, count = struct.unpack_from(
            ">qiiBIhiqqqhii", batch
        )
        assert (base_offset, length, epoch, magic) == (0, len(batch) - 12, -1, 2)
        assert attributes & ~7 == 0x10
        assert (delta + 1, count) == (unit.count, unit.count)
        assert (pid, producer_epoch, sequence) == (900, 4, 77)
        found = read(batch)
        assert [row.offset for row in found] == list(range(unit.count))
        upstream = [start + step for start, length in unit.runs for step in range(length)]
        assert len(upstream) == unit.count
        rows += [row._replace(offset=offset) for row, offset in zip(found, upstream, strict=True)]
    return rows


@pytest.fixture(scope="session")
def kafka() -> Any:
    """The independent side: rows, builders and readers."""
    return SimpleNamespace(
        Row=Row,
        build=build,
        seal=seal,
        control=control,
        message_set=message_set,
        wrapper=wrapper,
        read=read,
        read_units=read_units,
        squeeze=squeeze,
        expand=expand,
    )


@pytest.fixture(scope="session")
def rows_at() -> Callable[..., list[Row]]:
    """Rows at the given offsets, each different."""

    def make(offsets: Sequence[int], timestamp: int = 1_700_000_000_000, size: int = 5) -> list[Row]:
        return [
            Row(offset, timestamp + 3 * index, b"key-%d" % offset, b"v" * size, (("h", b"1"), ("h", None)))
            for index, offset in enumerate(offsets)
        ]

    return make
