from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.internal_records import Checkpoint, Heartbeat, OffsetSync

pytestmark = pytest.mark.unit
NAMES = st.text(max_size=20)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)

# Written by MirrorMaker 2's own classes.
GOLDEN: list[tuple[Any, str, str]] = [
    (Heartbeat("A", "B", 1_700_000_000_000), "000141000142", "00000000018bcfe56800"),
    (Checkpoint("g1", "A.t", 3, 10, 7), "000267310003412e7400000003", "0000000000000000000a00000000000000070000"),
    (OffsetSync("t", 3, 10, 6), "00017400000003", "000000000000000a0000000000000006"),
]


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_golden_bytes(record: Any, key: str, value: str) -> None:
    assert (record.encode_key().hex(), record.encode_value().hex()) == (key, value)
    assert type(record).decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@given(
    st.builds(Heartbeat, NAMES, NAMES, LONGS)
    | st.builds(Checkpoint, NAMES, NAMES, INTS, LONGS, LONGS, NAMES)
    | st.builds(OffsetSync, NAMES, INTS, LONGS, LONGS)
)
def test_round_trip(record: Any) -> None:
    assert type(record).decode(record.encode_key(), record.encode_value()) == record


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_trailing_bytes_are_ignored_and_short_ones_refused(record: Any, key: str, value: str) -> None:
    whole_key, whole_value = bytes.fromhex(key), bytes.fromhex(value)
    assert type(record).decode(whole_key + b"\1", whole_value + b"\2") == record
    for cut in range(len(whole_key)):
        with pytest.raises(ValueError, match="left"):
            type(record).decode(whole_key[:cut], whole_value)
    for cut in range(len(whole_value)):
        with pytest.raises(ValueError, match="left"):
            type(record).decode(whole_key, whole_value[:cut])


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_tombstones_are_refused(record: Any, key: str, value: str) -> None:
    for pair in ((None, bytes.fromhex(value)), (bytes.fromhex(key), None)):
        with pytest.raises(ValueError, match=r"^a null key or value"):
            type(record).decode(*pair)


@pytest.mark.parametrize("record", [GOLDEN[0][0], GOLDEN[1][0]])
def test_another_version_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match="version 1"):
        type(record).decode(record.encode_key(), b"\0\1" + record.encode_value()[2:])


def test_negative_string_lengths_and_bad_utf8_are_refused() -> None:
    for key in (b"\xff\xff\0\0\0\1", b"\0\1\xff\0\0\0\1"):
        with pytest.raises(ValueError, match=r"string|utf-8"):
            OffsetSync.decode(key, bytes(16))


def test_strings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="32768 bytes"):
        OffsetSync("x" * 32_768, 0, 0, 0).encode_key()
    longest = OffsetSync("x" * 32_767, 0, 0, 0)
    assert OffsetSync.decode(longest.encode_key(), longest.encode_value()) == longest


def test_what_is_short_is_told_in_bytes() -> None:
    with pytest.raises(ValueError, match="4 bytes are needed at byte 3, 1 are left"):
        OffsetSync.decode(b"\0\1t\0", bytes(16))
    with pytest.raises(ValueError, match="2 bytes are needed at byte 3, 0 are left"):
        Checkpoint.decode(b"\0\1g", bytes(20))
    with pytest.raises(ValueError, match="a string of 9 bytes with 2 left"):
        OffsetSync.decode(b"\0\x09ab", bytes(16))
