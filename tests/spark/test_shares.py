"""The bandwidth budget of a run is divided by the tasks that it begins with."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ferry.clusters.coordination import NO_IDENTITY
from ferry.copying.model import CopyJob, LaneResult, LaneTask, PartitionTask, Segment
from ferry.copying.receipts import ReceiptKind
from ferry.spark import runner
from ferry.spark.runner import SparkLaneRunner

pytestmark = pytest.mark.unit


PART = PartitionTask("t", 0, UUID(int=1), "A.t", UUID(int=2), 0, committed=False, segments=(Segment(ReceiptKind.COPIED, 0, 10),))


@pytest.mark.parametrize(
    ("tasks", "lanes", "budget", "shares"), [(4, 8, 8e6, [2e6] * 4), (8, 3, 9e6, [3e6] * 3), (1, 5, 5e6, [5e6]), (2, 2, None, [None] * 2)]
)
def test_shares_add_up_to_the_budget(
    monkeypatch: pytest.MonkeyPatch, tasks: int, lanes: int, budget: float | None, shares: list[float | None]
) -> None:
    budgets: list[float | None] = []

    def noted(_: Any, groups: list[list[LaneTask]], work: Any) -> Any:
        for group in groups:
            budgets.append(work.args[0].bytes_per_second)
            yield group, [LaneResult(task.lane, task.identity) for task in group]

    monkeypatch.setattr(runner, "run_groups", noted)
    nothing: Any = None
    job = CopyJob(nothing, "run", "group", "ledger", "id", 5, "state", budget)
    results = list(
        SparkLaneRunner(nothing, tasks).run(job, [LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (PART,)) for lane in range(lanes)])
    )
    assert (budgets, sorted(result.lane for result in results)) == (shares, list(range(lanes)))
