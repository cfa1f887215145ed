from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.runs import decode_runs, encode_runs, normalise

pytestmark = pytest.mark.unit


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    upstream, downstream = draw(st.integers(0, 1 << 40)), draw(st.integers(0, 1 << 40))
    drawn = []
    for _ in range(draw(st.integers(0, 8))):
        count = draw(st.integers(1, 300))
        drawn.append((upstream, downstream, count))
        upstream += count + draw(st.integers(0, 2))
        downstream += count + draw(st.integers(0, 2))
    return drawn


def pairs(these: object) -> list[tuple[int, int]]:
    return [(upstream + step, downstream + step) for upstream, downstream, count in these for step in range(count)]  # type: ignore[attr-defined]


@given(runs())
def test_round_trip_keeps_every_pair_of_offsets(given_runs: list[tuple[int, int, int]]) -> None:
    decoded = decode_runs(encode_runs(given_runs))
    assert decoded == normalise(given_runs)
    assert pairs(decoded) == pairs(given_runs)
    assert normalise(decoded) == decoded


def test_golden_bytes() -> None:
    assert encode_runs([]).hex() == "01"
    assert encode_runs([(10, 7, 5), (15, 12, 1), (300, 13, 2)]).hex() == "010a07069c020002"


def test_a_regular_run_after_run_takes_three_bytes() -> None:
    """A source whose transactions have 100 records each: one marker between them upstream, and downstream one of ours now and then."""
    assert len(encode_runs((index * 101, index * 100, 100) for index in range(50_000))) == 1 + 3 * 50_000


def test_neighbours_are_joined_only_where_both_sides_continue() -> None:
    assert normalise([(0, 0, 2), (2, 2, 3)]) == ((0, 0, 5),)
    assert normalise([(0, 0, 2), (2, 3, 3)]) == ((0, 0, 2), (2, 3, 3))
    assert normalise([(0, 0, 2), (3, 2, 3)]) == ((0, 0, 2), (3, 2, 3))


@pytest.mark.parametrize(
    "bad",
    [[(0, 0, 0)], [(0, 0, -1)], [(-1, 0, 1)], [(0, -1, 1)], [(0, 0, 2), (1, 5, 1)], [(0, 0, 2), (5, 1, 1)], [((1 << 63) - 1, 0, 2)]],
)
def test_runs_that_cannot_be_are_refused(bad: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ValueError, match="run"):
        encode_runs(bad)


def test_the_last_offset_there_is_may_be_in_a_run() -> None:
    last = (((1 << 63) - 1, 0, 1),)
    assert decode_runs(encode_runs(last)) == last
    with pytest.raises(ValueError, match="version none; this Ferry reads version 1"):
        decode_runs(b"")
    with pytest.raises(ValueError, match="version 2; this Ferry reads version 1"):
        decode_runs(b"\2")


@pytest.mark.parametrize("data", ["", "00", "02", "010a", "010a07", "010a0700", "010a07ff", "01" + "ff" * 9 + "01" + "0001"])
def test_malformed_bytes_are_refused(data: str) -> None:
    with pytest.raises(ValueError, match=r"runs?|integer"):
        decode_runs(bytes.fromhex(data))


@given(st.binary(max_size=40))
def test_random_bytes_are_refused_or_increasing(data: bytes) -> None:
    try:
        decoded = decode_runs(b"\x01" + data)
    except ValueError:
        return
    assert normalise(decoded) == decoded
