"""Ends a job whose Spark cluster has no executor: Spark itself would wait for one for ever, and the run with it.

A cluster that has lost all its workers takes applications and gives them nothing. One whose workers come back in time is waited for. While
no task runs, it says what the job waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark import SparkContext

from ferry.copying.slow_steps import FIRST_SECONDS, REPEAT_SECONDS
from ferry.errors import NoExecutors

# Of Spark's configuration: seconds without any executor after which a job ends. Images that are pulled first may need more.
WAIT_PROPERTY, WAIT_SECONDS = "spark.ferry.executors.wait.seconds", "120"
POLL_SECONDS = 1.0
JOIN_SECONDS = 10.0


class ExecutorWatch:
    """Watches as long as it is entered; on local masters, where the driver is the executor, there is nothing to watch.

    `tasks` is how many may be given to executors meanwhile.
    """

    def __init__(self, context: SparkContext, tasks: int, say: Callable[[str], None]) -> None:
        self._context, self._tasks, self._say = context, tasks, say
        self._seconds = float(context.getConf().get(WAIT_PROPERTY, WAIT_SECONDS) or WAIT_SECONDS)
        self._over = threading.Event()
        self._gave_up = False
        self._thread = threading.Thread(target=self._watch, name="ferry-executors", daemon=True)

    def __enter__(self) -> ExecutorWatch:
        if not (self._context.master or "").startswith("local"):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def check(self) -> None:
        """NoExecutors when the jobs were cancelled for want of one."""
        if self._gave_up:
            raise NoExecutors(
                f"Spark master {self._context.master} has had no executor for this run for {self._seconds:.0f} s: it has no workers, "
                f"or none with enough free cores and memory"
            )

    def _watch(self) -> None:
        began = seen = time.monotonic()
        tell_at = began + FIRST_SECONDS
        begun = False
        while not self._over.wait(POLL_SECONDS):
            # The driver is in this list.
            executors, now = len(self._context.statusTracker().getExecutorInfos()) - 1, time.monotonic()
            begun = executors > 0 and (begun or self._any_task_runs())
            if executors > 0:
                seen = now
            elif now - seen > self._seconds:
                self._gave_up = True
            if self._gave_up:  # jobs that begin only now, in the place of cancelled ones, would wait for ever
                self._context.cancelAllJobs()
            elif not begun and now >= tell_at:
                tell_at = now + REPEAT_SECONDS
                self._say(f"waiting for executors: {executors} so far, none of {self._tasks} tasks runs ({now - began:.0f} s)")

    def _any_task_runs(self) -> bool:
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)
