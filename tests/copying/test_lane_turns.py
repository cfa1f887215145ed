"""A turn of a lane's loop costs what has changed since the last one, not what the lane has."""

from __future__ import annotations

import pytest
from tests.copying.lane_bench import LaneBench

pytestmark = pytest.mark.unit


def nothing() -> None:
    """Time passes."""


def turns(partitions: int, *, follows: bool) -> list[int]:
    """Function calls of a turn without news, of one with an accepted batch, and of one without news after it."""
    bench = LaneBench(partitions, follows=follows)
    bench.run(lambda: bench.fetched(0, 1, 2), nothing, nothing, bench.accepted, nothing)
    *_, before, accepted, after = bench.turns
    cursor = bench.lane._cursors[bench.lane._task.partitions[0].remote]
    assert (cursor.settled, cursor.touched, len(bench.source.requests), bench.target.requests) == (3, True, 1, [])
    return [before, accepted, after]


@pytest.mark.parametrize("follows", [False, True])
def test_a_turn_does_not_look_at_partitions_that_have_no_news(follows: bool) -> None:
    assert turns(2_000, follows=follows) == turns(20, follows=follows)
