"""Runs lanes and ranges as Spark tasks. Each group of them is a Spark job of its own, in one application.

So a worker that is killed fails only its group, and the others keep their results.
Lanes of a group that failed are lost; the driver of the copy takes them back and runs them again. Ranges of a verify are run again too.
Nobody else may run a lane again. But Spark may start a task once more by itself while the first attempt still runs (a lost executor,
speculation). Two attempts that call InitProducerId in turns, each with the result of the other's last call, would end with the same
producer id and epoch. So every attempt but the first does nothing.
"""

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TypeVar

from pyspark import SparkContext, TaskContext

from ferry.config import Flow
from ferry.copying.lane_runner import LANES_BESIDE, More, is_far, run_lanes
from ferry.copying.lanes import balance, task_groups
from ferry.copying.lanes_out import WORKER_DIED
from ferry.copying.model import CopyJob, Failure, LaneResult, LaneTask
from ferry.copying.progress import FIRST_SECONDS, REPEAT_SECONDS, beside
from ferry.errors import NoExecutors
from ferry.verify.model import RangeResult, VerifyRange
from ferry.verify.range_runner import verify_ranges

Item = TypeVar("Item")
Result = TypeVar("Result")

Work = Callable[[Sequence[Item]], Iterable[Result]]

log = logging.getLogger(__name__)

# The weights of ranges are estimates: with several groups for each task, no task waits long for the slowest.
RANGE_GROUPS_A_TASK = 4
# A property of Spark's configuration: after this many seconds without any executor the job ends. Pulling images may take longer.
WAIT_PROPERTY, WAIT_SECONDS = "spark.ferry.executors.wait.seconds", "120"
POLL_SECONDS = 1.0
LOST = Failure("WorkerLost", WORKER_DIED, passing=True)


class _SparkRunner:
    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say


class SparkLaneRunner(_SparkRunner):
    """Spreads lanes over at most `tasks` Spark tasks. Tasks that find no free core wait for one."""

    def run(self, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """Results as groups finish. Lost lanes run again beside the other groups."""
        beside = LANES_BESIDE if is_far(job.flow) else 1
        groups = task_groups(tasks, self._tasks, beside)
        width = min(self._tasks, len(groups))
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
            lost = more()
            again = balance(lost, max(width - left, min(width, len(lost) // beside)))
            waiting.extend(again)
            left += len(again)


def run_group(job: CopyJob, group: Sequence[LaneTask]) -> Iterator[LaneResult]:
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter(())
    return run_lanes(job, group)


class SparkRangeRunner(_SparkRunner):
    """Spreads ranges over Spark tasks, `tasks` at a time."""

    def run(self, flow: Flow, run_id: str, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
        """Results as groups finish; ranges of groups that failed have none."""
        groups = balance(ranges, self._tasks * RANGE_GROUPS_A_TASK)
        for group, results in run_groups(self._context, deque(groups), partial(verify_ranges, flow, run_id), self._say, width=self._tasks):
            if isinstance(results, str):
                log.warning("the Spark task of %d ranges failed: %s", len(group), results)
            else:
                yield from results


def run_groups(
    context: SparkContext, groups: deque[list[Item]], work: Work[Item, Result], say: Callable[[str], None], *, width: int
) -> Generator[tuple[list[Item], list[Result] | str]]:
    """Yields each group as it finishes, with its results, or with one line why it has none. At most `width` groups run at a time.

    Groups are removed from `groups`; groups that are added between two results run too. `work` is pickled, and runs in a Spark worker.
    `say` prints what the job waits for. NoExecutors if there is no executor for too long.
    """
    if not groups:
        return
    watch = ExecutorWatch(context, len(groups), say)
    with beside("ferry-executors", watch.watch), ThreadPoolExecutor(width, thread_name_prefix="ferry-group") as pool:
        running: dict[Future[list[Result]], list[Item]] = {}
        while groups or running:
            while groups and len(running) < width:
                group = groups.popleft()
                running[pool.submit(_in_task, context, work, group)] = group
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                group, problem = running.pop(future), future.exception()
                watch.check()
                yield group, future.result() if problem is None else _first_line(problem)


def _in_task(context: SparkContext, work: Work[Item, Result], group: list[Item]) -> list[Result]:
    results: list[Result] = context.parallelize([0], 1).mapPartitions(partial(_in_worker, work, group)).collect()
    return results


def _in_worker(work: Work[Item, Result], group: Sequence[Item], _: Iterable[int]) -> Iterator[Result]:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    yield from work(group)


def _first_line(problem: BaseException) -> str:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    telling = [line for line in lines if "SparkException" in line or "Error" in line]
    return (telling or lines or [type(problem).__name__])[0].strip()


class ExecutorWatch:
    """Ends a job that has no executor for too long, in a thread beside it. `tasks`: how many wait for executors, for the message.

    A Spark cluster that has lost all its workers accepts applications, and gives them nothing: Spark itself would wait for ever. While no
    task runs, the watch says what the job waits for.
    """

    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say
        self._seconds = float(context.getConf().get(WAIT_PROPERTY, WAIT_SECONDS) or WAIT_SECONDS)
        self._gave_up = False

    def check(self) -> None:
        """NoExecutors if the watch cancelled the jobs."""
        if self._gave_up:
            raise NoExecutors(
                f"Spark master {self._context.master} has had no executor for this run for {self._seconds:.0f} s: it has no workers, "
                f"or none with enough free cores and memory"
            )

    def watch(self, over: Event) -> None:
        """Until `over`. On a local master there is nothing to watch: the driver is the executor."""
        if (self._context.master or "").startswith("local"):
            return
        began = seen = time.monotonic()
        tell_at = began + FIRST_SECONDS
        begun = False
        while not over.wait(POLL_SECONDS):
            # The list contains the driver.
            executors, now = len(self._context.statusTracker().getExecutorInfos()) - 1, time.monotonic()
            begun = executors > 0 and (begun or self._any_task_runs())
            if executors > 0:
                seen = now
            elif now - seen > self._seconds:
                self._gave_up = True
            if self._gave_up:  # every time: a job that begins after the first cancel would wait for ever
                self._context.cancelAllJobs()
            elif not begun and now >= tell_at:
                tell_at = now + REPEAT_SECONDS
                self._say(f"waiting for executors: {executors} so far, none of {self._tasks} tasks runs ({now - began:.0f} s)")

    def _any_task_runs(self) -> bool:
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
