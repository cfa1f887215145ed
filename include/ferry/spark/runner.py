"""Runs lanes and ranges as Spark tasks. Each group of them is a Spark job of its own, in one application.

So a worker that is killed fails only its group, and the others keep their results.
Lanes of a group that failed are lost; the driver of the copy takes them back and runs them again. Ranges of a verify are run again too.
Nobody else may run a lane again. But Spark may start a task once more by itself while the first attempt still runs (a lost executor,
speculation). Two attempts that call InitProducerId in turns, each with the result of the other's last call, would end with the same
producer id and epoch. So every attempt but the first does nothing.
"""

import logging
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
from ferry.copying.lane import LOOK_SECONDS as LANE_LOOK_SECONDS
from ferry.copying.lane_attempts import WORKER_DIED
from ferry.copying.lane_messages import CopyJob, Failure, LaneResult, LaneTask
from ferry.copying.lane_runner import LANES_BESIDE, LOOK_SECONDS, More, is_far, run_lanes
from ferry.copying.lanes import balance, task_groups
from ferry.copying.progress import FIRST_SECONDS, REPEAT_SECONDS, beside
from ferry.ending import show_warnings
from ferry.errors import NoExecutors
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.spark.executors import executors, task_slots
from ferry.verify.comparison import RangeResult, VerifyRange
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
# A task waits at most this long for the others to start. Otherwise one worker would do all of them.
WARM_UP_SECONDS = 0.2
# Lanes that were lost, and lanes of partitions that are new while a run follows: each is a task of its own.
SPARE_TASKS = 32
# Lanes that are fenced end by themselves in this time, and Ferry calls their assignment listener. Without a listener Ferry does not wait.
LEAVE_SECONDS = 2 * LANE_LOOK_SECONDS
LOST = Failure("WorkerLost", WORKER_DIED, passing=True)


