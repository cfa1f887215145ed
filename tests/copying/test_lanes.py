"""Lanes are stable by name, and balancing loses nothing."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.partitions import TopicPartition
from ferry.copying.lanes import balance, number_of_lanes

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Load:
    name: int
    weight: int


@given(st.text(min_size=1, max_size=30), st.integers(0, 10_000), st.integers(1, 64))
def test_a_lane_depends_on_name_number_and_count_alone(topic: str, partition: int, lanes: int) -> None:
    lane = TopicPartition(topic, partition).share(lanes)
    assert lane == (crc32(topic.encode()) + partition) % lanes
    assert 0 <= lane < lanes


def test_lanes_do_not_change_between_versions() -> None:
    assert [TopicPartition("orders", number).share(8) for number in range(4)] == [6, 7, 0, 1]


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
