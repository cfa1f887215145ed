"""The bandwidth budget of a run is divided by the tasks that run at a time: no more than there are cores when it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.clusters.coordination import NO_IDENTITY
from ferry.copying.model import CopyJob, LaneResult, LaneTask, PartitionTask, Segment
from ferry.copying.receipts import ReceiptKind
from ferry.spark import runner
from ferry.spark.job import most_tasks
from ferry.spark.runner import SparkLaneRunner

pytestmark = pytest.mark.unit


PART = PartitionTask("t", 0, UUID(int=1), "A.t", UUID(int=2), 0, segments=(Segment(ReceiptKind.COPIED, 0, 10),))


@pytest.mark.parametrize(
    ("tasks", "lanes", "cores", "budget", "shares", "width"),
    [
        (4, 8, 4, 8e6, [2e6] * 4, 4),
        (8, 3, 16, 9e6, [3e6] * 3, 3),
        (1, 5, 4, 5e6, [5e6], 1),
        (8, 8, 2, 6e6, [3e6] * 8, 2),
        (2, 2, 2, None, [None] * 2, None),
        (8, 8, 2, None, [None] * 8, None),
    ],
)
def test_shares_of_what_runs_at_a_time_add_up_to_the_budget(
    monkeypatch: pytest.MonkeyPatch,
    tasks: int,
    lanes: int,
    cores: int,
    budget: float | None,
    shares: list[float | None],
    width: int | None,
) -> None:
    budgets: list[float | None] = []
    widths: list[int | None] = []

    def noted(_: Any, groups: list[list[LaneTask]], work: Any, __: Any, *, width: int | None) -> Any:
        widths.append(width)
        for group in groups:
            budgets.append(work.args[0].bytes_per_second)
            yield group, [LaneResult(task.lane, task.identity) for task in group]

    monkeypatch.setattr(runner, "run_groups", noted)
    nothing: Any = None
    context: Any = SimpleNamespace(defaultParallelism=cores)
    job = CopyJob(nothing, "run", "group", "ledger", "id", 5, "state", budget)
    todo = [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (PART,)) for lane in range(lanes)]
    results = list(SparkLaneRunner(context, tasks, print).run(job, todo))
    assert (budgets, sorted(result.lane for result in results)) == (shares, list(range(lanes)))
    assert widths == [width]


@pytest.mark.parametrize(("master", "tasks"), [("local[2]", 2), ("local", 2), ("spark://m:7077", 8), ("yarn", 8), ("k8s://https://m", 8)])
def test_without_a_limit_each_lane_may_be_a_task_but_on_this_machine(master: str, tasks: int) -> None:
    # What Spark says before the first executor of a cluster has come.
    context: Any = SimpleNamespace(master=master, defaultParallelism=2)
    assert most_tasks(context, 8) == tasks
