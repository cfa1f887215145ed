"""A partition keeps its lane until the lane ends, and gets another one then."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.cursors import COPIED, task

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.copying.lane_assignment import LaneAssignment
from ferry.copying.lane_messages import Failure, LaneResult, PartitionOutcome, PartitionTask, Segment

pytestmark = pytest.mark.unit

HELD = {number: ProducerIdentity(number, 0) for number in range(4)}


def parts(*numbers: int) -> list[PartitionTask]:
    return [replace(task(Segment(COPIED, 0, 10)), partition=number) for number in numbers]


def made(width: int, *, follows: bool = True, lanes: int | None = 4, rate: float | None = None, far: bool = False) -> LaneAssignment:
    flow: Any = SimpleNamespace(lanes=lanes, max_bytes_per_second=rate, transaction_bytes=1 << 20, transactional_id="ferry-A->B-{}".format)
    found = LaneAssignment(flow, (lambda: width) if follows else None, lambda: far)
    found.decide(8)
    return found


@pytest.mark.parametrize("width", [1, 2, 9])
def test_lanes_that_follow_are_as_many_as_run_at_the_same_time(width: int) -> None:
    tasks = made(width).tasks(parts(*range(8)), HELD)
    assert len(tasks) == min(width, 4)
    assert sorted(part.partition for entry in tasks for part in entry.partitions) == list(range(8))


def test_little_needs_one_lane_if_nothing_follows() -> None:
    assert len(made(9, follows=False).tasks(parts(*range(8)), HELD)) == 1


def test_a_lost_lane_gets_its_partitions_again() -> None:
    assignment = made(2)
    first = assignment.tasks(parts(*range(8)), HELD)
    lost = first[1]
    assert all(assignment.has({lost.lane}, part.key) for part in lost.partitions)
    assert assignment.tasks(lost.partitions, HELD) == [lost]


def test_what_a_lane_leaves_gets_one_that_is_free() -> None:
    assignment = made(2)
    first = assignment.tasks(parts(*range(4)), HELD)
    failed, *others = first[0].partitions
    outcomes = [PartitionOutcome(*failed.key, 3, Failure("SourceMissing", "gone", passing=False))]
    outcomes += [PartitionOutcome(*part.key, 7) for part in others]
    assignment.end(LaneResult(first[0].lane, tuple(outcomes)))
    assert assignment.left == {part.key for part in others}
    assert assignment.is_new(failed.key)
    (lane,) = assignment.free_lanes(HELD, [first[1].lane])
    assert lane == first[0].lane
    (again,) = assignment.tasks(others, HELD, [lane])
    assert (again.lane, [part.key for part in again.partitions]) == (lane, [part.key for part in others])


def test_if_all_lanes_are_handed_out_there_is_one_more() -> None:
    assignment = made(4)
    assert (assignment.free_lanes(HELD, HELD), assignment.lanes) == ([4], 5)


def heavy(*numbers: int) -> list[PartitionTask]:
    return [replace(part, offset_bytes=1e6) for part in parts(*numbers)]


def test_a_run_that_follows_begins_with_as_few_lanes_as_its_backlog_is_worth() -> None:
    assert len(made(4, lanes=None).tasks(parts(*range(4)), HELD)) == 1
    assert len(made(4, lanes=None).tasks(heavy(*range(4)), HELD)) == 4


@pytest.mark.parametrize("how", [{"lanes": 4}, {"rate": 1e6}, {"far": True}])
def test_with_a_given_number_a_limit_or_a_far_cluster_it_begins_with_all(how: dict[str, Any]) -> None:
    tasks = made(4, **{"lanes": None, **how}).tasks(parts(*range(4)), HELD)
    assert len(tasks) == 4
    assert not any(entry.grows for entry in made(8, **{"lanes": None, **how}).tasks(parts(*range(4)), HELD))


def test_what_a_lane_leaves_that_fell_behind_is_spread_over_all_that_have_room() -> None:
    assignment = made(3, lanes=None)
    (first,) = assignment.tasks(parts(*range(7)), HELD)
    assert first.grows
    assignment.end(LaneResult(first.lane, tuple(PartitionOutcome(*part.key, 7) for part in first.partitions), behind=True))
    lanes = assignment.free_lanes(HELD, [])
    again = assignment.tasks(first.partitions, HELD, lanes)
    assert [(entry.lane, len(entry.partitions), entry.grows) for entry in again] == [(0, 3, False), (1, 2, False), (2, 2, False)]


def test_a_lane_that_fell_behind_leaves_others_theirs() -> None:
    assignment = made(3, lanes=None)
    (first,) = assignment.tasks(parts(*range(4)), HELD)
    (other,) = assignment.tasks(parts(7, 8), HELD, [1])
    assignment.end(LaneResult(first.lane, tuple(PartitionOutcome(*part.key, 7) for part in first.partitions), behind=True))
    lanes = assignment.free_lanes(HELD, [other.lane])
    assert [(entry.lane, len(entry.partitions)) for entry in assignment.tasks(first.partitions, HELD, lanes)] == [(0, 2), (2, 2)]


def test_a_lane_of_one_partition_or_without_room_beside_it_does_not_end_for_more() -> None:
    assert not made(3, lanes=None).tasks(parts(1), HELD)[0].grows
    assert not made(1, lanes=None).tasks(parts(1, 2), HELD)[0].grows


def test_the_smallest_lane_is_the_one_with_the_fewest_partitions() -> None:
    assignment = made(2)
    first, second = assignment.tasks(parts(*range(5)), HELD)
    assert assignment.smallest({first.lane, second.lane}) == min(first, second, key=lambda entry: len(entry.partitions)).lane
    assert assignment.smallest({first.lane}) == first.lane
