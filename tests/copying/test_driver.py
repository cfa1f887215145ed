"""What the driver of a run that follows does while lanes copy: which partitions get a lane, and which failures it reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.copying.driver_bench import REFRESH_SECONDS, Bench, keys

pytestmark = pytest.mark.unit


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def build(**more: Any) -> Bench:
        return Bench(tmp_path, monkeypatch.setattr, **more)

    return build


def test_a_partition_that_failed_is_named_as_long_as_no_lane_has_room_for_it(bench: Callable[..., Bench]) -> None:
    made = bench()
    first, second = made.begin()
    failed, other = (part.key for part in first.partitions)
    made.clock.now += REFRESH_SECONDS / 2
    made.end(first, failed=[failed])
    assert keys(made.look()) == {other}
    made.room = False
    assert made.refresh() == []
    assert (made.failed, made.out.interrupted) == ({failed}, set()), "it would end the lane that it joins"
    assert made.refresh() == []
    assert (made.failed, len(made.out.interrupted)) == ({failed}, 1), "after a while it may join"
    assert second.lane in made.out.tasks


def test_each_time_that_a_partition_fails_it_joins_others_later(bench: Callable[..., Bench]) -> None:
    made = bench()
    failed = made.begin()[0].partitions[0].key
    assignment = made.driver._assignment
    waited = []
    for _ in range(3):
        assignment.fail(failed, 0.0)
        waited.append(next(seconds for seconds in range(0, 10_000, 100) if assignment.may_join(failed, seconds)))
    assert waited == [REFRESH_SECONDS, 2 * REFRESH_SECONDS, 4 * REFRESH_SECONDS]
    assignment.forget(failed)
    assert assignment.may_join(failed, 0.0)
    assignment.fail(failed, 0.0)
    assert assignment.may_join(failed, REFRESH_SECONDS)


def test_a_failure_is_named_until_a_lane_has_copied_some_of_the_partition(bench: Callable[..., Bench]) -> None:
    made = bench(partitions=1, width=1)
    (task,) = made.begin()
    key = task.partitions[0].key
    made.end(task, failed=[key])
    for _ in range(2):
        (task,) = made.refresh()
        assert (made.failed, keys([task])) == ({key}, {key}), "nobody knows yet whether it goes on"
        made.end(task)
        assert made.failed == {key}, "nothing was copied"
        (task,) = made.look()
        assert keys([task]) == {key}
        made.end(task, failed=[key])
    (task,) = made.refresh()
    made.end(task, moved=[key])
    assert made.failed == set()
