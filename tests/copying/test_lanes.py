"""Lanes are stable by name, and balancing loses nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.lanes import (
    GROUP_WEIGHT,
    GROUPS_A_TASK,
    LANE_WEIGHT,
    balance,
    number_of_lanes,
    spread,
    task_groups,
)

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Load:
    name: int
    weight: int


@pytest.mark.parametrize(
    ("partitions", "lanes"),
    [(0, 8), (1, 8), (8_000, 8), (8_001, 9), (20_000, 20), (127_001, 128), (128_000, 128), (1_000_000, 128)],
)
def test_lanes_follow_the_number_of_partitions(partitions: int, lanes: int) -> None:
    assert number_of_lanes(partitions, None) == lanes


@given(st.integers(0, 1_000_000), st.integers(1, 1_000))
def test_the_config_knows_better(partitions: int, given_lanes: int) -> None:
    assert number_of_lanes(partitions, given_lanes) == given_lanes


@given(st.lists(st.integers(0, 1_000), max_size=40), st.integers(1, 10))
def test_balancing_keeps_everything_once_and_groups_are_not_empty(weights: list[int], groups: int) -> None:
    loads = [Load(name, weight) for name, weight in enumerate(weights)]
    spread = balance(loads, groups)
    assert sorted(load.name for group in spread for load in group) == list(range(len(loads)))
    assert len(spread) <= groups
    assert all(spread)


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=40), st.integers(1, 10))
def test_no_group_is_heavier_than_the_greedy_bound(weights: list[int], groups: int) -> None:
    heaviest = max(sum(load.weight for load in group) for group in balance([Load(0, weight) for weight in weights], groups))
    assert heaviest <= sum(weights) / groups + max(weights)


def test_as_many_groups_as_there_are_lanes_with_work() -> None:
    assert len(balance([Load(name, 5) for name in range(6)], 4)) == 4


def test_the_heaviest_first_and_always_to_the_lightest() -> None:
    spread = balance([Load(name, weight) for name, weight in enumerate([1, 1, 1, 3])], 2)
    assert sorted(sum(load.weight for load in group) for group in spread) == [3, 3]
    assert len(balance([Load(0, 1), Load(1, 1)], 1)) == 1
    assert balance([], 3) == []


def loads(*weights: int) -> list[Load]:
    return [Load(name, weight) for name, weight in enumerate(weights)]


@pytest.mark.parametrize(
    ("weights", "lanes", "used"),
    [
        ([1] * 20, 8, 1),
        ([LANE_WEIGHT], 8, 1),
        ([LANE_WEIGHT, 1], 8, 2),
        ([LANE_WEIGHT // 4] * 20, 8, 5),
        ([LANE_WEIGHT * 9] * 20, 8, 8),
        ([LANE_WEIGHT * 9] * 3, 8, 3),
        ([LANE_WEIGHT * 9] * 3, 1, 1),
        ([], 8, 0),
    ],
)
def test_as_many_lanes_as_are_worth_it(weights: list[int], lanes: int, used: int) -> None:
    assert len(spread(loads(*weights), lanes, 2 * LANE_WEIGHT)) == used


def test_small_transactions_are_worth_a_lane_each() -> None:
    assert len(spread(loads(*[1 << 20] * 6), 8, 1 << 20)) == 6


def test_a_partition_with_ten_times_the_bytes_has_a_lane_of_its_own() -> None:
    large, small = LANE_WEIGHT * 100, LANE_WEIGHT * 10
    lanes = spread(loads(large, *[small] * 15), 8, LANE_WEIGHT)
    assert sorted(len(lane) for lane in lanes) == [1, 2, 2, 2, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("weights", "tasks", "groups"),
    [
        ([1] * 8, 2, 2),  # a small run: each group costs a task's start
        ([GROUP_WEIGHT] * 8, 2, 8),
        ([GROUP_WEIGHT] * 128, 2, 2 * GROUPS_A_TASK),
        ([GROUP_WEIGHT] * 3, 8, 3),
        ([], 2, 0),
    ],
)
def test_the_last_groups_of_a_large_run_are_small(weights: list[int], tasks: int, groups: int) -> None:
    assert len(task_groups(loads(*weights), tasks, 1)) == groups


@pytest.mark.parametrize(("lanes", "groups"), [(8, 2), (31, 3), (32, 4), (128, 8)])
def test_groups_have_all_lanes_that_a_task_runs_side_by_side(lanes: int, groups: int) -> None:
    found = task_groups(loads(*[GROUP_WEIGHT] * lanes), 2, 8)
    assert len(found) == groups
    assert min(map(len, found)) >= min(8, lanes // 2)


@pytest.mark.parametrize("tasks", [2, 4])
@pytest.mark.parametrize("heavy", [1, 10])
def test_tasks_end_at_about_the_same_time(tasks: int, heavy: int) -> None:
    """A task takes the next group when it is done. The best split has no task with more than its share, but for the heaviest partition."""
    partitions = loads(heavy * GROUP_WEIGHT, *[GROUP_WEIGHT] * 15)
    lanes = [Load(name, sum(entry.weight for entry in lane)) for name, lane in enumerate(spread(partitions, 8, LANE_WEIGHT))]
    done = [0] * tasks
    for group in task_groups(lanes, tasks, 1):
        done[done.index(min(done))] += sum(lane.weight for lane in group)
    total = sum(entry.weight for entry in partitions)
    assert max(done) <= 1.2 * max(total / tasks, heavy * GROUP_WEIGHT)
