"""A driver of a run that follows, over clusters and lanes that are as a test says, with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID

from tests.opened import not_opened

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import load_config
from ferry.copying import driver, fenced_plans, following_driver
from ferry.copying.following_driver import FollowingDriver
from ferry.copying.lane_attempts import LanesOut
from ferry.copying.lane_messages import Failure, LaneResult, LaneTask, PartitionOutcome
from ferry.copying.partition_plan import PartitionFacts
from ferry.copying.request import RunRequest

CONFIG = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A.security.protocol = PLAINTEXT
B.security.protocol = PLAINTEXT
A->B.enabled = true
A->B.topics = t
"""
REFRESH_SECONDS = 600.0  # the default of refresh.topics.interval.seconds
FACTS = PartitionFacts(
    topic="t",
    partition=0,
    topic_id=UUID(int=1),
    remote_topic="A.t",
    remote_topic_id=UUID(int=2),
    remote_partitions=8,
    remote_end=0,
    log_start=0,
    end=100,
    stable_end=100,
    start=0,
)


class Clock:
    """Both clocks in one; sleeping moves them."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Lease:
    """Holds whatever it is asked for."""

    def __init__(self) -> None:
        self.confirmed, self.retaken = 0, list[int]()

    def look_up(self) -> None:
        """It is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """It stays held."""

    def confirm(self, _: float | None = None) -> None:
        self.confirmed += 1

    def retake(self, lanes: Collection[int]) -> dict[int, ProducerIdentity]:
        self.confirm()
        self.retaken += lanes
        return {lane: ProducerIdentity(lane, len(self.retaken)) for lane in lanes}

    def take_more_lanes(self, _: int) -> dict[int, ProducerIdentity]:
        return {}


class Bench:
    """Partitions `0` to `partitions` of topic t on lanes; `room`: whether one more lane would begin at once."""

    def __init__(
        self,
        directory: Path,
        patch: Callable[..., None],
        *,
        partitions: int = 4,
        width: int = 2,
        listener: str | None = None,
        lanes: int | None = 8,
    ) -> None:
        config = directory / "mm2.properties"
        config.write_text(CONFIG)
        flow = load_config(config).flow("A->B")
        self.flow = replace(flow, lanes=lanes, handling=replace(flow.handling, assignment_listener=listener))
        self.clock, self.lease, self.out, self.said = Clock(), Lease(), LanesOut(), list[str]()
        self.partitions, self.room, self.problem = set(range(partitions)), True, list[Exception]()
        self.held = {lane: ProducerIdentity(lane, 0) for lane in range(8)}
        self.interrupted: list[int] = []
        self.runner: Any = SimpleNamespace(width=width, has_room=lambda _: self.room, interrupt=self.interrupted.append)
        until = datetime.fromtimestamp(1_000, UTC) + timedelta(days=1)
        request = RunRequest("A->B", "run", topics=("t",), follow_until=until)
        self.driver = FollowingDriver(
            not_opened(self.flow), request, self.runner, self.said.append, until=until.timestamp(), meanwhile=lambda _: None
        )
        self.driver._looked = self.driver._refreshed = self.clock.now
        for module in (driver, following_driver):
            patch(module, "clock", self.clock)
        patch(fenced_plans, "take_snapshot", self._snapshot)
        patch(following_driver, "is_far", lambda _: False)

    def _snapshot(self, *_: object, stable: bool, concerns: Callable[[str, int], bool] = lambda *_: True, **__: object) -> Any:
        assert stable, "a run that holds the flow reads the state anew"
        if self.problem:
            raise self.problem.pop(0)
        facts = [replace(FACTS, partition=number) for number in sorted(self.partitions) if concerns("t", number)]
        return SimpleNamespace(facts=facts, claims={"A.t": "A->B"}, skipped=(), unavailable=(), denied=(), begins=False)

    def begin(self) -> list[LaneTask]:
        """The lanes of all partitions, handed out."""
        lease: Any = self.lease
        seen, plans = self.driver._plans.plan(lease, self.driver._plans.decide)
        self.driver._prepare(lease, seen, plans)
        tasks = self.driver._lane_tasks(plans, self.held)
        self.out.give(tasks)
        self.driver._assignment.used |= {task.lane for task in tasks}
        return tasks

    def end(
        self, task: LaneTask, failed: Collection[TopicPartition] = (), moved: Collection[TopicPartition] = (), *, behind: bool = False
    ) -> None:
        """The lane ends: some of its partitions failed, some were copied a bit further; or it fell `behind`."""
        gone = Failure("PartitionUnavailable", "it has no leader", passing=True)
        outcomes = [
            PartitionOutcome(*part.key, part.position + (part.key in moved), gone if part.key in failed else None)
            for part in task.partitions
        ]
        result = LaneResult(task.lane, tuple(outcomes), behind=behind)
        self.out.take(task.lane, self.driver._take_result(result, task))

    def lose(self, task: LaneTask) -> None:
        """The lane ends because of something that passes."""
        result = LaneResult(task.lane, failure=Failure("RequestLost", "connection reset", passing=True))
        self.out.take(task.lane, self.driver._take_result(result, task))

    def stop(self, task: LaneTask) -> None:
        """The lane ends because of something that does not pass."""
        result = LaneResult(task.lane, failure=Failure("NotAuthorized", "grant Write", passing=False))
        self.out.take(task.lane, self.driver._take_result(result, task))

    def look(self) -> list[LaneTask]:
        """What the driver hands out now, beside lanes at work."""
        lease: Any = self.lease
        return self.driver._taken_back(lease, self.held, self.out)

    def refresh(self) -> list[LaneTask]:
        """The same when it is time to look for new topics."""
        self.clock.now = self.driver._refreshed + REFRESH_SECONDS
        return self.look()

    @property
    def failed(self) -> set[tuple[str, int]]:
        """What the report names."""
        return set(self.driver._plans.failures)


def keys(tasks: Sequence[LaneTask]) -> set[TopicPartition]:
    return {part.key for task in tasks for part in task.partitions}
