"""The bandwidth budget of a run is divided by the tasks that run at a time: no more than there are cores when it begins."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.clusters.groups.coordination import NO_IDENTITY
from ferry.copying.lane_attempts import LanesOut
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask, PartitionTask, Segment
from ferry.copying.lane_runner import LANES_BESIDE
from ferry.copying.lanes import GROUP_WEIGHT
from ferry.ledger.receipts import ReceiptKind
from ferry.spark import job as spark_job
from ferry.spark import runner
from ferry.spark.job import most_tasks
from ferry.spark.runner import SparkLaneRunner

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both clusters. A context of these tests says how many tasks its executors can run."""
    monkeypatch.setattr(runner, "is_far", lambda _: False)
    for module in (runner, spark_job):
        monkeypatch.setattr(module, "task_slots", lambda context: context.slots)


PART = PartitionTask("t", 0, UUID(int=1), "A.t", UUID(int=2), 0, segments=(Segment(ReceiptKind.COPIED, 0, 10),))


@pytest.mark.parametrize(
    ("tasks", "lanes", "cores", "budget", "shares", "width"),
    [
        (4, 8, 4, 8e6, [2e6] * 4, 4),
        (8, 3, 16, 9e6, [3e6] * 3, 3),
        (1, 5, 4, 5e6, [5e6], 1),
        (8, 8, 2, 6e6, [3e6] * 8, 2),
        (2, 2, 2, None, [None] * 2, 2),
        (8, 8, 2, None, [None] * 8, 8),
    ],
)
def test_shares_of_what_runs_at_a_time_add_up_to_the_budget(
    monkeypatch: pytest.MonkeyPatch,
    tasks: int,
    lanes: int,
    cores: int,
    budget: float | None,
    shares: list[float | None],
    width: int,
) -> None:
    budgets: list[float | None] = []
    widths: list[int] = []

    def noted(_: Any, groups: Any, work: Any, __: Any, *, width: int, look: float | None, **_more: Any) -> Any:
        assert look is None, "nothing follows"
        widths.append(width)
        for group in groups:
            budgets.append(work.args[0].bytes_per_second)
            yield group, [LaneResult(task.lane) for task in group]

    monkeypatch.setattr(runner, "run_groups", noted)
    nothing: Any = None
    context: Any = SimpleNamespace(slots=0)  # executors are on their way
    monkeypatch.setattr(SparkLaneRunner, "warm_up", lambda *_: setattr(context, "slots", cores))
    job = CopyJob(nothing, "run", "id", 5, budget)
    todo = [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (PART,)) for lane in range(lanes)]
    results = list(SparkLaneRunner(context, tasks, print).run(nothing, job, todo, list))
    assert (budgets, sorted(result.lane for result in results)) == (shares, list(range(lanes)))
    assert widths == [width]


@pytest.mark.parametrize(("master", "tasks"), [("local[2]", 2), ("local", 2), ("spark://m:7077", 8), ("yarn", 8), ("k8s://https://m", 8)])
def test_without_a_limit_each_lane_may_be_a_task_but_on_this_machine(master: str, tasks: int) -> None:
    context: Any = SimpleNamespace(master=master, slots=2)
    assert most_tasks(context, 8) == tasks


def test_lanes_that_a_task_brought_no_result_of_are_lost_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark starts a task again by itself when its executor was lost, and every attempt but the first does nothing."""

    def second_attempt(_: Any, groups: Any, *__: Any, width: int, look: float | None, **_more: Any) -> Any:
        while groups:
            group = groups.popleft()
            yield group, [LaneResult(task.lane) for task in group if task.lane == 1]

    monkeypatch.setattr(runner, "run_groups", second_attempt)
    lanes = [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (PART,)) for lane in range(3)]
    nothing: Any = None
    job = CopyJob(nothing, "run", "id", 5)
    results = list(SparkLaneRunner(nothing, 2, print).run(nothing, job, lanes, list))
    assert {result.lane: result.failure for result in results} == {0: runner.LOST, 1: None, 2: runner.LOST}


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("cores", [4, 2])
def test_lost_lanes_run_beside_the_others_within_the_same_number_of_tasks(monkeypatch: pytest.MonkeyPatch, far: bool, cores: int) -> None:
    """With two cores, two groups still wait for a task when the first one dies."""
    monkeypatch.setattr(runner, "is_far", lambda _: far)
    ran: list[list[int]] = []

    monkeypatch.setattr(SparkLaneRunner, "warm_up", lambda *_: None)

    def first_dies(_: Any, groups: Any, *__: Any, width: int, look: float | None, **_more: Any) -> Any:
        running = [groups.popleft() for _ in range(width)]
        while running:
            group = running.pop(0)
            ran.append([task.lane for task in group])
            yield group, "executor lost" if len(ran) == 1 else [LaneResult(task.lane) for task in group]
            while groups and len(running) < width:
                running.append(groups.popleft())

    monkeypatch.setattr(runner, "run_groups", first_dies)
    lanes = [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (PART,)) for lane in range(8)]
    out = LanesOut()
    out.give(lanes)
    nothing: Any = None
    context: Any = SimpleNamespace(slots=cores)
    results = []
    for result in SparkLaneRunner(context, 4, print).run(
        nothing, CopyJob(nothing, "run", "id", 5, 8e6), lanes, lambda: out.give_again([*map(lanes.__getitem__, out.lost)])[0]
    ):
        results.append((result.lane, result.failure is None))
        out.take(result.lane, None if result.failure is None else result.failure.problem)
    struck = ran[0]
    assert results[: len(struck)] == [(lane, False) for lane in struck]
    assert sorted(lane for lane, done in results if done) == list(range(8))
    assert ran[4:] == ([struck] if far else [[lane] for lane in struck])


def test_far_away_a_task_that_is_done_takes_the_next_lanes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "is_far", lambda _: True)
    taken: list[int] = []

    def noted(_: Any, groups: Any, *__: Any, width: int, **_more: Any) -> Any:
        taken.extend(len(group) for group in groups)
        return iter(())

    monkeypatch.setattr(runner, "run_groups", noted)
    heavy = replace(PART, offset_bytes=GROUP_WEIGHT)
    nothing: Any = None
    lanes = [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (heavy,)) for lane in range(4 * LANES_BESIDE)]
    assert list(SparkLaneRunner(nothing, 2, print).run(nothing, CopyJob(nothing, "run", "id", 5), lanes, list)) == []
    assert taken == [LANES_BESIDE] * 4


@pytest.mark.parametrize(("tasks", "lanes", "started"), [(128, 8, 8), (2, 8, 2)])
def test_as_many_workers_are_started_as_there_will_be_lanes(monkeypatch: pytest.MonkeyPatch, tasks: int, lanes: int, started: int) -> None:
    asked: list[tuple[int, int]] = []

    def noted(_: Any, groups: Any, *__: Any, width: int) -> Any:
        asked.append((len(groups), width))
        return iter(())

    monkeypatch.setattr(runner, "run_groups", noted)
    nothing: Any = None
    SparkLaneRunner(nothing, tasks, print).warm_up(lanes)
    assert asked == [(started, started)]
