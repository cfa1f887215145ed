"""Ranges answer as the sets of offsets that they stand for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.ranges import Ranges, end_of_range_at, next_start, outside, size, union, within

pytestmark = pytest.mark.unit

PIECES = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 8)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=8)
BEYOND = 1 << 63


def offsets(ranges: Ranges) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


@given(PIECES)
def test_a_union_is_sorted_disjoint_and_never_touches(pieces: list[tuple[int, int]]) -> None:
    joined = union(pieces)
    assert offsets(joined) == offsets(tuple(pieces))
    assert all(start < end for start, end in joined)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(joined))
    assert (union(joined), size(joined)) == (joined, len(offsets(joined)))


@given(PIECES, st.integers(0, 50), st.integers(0, 50))
def test_inside_and_outside_share_out_an_interval(pieces: list[tuple[int, int]], start: int, end: int) -> None:
    ranges = union(pieces)
    wanted = set(range(start, end))
    inside, beside = within(ranges, start, end), outside(ranges, start, end)
    assert (inside, offsets(inside)) == (union(inside), wanted & offsets(ranges))
    assert (beside, offsets(beside)) == (union(beside), wanted - offsets(ranges))


@given(PIECES, st.integers(0, 50))
def test_where_to_go_on(pieces: list[tuple[int, int]], offset: int) -> None:
    ranges = union(pieces)
    held = offsets(ranges)
    assert end_of_range_at(ranges, offset) == next(at for at in range(offset, 99) if at not in held)
    assert next_start(ranges, offset) == min((at for at in held if at >= offset), default=BEYOND)
