"""Runs lanes and ranges as Spark tasks.

Lanes of a group that failed are lost; the driver of the copy takes them back and runs them again. Ranges of a verify are run again too.
Nobody else may run a lane again. But Spark may start a task once more by itself while the first attempt still runs (a lost executor,
speculation). Two attempts that call InitProducerId in turns, each with the result of the other's last call, would end with the same
producer id and epoch. So every attempt but the first does nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

from pyspark import SparkContext, TaskContext

from ferry.copying.lane_runner import More, run_lanes
from ferry.copying.lanes import balance
from ferry.copying.lanes_out import WORKER_DIED
from ferry.copying.model import CopyJob, Failure, LaneResult, LaneTask
from ferry.spark.groups import run_groups
from ferry.verify.model import RangeResult, VerifyRange
from ferry.verify.range_runner import VerifyJob, verify_ranges

log = logging.getLogger(__name__)

# The weights of ranges are estimates: with several groups for each task, no task waits long for the slowest.
RANGE_GROUPS_A_TASK = 4
LOST = Failure("WorkerLost", WORKER_DIED, passing=True)


class SparkLaneRunner:
    """Spreads lanes over at most `tasks` Spark tasks. Tasks that find no free core wait for one."""

    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say

    def run(self, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """Results as groups finish. Lost lanes run again beside the other groups."""
        groups = balance(tasks, self._tasks)
        width = len(groups)
        if job.bytes_per_second is not None and groups:
            # Each task gets an equal part of the bandwidth, so the sum never exceeds it. Tasks that wait for a core would leave their part
            # unused: so no more run at a time than there are cores now.
            width = min(width, int(self._context.defaultParallelism))
            job = replace(job, bytes_per_second=job.bytes_per_second / width)
        waiting, left = deque(groups), len(groups)
        for group, results in run_groups(self._context, waiting, partial(run_group, job), self._say, width=width):
            left -= 1
            returned: set[int] = set()
            if isinstance(results, str):
                log.warning("the Spark task of lanes %s failed: %s", ", ".join(str(task.lane) for task in group), results)
            else:
                yield from results
                returned = {result.lane for result in results}  # none where Spark started the task again by itself: see run_group
            yield from (LaneResult(task.lane, failure=LOST) for task in group if task.lane not in returned)
            again = balance(more(), width - left)
            waiting.extend(again)
            left += len(again)


def run_group(job: CopyJob, group: Sequence[LaneTask]) -> Iterator[LaneResult]:
    """What a Spark worker executes: some lanes, one after the other; nothing in an attempt that is not the first."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter(())
    return run_lanes(job, group)


class SparkRangeRunner:
    """Spreads ranges over Spark tasks, `tasks` at a time."""

    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say

    def run(self, job: VerifyJob, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
        """Results as groups finish; ranges of groups that failed have none."""
        groups = balance(ranges, self._tasks * RANGE_GROUPS_A_TASK)
        for group, results in run_groups(self._context, deque(groups), partial(verify_ranges, job), self._say, width=self._tasks):
            if isinstance(results, str):
                log.warning("the Spark task of %d ranges failed: %s", len(group), results)
            else:
                yield from results
