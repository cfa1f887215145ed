"""What the driver of a run that follows does while lanes copy: which partitions get a lane, and which failures it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.driver_bench import REFRESH_SECONDS, Bench, Lease, keys

from ferry.clusters.groups.coordination import COORDINATION_SECONDS
from ferry.copying import driver, following_driver
from ferry.copying.driver import LOOK_SECONDS
from ferry.copying.lane_messages import LaneTask
from ferry.copying.lanes import FEWEST_LANES
from ferry.copying.run_liveness import FOLLOW_LOOK_SECONDS
from ferry.errors import ClusterUnreachable, NoExecutors

pytestmark = pytest.mark.unit


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def build(**more: Any) -> Bench:
        return Bench(tmp_path, monkeypatch.setattr, **more)

    return build


def look_until_some(made: Bench) -> list[LaneTask]:
    """The lanes that the driver hands out next."""
    while not (tasks := made.look()):
        made.clock.now += 0.5
    return tasks


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


def test_what_a_lane_leaves_that_fell_behind_gets_all_that_have_room(bench: Callable[..., Bench]) -> None:
    made = bench(partitions=6, width=3, lanes=None)
    (first,) = made.begin()
    assert first.grows
    made.end(first, behind=True)
    again = look_until_some(made)
    assert [(task.lane, len(task.partitions), task.grows) for task in again] == [(lane, 2, False) for lane in range(3)]
    assert made.lease.retaken == [first.lane]
    assert all(task.identity == made.held[task.lane] for task in again)
    made.end(again[1], failed=[again[1].partitions[0].key])
    (one,) = look_until_some(made)
    assert keys([one]) == {again[1].partitions[1].key}


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


def test_a_lane_that_is_lost_again_and_again_does_not_stop_the_thread_of_the_others(bench: Callable[..., Bench]) -> None:
    made = bench()
    lost, other = made.begin()
    for pause in (0.0, 2.0, 4.0):
        made.lose(lost)
        begun = made.clock.now
        again = look_until_some(made)
        assert made.clock.now == begun + pause
        assert (made.clock.slept, keys(again)) == ([], keys([lost]))
        (lost,) = again
    assert made.lease.confirmed == 3 + (0.0 + 2.0 + 4.0) // FOLLOW_LOOK_SECONDS, "the flow is looked after meanwhile"
    assert other.lane in made.out.tasks


def test_a_plan_that_waits_for_a_cluster_does_not_stop_the_thread_of_the_others(bench: Callable[..., Bench]) -> None:
    made = bench()
    lost, _ = made.begin()
    made.lose(lost)
    made.problem = [ClusterUnreachable("cluster A: gone")] * 3
    again = look_until_some(made)
    assert (made.clock.slept, keys(again), len([text for text in made.said if "cluster A: gone" in text])) == ([], keys([lost]), 1)
    made.lose(again[0])
    begun = made.clock.now
    made.problem = [ClusterUnreachable("cluster A: gone for good")] * 1_000
    with pytest.raises(ClusterUnreachable, match="for good"):
        look_until_some(made)
    assert COORDINATION_SECONDS < made.clock.now - begun < COORDINATION_SECONDS + 10


@pytest.mark.parametrize("listener", [None, "module:Class"])
def test_a_lane_with_an_assignment_listener_may_end_by_itself_before_it_gets_more_partitions(
    bench: Callable[..., Bench], listener: str | None
) -> None:
    made = bench(listener=listener)
    made.begin()
    made.room = False
    made.partitions.add(4)
    assert made.refresh() == []
    (lane,) = made.out.interrupted
    assert made.lease.retaken == ([lane] if listener else []), "it is fenced"
    made.look()
    assert made.interrupted == ([] if listener else [lane])
    made.clock.now += 2 * LOOK_SECONDS
    made.look()
    assert set(made.interrupted) == {lane}


def test_what_the_last_plan_has_read_does_not_count_when_new_topics_are_looked_for(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, kept = bench(), list[object]()
    made.begin()
    made.driver._request = replace(made.driver._request, topics=())
    made.driver._opened._records = {}
    monkeypatch.setattr(following_driver, "sync_topics", lambda opened: kept.append(opened._records))
    made.refresh()
    assert kept == [None]


def test_the_transaction_of_a_lane_that_has_failed_is_aborted_at_once(bench: Callable[..., Bench]) -> None:
    made = bench()
    stopped, _ = made.begin()
    made.stop(stopped)
    for _ in range(2):
        assert made.look() == []
        assert made.lease.retaken == [stopped.lane]
    assert made.held[stopped.lane].epoch == 1


def test_a_run_without_free_cores_takes_the_flow_so_that_the_old_one_leaves_its_cores(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench()
    asked: list[int] = []

    def warm_up(lanes: int) -> None:
        asked.append(lanes)
        raise NoExecutors("no executor for 120 s")

    acted: list[Any] = []
    made.runner.warm_up = warm_up
    monkeypatch.setattr(driver, "RunLease", lambda _: Lease())
    made.driver.records = SimpleNamespace(begin=lambda: None, end=lambda *_, **__: None)  # type: ignore[assignment]
    made.driver.under_the_fence(acted.append)
    assert (asked, len(acted)) == ([FEWEST_LANES], 1)


def test_a_look_for_topics_that_failed_is_soon_done_again(bench: Callable[..., Bench]) -> None:
    made = bench()
    made.begin()
    made.partitions.add(4)
    made.problem = [ClusterUnreachable("cluster A: gone")]
    assert made.refresh() == []
    failed = made.clock.now
    assert [part.partition for task in look_until_some(made) for part in task.partitions] == [4]
    assert made.clock.now - failed == LOOK_SECONDS


def test_a_partition_that_is_gone_before_it_gets_another_lane_is_named(bench: Callable[..., Bench]) -> None:
    made = bench()
    first, _ = made.begin()
    failed, gone = (part.key for part in first.partitions)
    made.partitions.remove(gone.partition)
    made.end(first, failed=[failed])
    assert made.look() == []
    assert made.failed == {failed, gone}
    assert made.driver._plans.failures[gone].error == "SourceMissing"