class SparkLaneRunner:
    """Spreads lanes over at most `tasks` Spark tasks. Tasks that find no free core wait for one."""

    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say
        self._job_groups: dict[int, str] = {}  # by lane

    @property
    def width(self) -> int:
        """The number of tasks that have a core now: lanes that wait for a core would copy nothing."""
        return max(1, min(self._tasks, task_slots(self._context)))

    def warm_up(self, lanes: int) -> None:
        """Start executors and Python workers."""
        width = min(self._tasks, lanes)
        for _ in run_groups(self._context, deque([[number] for number in range(width)]), _warm, self._say, width=width):
            pass

    def has_room(self, lanes: int) -> bool:
        """Whether a core is free."""
        return lanes < self.width

    def interrupt(self, lane: int) -> None:
        """Cancel the Spark job of its group."""
        if lane in self._job_groups:
            self._context.cancelJobGroup(self._job_groups[lane])

    def _job_group(self, group: Sequence[LaneTask]) -> str:
        name = f"lanes {', '.join(str(task.lane) for task in group)}"
        self._job_groups |= {task.lane: name for task in group}
        return name

    def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """Results as groups finish. Lost lanes run again beside the other groups."""
        beside = LANES_BESIDE if is_far(opened) else 1
        groups = task_groups(tasks, self._tasks, beside)
        width = min(self._tasks, len(groups))
        if job.bytes_per_second is not None and groups:
            # Each task gets an equal part of the bandwidth, so the sum never exceeds it. Tasks that wait for a core would leave their part
            # unused: so no more run at a time than there are cores now.
            if task_slots(self._context) < width:  # a cluster's executors may be on their way
                self.warm_up(width)
            width = min(width, self.width)
            job = replace(job, bytes_per_second=job.bytes_per_second / width)
        waiting, left = deque(groups), len(groups)
        look = LOOK_SECONDS if job.follow_until is not None else None
        if look is not None:
            width = len(groups) + SPARE_TASKS  # lanes that the driver gives later must not wait for others to end
        work = partial(run_group, job)
        leave = LEAVE_SECONDS if look is not None and job.flow.handling.assignment_listener else 0.0
        named = self._job_group
        for group, results in run_groups(self._context, waiting, work, self._say, width=width, look=look, leave=leave, name=named):
            left -= bool(group)
            returned: set[int] = set()
            if isinstance(results, str):
                log.warning("the Spark task of lanes %s failed: %s", ", ".join(str(task.lane) for task in group), results)
            else:
                yield from results
                returned = {result.lane for result in results}  # none where Spark started the task again by itself: see run_group
            yield from (LaneResult(task.lane, failure=LOST) for task in group if task.lane not in returned)
            given = more()
            again = balance(given, max(width - left, min(width, len(given) // beside)))
            waiting.extend(again)
            left += len(again)


def _warm(numbers: Sequence[int]) -> Sequence[int]:
    time.sleep(WARM_UP_SECONDS)
    return numbers


def run_group(job: CopyJob, group: Sequence[LaneTask]) -> Iterator[LaneResult]:
    if (context := TaskContext.get()) and context.attemptNumber() > 0:
        return
    with open_flow(job.flow) as opened:
        yield from run_lanes(opened, job, group)


def verify_group(flow: Flow, run_id: str, group: Sequence[VerifyRange]) -> Iterator[RangeResult]:
    with open_flow(flow) as opened:
        yield from verify_ranges(opened, run_id, group)


def run_ranges(
    opened: OpenFlow, run_id: str, ranges: Sequence[VerifyRange], *, context: SparkContext, tasks: int, say: Callable[[str], None]
) -> Iterator[RangeResult]:
    """Spread ranges over Spark tasks, `tasks` at a time. Results as groups finish; ranges of groups that failed have none."""
    groups = balance(ranges, tasks * RANGE_GROUPS_A_TASK)
    for group, results in run_groups(context, deque(groups), partial(verify_group, opened.flow, run_id), say, width=tasks):
        if isinstance(results, str):
            log.warning("the Spark task of %d ranges failed: %s", len(group), results)
        else:
            yield from results


def run_groups(
    context: SparkContext,
    groups: deque[list[Item]],
    work: Work[Item, Result],
    say: Callable[[str], None],
    *,
    width: int,
    look: float | None = None,
    leave: float = 0.0,
    name: Callable[[list[Item]], str] | None = None,
) -> Generator[tuple[list[Item], list[Result] | str]]:
    """Yields each group as it finishes, with its results, or with one line why it has none. At most `width` groups run at a time.

    `name`: of the Spark job group of a group. `look`: if no group has finished for this many seconds, it yields an empty group. Then the
    caller may close the generator while groups work: they have `leave` seconds to end by themselves.

    Groups are removed from `groups`; groups that are added between two results run too. `work` is pickled, and runs in a Spark worker.
    `say` prints what the job waits for. NoExecutors if there is no executor for too long.
    """
    if not groups:
        return
    watch = ExecutorWatch(context, len(groups), say)
    with beside("ferry-executors", watch.watch), ThreadPoolExecutor(width, thread_name_prefix="ferry-group") as pool:
        running: dict[Future[list[Result]], list[Item]] = {}
        try:
            while groups or running:
                while groups and len(running) < width:
                    group = groups.popleft()
                    running[pool.submit(_in_task, context, work, group, name(group) if name else "")] = group
                done = wait(running, look, return_when=FIRST_COMPLETED).done
                for future in done:
                    group, problem = running.pop(future), future.exception()
                    watch.check()
                    yield group, future.result() if problem is None else _first_line(problem)
                if not done:
                    yield [], []
        except GeneratorExit:
            if look is not None:  # a run that follows has lost the flow: its lanes are fenced, and the idle ones do not know it yet
                wait(running, leave)
                context.cancelAllJobs()
            raise


def _in_task(context: SparkContext, work: Work[Item, Result], group: list[Item], name: str) -> list[Result]:
    if name:
        context.setJobGroup(name, name)
    results: list[Result] = context.parallelize([0], 1).mapPartitions(partial(_in_worker, work, group)).collect()
    return results


def _in_worker(work: Work[Item, Result], group: Sequence[Item], _: Iterable[int]) -> Iterator[Result]:
    show_warnings()
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
            there, now = executors(self._context), time.monotonic()
            begun = there > 0 and (begun or self._any_task_runs())
            if there > 0:
                seen = now
            elif now - seen > self._seconds:
                self._gave_up = True
            if self._gave_up:  # every time: a job that begins after the first cancel would wait for ever
                self._context.cancelAllJobs()
            elif not begun and now >= tell_at:
                tell_at = now + REPEAT_SECONDS
                self._say(f"waiting for executors: {there} so far, none of {self._tasks} tasks runs ({now - began:.0f} s)")

    def _any_task_runs(self) -> bool:
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
