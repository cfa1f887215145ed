from __future__ import annotations

import gzip
import struct
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire import compression
from ferry.wire.batch import MalformedBatch, OversizedBatch

pytestmark = pytest.mark.unit
PAYLOADS = st.binary(max_size=300) | st.binary(min_size=1, max_size=20).map(lambda seed: seed * 9000)


@given(codec=st.integers(0, 4), data=PAYLOADS)
def test_reads_what_others_write_and_others_read_what_it_writes(kafka: Any, codec: int, data: bytes) -> None:
    assert bytes(compression.decompress(codec, kafka.squeeze(codec, data))) == data
    written = bytes(compression.compress(codec, memoryview(data)))
    assert kafka.expand(codec, written) == data
    assert bytes(compression.decompress(codec, memoryview(written))) == data


def test_raw_snappy_is_tolerated() -> None:
    assert bytes(compression.decompress(compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 50)))) == b"raw" * 50


def test_several_gzip_and_zstd_frames_are_one_payload() -> None:
    assert bytes(compression.decompress(compression.GZIP, gzip.compress(b"one") + gzip.compress(b"two"))) == b"onetwo"
    frames = bytes(cramjam.zstd.compress(b"one")) + bytes(cramjam.zstd.compress(b"two"))
    assert bytes(compression.decompress(compression.ZSTD, frames)) == b"onetwo"


def test_lz4_frames_are_what_java_reads() -> None:
    """Lz4BlockInputStream: version 1, independent blocks of at most the size announced, a checksum of the descriptor, an end mark."""
    data = b"abc" * 50_000 + bytes(range(256)) * 300
    frame = bytes(compression.compress(compression.LZ4, data))
    assert frame[:7].hex() == "04224d18604082"
    at, plain = 7, b""
    while (size := struct.unpack_from("<I", frame, at)[0]) != 0:
        block = frame[at + 4 : at + 4 + (size & 0x7FFFFFFF)]
        expected = min(64 * 1024, len(data) - len(plain))
        plain += block if size >> 31 else bytes(cramjam.lz4.decompress_block(block, output_len=expected))
        at += 4 + len(block)
    assert (plain, at + 4) == (data, len(frame))


def test_payloads_of_several_members_are_read_whole(kafka: Any) -> None:
    """As RFC 1952 (gzip), RFC 8878 (zstd), LZ4 and xerial's snappy have them; also empty ones, and frames to skip."""
    skipped = bytes.fromhex("502a4d18") + struct.pack("<I", 3) + b"abc"
    for codec in range(1, 5):
        members = [kafka.squeeze(codec, part) for part in (b"one" * 100, b"", b"two" * 100)]
        between = skipped if codec in {compression.LZ4, compression.ZSTD} else b""
        packed = between.join(members)
        for limit in (600, 1 << 20):
            assert bytes(compression.decompress(codec, packed, limit)) == b"one" * 100 + b"two" * 100
        with pytest.raises(OversizedBatch):
            compression.decompress(codec, packed, 599)


LARGE = b"".join(b"%d " % number for number in range(60_000))


def lz4(data: bytes, **options: bool) -> bytes:
    stream = cramjam.lz4.Compressor(**options)
    stream.compress(data)
    return bytes(stream.finish())


def sized(frame: bytes, size: int) -> bytes:
    """The frame with its content's size in the descriptor."""
    head = bytes([frame[4] | 0x08]) + frame[5:6] + struct.pack("<Q", size)
    return bytes(compression.repair_legacy_lz4(frame[:4] + head + frame[6:]))


OWN = bytes(compression.compress(compression.LZ4, LARGE))
FRAMES = {
    "own": (OWN, True),
    "empty": (bytes(compression.compress(compression.LZ4, b"")), True),
    "with checksums": (lz4(LARGE, block_linked=False), True),
    "without": (lz4(LARGE, block_linked=False, content_checksum=False), True),
    "with its size": (sized(OWN, len(LARGE)), True),
    "linked": (lz4(LARGE), False),
    "two frames": (OWN + OWN, False),
    "a frame to skip first": (bytes.fromhex("502a4d1800000000") + OWN, False),
    "a frame to skip last": (OWN + bytes.fromhex("502a4d1800000000"), False),
    "cut short": (OWN[:-4], False),
    "cut in a block": (OWN[:-5], False),
    "another version": (OWN[:4] + b"\xa0" + OWN[5:], False),
    "nothing": (b"", False),
    "no frame": (b"something else", False),
}


@pytest.mark.parametrize("name", FRAMES)
def test_lz4_that_brokers_and_java_read_whole(name: str) -> None:
    frame, read = FRAMES[name]
    assert compression.all_read_lz4(memoryview(frame)) == read


def test_blocks_that_do_not_shrink_are_stored() -> None:
    frame = bytes(compression.compress(compression.LZ4, bytes(range(200))))
    assert struct.unpack_from("<I", frame, 7)[0] == 200 | 1 << 31


@pytest.mark.parametrize("content_size", [b"", struct.pack("<Q", 280)])
@pytest.mark.parametrize("dictionary", [b"", b"\1\2\3\4"])
def test_a_wrong_lz4_header_checksum_is_repaired(content_size: bytes, dictionary: bytes) -> None:
    """KAFKA-3160. Whatever the descriptor holds; the library's reader knows the right checksum."""
    plain = b"payload" * 40
    block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
    descriptor = bytes([0x60 | bool(content_size) << 3 | bool(dictionary), 0x40]) + content_size + dictionary
    front, back = bytes.fromhex("04224d18") + descriptor, struct.pack("<I", len(block)) + block + bytes(4)
    (right,) = {bytes(compression.repair_legacy_lz4(front + bytes([wrong]) + back)) for wrong in (0, 255)}
    assert (right[: len(front)], right[len(front) + 1 :]) == (front, back)
    assert bytes(cramjam.lz4.decompress(right)) == plain
    with pytest.raises(MalformedBatch):
        compression.decompress(compression.LZ4, front + bytes([right[len(front)] ^ 0xFF]) + back)
    if content_size or dictionary:
        assert compression.repair_legacy_lz4(front) == front, "it ends before its checksum"


def test_what_is_no_lz4_frame_is_not_touched() -> None:
    assert compression.repair_legacy_lz4(b"something else") == b"something else"


def test_a_block_that_is_cut_short_is_told_in_bytes() -> None:
    with pytest.raises(MalformedBatch, match="snappy cannot decompress: a block of 9 bytes with 3 left"):
        compression.decompress(compression.SNAPPY, b"\x82SNAPPY\x00" + bytes(8) + b"\0\0\0\x09abc")


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize(
    "data", [b"garbage" * 9, b"\x82SNAPPY\x00" + b"\0" * 8 + b"\xff\xff\xff\xff", b"\x82SNAPPY\x00" + b"\0" * 8 + b"\0\0\0\x09abc"]
)
def test_unreadable_bytes_are_malformed(codec: int, data: bytes) -> None:
    with pytest.raises(MalformedBatch, match=r"codec|decompress"):
        compression.decompress(codec, data)


@given(codec=st.integers(1, 4), data=st.binary(max_size=200), cut=st.integers(0, 100), at=st.integers(0, 100), value=st.integers(0, 255))
def test_damaged_bytes_never_raise_anything_else(codec: int, data: bytes, cut: int, at: int, value: int) -> None:
    written = bytearray(compression.compress(codec, data))
    written[min(at, len(written) - 1)] = value
    try:
        compression.decompress(codec, written[: max(1, len(written) - cut)])
    except MalformedBatch:
        return
