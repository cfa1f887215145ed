from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.record.util import decode_varint, encode_varint

from ferry.wire import varint

pytestmark = pytest.mark.unit
LONGS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 20_000)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        *[(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-64, "7f"), (8191, "fe7f"), (2**31 - 1, "feffffff0f")],
        *[((1 << 14) - 1, "feff01"), (1 << 14, "808002"), ((1 << 63) - 1, "feffffffffffffffff01"), (-(1 << 63), "ffffffffffffffffff01")],
    ],
)
def test_golden_bytes(value: int, encoded: str) -> None:
    assert varint.encode(value).hex() == encoded
    assert varint.decode(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(LONGS)
def test_agrees_with_kafka_python(value: int) -> None:
    theirs = bytearray()
    encode_varint(value, theirs.append)
    assert varint.encode(value) == bytes(theirs)
    assert varint.decode(b"\xff" + theirs, 1) == (*decode_varint(theirs, 0)[:1], 1 + len(theirs))


@given(st.integers(0, (1 << 64) - 1))
@example(127)
@example(128)
@example((1 << 64) - 1)
def test_unsigned_round_trip(value: int) -> None:
    encoded = varint.encode_unsigned(value)
    assert varint.decode_unsigned(encoded, 0) == (value, len(encoded))
    assert len(encoded) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize(("value", "same"), [(1 << 63, -(1 << 63)), (-(1 << 63) - 1, (1 << 63) - 1), ((1 << 64) - 1, -1)])
def test_a_difference_of_more_than_64_bits_is_that_of_java(value: int, same: int) -> None:
    assert (varint.wrapped(value), varint.wrapped(same)) == (same, same)
    assert varint.encode(value) == varint.encode(same)


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_unsigned_refuses_what_does_not_fit(value: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        varint.encode_unsigned(value)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 9, b"\x80" * 10 + b"\x01", b"\xff" * 9 + b"\x7f"])
def test_cut_or_endless_values_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="variable-length"):
        varint.decode(data, 0)
