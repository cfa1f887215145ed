"""Decompression stops at its limit, for every codec, without taking the memory first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire import compression
from ferry.wire.batch import MalformedBatch, OversizedBatch

pytestmark = pytest.mark.unit

CODECS = range(1, 5)
PLAIN = 200_000_000


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


@given(st.sampled_from([0, *CODECS]), st.binary(max_size=3_000), st.integers(1, 60))
def test_up_to_the_limit_it_is_as_without_one(codec: int, block: bytes, times: int) -> None:
    plain = block * times
    packed = compression.compress(codec, plain)
    assert bytes(compression.decompress(codec, packed, max(1, len(plain)))) == plain
    if len(plain) > 1:
        with pytest.raises(OversizedBatch, match=f"more than {len(plain) - 1:,} bytes"):
            compression.decompress(codec, packed, len(plain) - 1)


@pytest.mark.parametrize("pack", [*(lambda data, codec=codec: (codec, compression.compress(codec, data)) for codec in CODECS)])
def test_a_bomb_takes_no_more_memory_than_its_limit(pack: Callable[[bytes], tuple[int, bytes]]) -> None:
    codec, bomb = pack(bytes(PLAIN))
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = peak()
    for _ in range(3):
        with pytest.raises(OversizedBatch):
            compression.decompress(codec, bomb, 10_000_000)
    assert peak() - before < 30_000_000
    assert len(compression.decompress(codec, bomb)) == PLAIN
    assert peak() - before > PLAIN * 0.9  # as it would have been


@pytest.mark.parametrize("codec", [0, *CODECS])
def test_payloads_of_several_blocks_are_bounded_as_wholes(codec: int) -> None:
    packed = compression.compress(codec, bytes(200_000))
    assert bytes(compression.decompress(codec, packed, 200_000)) == bytes(200_000)
    with pytest.raises(OversizedBatch, match="more than 199,999 bytes"):
        compression.decompress(codec, packed, 199_999)


def test_raw_snappy_is_bounded_by_what_it_says() -> None:
    with pytest.raises(OversizedBatch):
        compression.decompress(compression.SNAPPY, raw_snappy(bytes(10_000)), 9_999)
    assert len(compression.decompress(compression.SNAPPY, raw_snappy(bytes(10_000)), 10_000)) == 10_000


@given(st.sampled_from(CODECS), st.binary(min_size=1, max_size=200))
def test_damaged_bytes_are_malformed_not_oversized(codec: int, junk: bytes) -> None:
    try:
        compression.decompress(codec, junk, 1 << 20)
    except OversizedBatch:
        assert codec == compression.SNAPPY  # it says its length in front
    except MalformedBatch:
        pass
