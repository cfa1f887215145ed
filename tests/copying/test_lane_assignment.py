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


def made(width: int, *, follows: bool = True) -> LaneAssignment:
    flow: Any = SimpleNamespace(lanes=4, transaction_bytes=1 << 20, transactional_id="ferry-A->B-{}".format)
    found = LaneAssignment(flow, (lambda: width) if follows else None)
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
    lane = assignment.free_lane(HELD, [first[1].lane])
    assert lane == first[0].lane
    (again,) = assignment.tasks(others, HELD, lane)
    assert (again.lane, [part.key for part in again.partitions]) == (lane, [part.key for part in others])


def test_if_all_lanes_are_handed_out_there_is_one_more() -> None:
    assignment = made(4)
    assert (assignment.free_lane(HELD, HELD), assignment.lanes) == (4, 5)


def test_the_smallest_lane_is_the_one_with_the_fewest_partitions() -> None:
    assignment = made(2)
    first, second = assignment.tasks(parts(*range(5)), HELD)
    assert assignment.smallest({first.lane, second.lane}) == min(first, second, key=lambda entry: len(entry.partitions)).lane
    assert assignment.smallest({first.lane}) == first.lane
