"""What a job says while it waits for executors, and how it ends without them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.copying.progress import beside
from ferry.errors import NoExecutors
from ferry.spark import runner
from ferry.spark.runner import WAIT_PROPERTY, ExecutorWatch

pytestmark = pytest.mark.unit


class Spark:
    """A cluster with `there` executors and `running` tasks; `context` is the job's."""

    def __init__(self, wait_seconds: float) -> None:
        self.there = self.running = 0
        self.looked, self.cancelled = threading.Event(), threading.Event()
        tracker = SimpleNamespace(
            getExecutorInfos=self._executors,
            getActiveStageIds=lambda: [1, 2],
            getStageInfo=lambda stage: None if stage == 1 else SimpleNamespace(numActiveTasks=self.running),
        )
        self.context: Any = SimpleNamespace(
            master="spark://master:7077",
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker)),
            getConf=lambda: {WAIT_PROPERTY: str(wait_seconds)},
            statusTracker=lambda: tracker,
            cancelAllJobs=self.cancelled.set,
        )

    def looked_again(self) -> bool:
        self.looked.clear()
        return self.looked.wait(30)

    def _executors(self) -> list[int]:
        self.looked.set()
        return [0] * (1 + self.there)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "FIRST_SECONDS", "REPEAT_SECONDS"):
        monkeypatch.setattr(runner, name, 0.001)


class Said(list[str]):
    """Lines, and a way to wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()

    def __call__(self, text: str) -> None:
        with self.changed:
            self.append(text)
            self.changed.notify_all()

    def until(self, beginning: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: any(line.startswith(beginning) for line in self), 30)


def test_what_is_waited_for_is_said_until_a_task_runs() -> None:
    spark, said = Spark(600.0), Said()
    watch = ExecutorWatch(spark.context, 8, said)
    with beside("ferry-executors", watch.watch):
        assert said.until("waiting for executors: 0 so far, none of 8 tasks runs (0 s)")
        spark.there = 2
        assert said.until("waiting for executors: 2 so far, none of 8 tasks runs ")
        spark.running = 1
        assert spark.looked_again()
        assert spark.looked_again()
        before = len(said)
        assert spark.looked_again()
        assert spark.looked_again()
        assert len(said) == before
        watch.check()


def test_without_executors_the_jobs_are_cancelled_and_those_that_follow_them() -> None:
    spark = Spark(0.01)
    watch = ExecutorWatch(spark.context, 8, Said())
    with beside("ferry-executors", watch.watch):
        assert spark.cancelled.wait(30)
        spark.there = 1
        assert spark.looked_again()
        spark.cancelled.clear()
        assert spark.cancelled.wait(30)
    with pytest.raises(NoExecutors, match="no executor for this run"):
        watch.check()
