"""Ends a job that has no executor for too long. Spark itself would wait for ever.

A Spark cluster that has lost all its workers accepts applications, and gives them nothing. While no task runs, the watch says what the job
waits for.
"""

import time
from collections.abc import Callable
from threading import Event

from pyspark import SparkContext

from ferry.copying.progress import FIRST_SECONDS, REPEAT_SECONDS
from ferry.errors import NoExecutors

# A property of Spark's configuration: after this many seconds without any executor the job ends. Pulling images may take longer.
WAIT_PROPERTY, WAIT_SECONDS = "spark.ferry.executors.wait.seconds", "120"
POLL_SECONDS = 1.0


class ExecutorWatch:
    """Watches the executors, in a thread beside the job. `tasks`: how many tasks wait for executors, for the message."""

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
