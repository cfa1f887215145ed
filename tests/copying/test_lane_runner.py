"""How many lanes run side by side, and what becomes of the others when one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.feed_bench import task
from tests.waiting import NEVER_SECONDS

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.net.event_loop import EventLoop, ended
from ferry.copying import lane_runner
from ferry.copying.lane_messages import Failure, LaneResult, LaneTask, PartitionOutcome
from ferry.copying.lane_runner import FAR_SECONDS, LANES_BESIDE, called_aside, lanes_beside, listened, run_lanes
from ferry.copying.signals import StopSignals
from ferry.errors import AuthenticationFailed, ClusterUnreachable, FerryError, Superseded
from ferry.handling.interface import Assignment

pytestmark = pytest.mark.unit

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("round_trip", "lanes", "memory", "batch_limit", "beside"),
    [
        (0.0, 8, 512, 1, 1),  # not known
        (FAR_SECONDS * 0.99, 8, 512, 1, 1),
        (FAR_SECONDS, 20, 512, 1, LANES_BESIDE),
        (0.1, 3, 512, 1, 3),
        (0.1, 8, 128, 4, 2),  # large batches
        (0.1, 8, 128, 100, 1),
        (0.1, 1, 128, 1, 1),
    ],
)
def test_lanes_run_side_by_side_only_over_a_distance(round_trip: float, lanes: int, memory: int, batch_limit: int, beside: int) -> None:
    partition = replace(task(), batch_limit=batch_limit * MEBIBYTE)
    tasks = [LaneTask(number, f"lane-{number}", ProducerIdentity(1, 0), (partition,)) for number in range(lanes)]
    assert lanes_beside(memory * MEBIBYTE, tasks, round_trip) == beside


class Connection:
    """A connection of one lane to a cluster that is as `cluster` says."""

    def __init__(self, loop: EventLoop, cluster: Any, *_: object) -> None:
        self.loop, self.opening = loop, cluster.opening
        self.unreachable, self.without_coordinators, self.problem = cluster.unreachable, cluster.without_coordinators, cluster.problem
        self.opened = cluster.opened

    async def open(self) -> None:
        self.opened.append(self)
        self.opening.append("begins")
        await self.loop.sleep(0.001)
        self.opening.append("ends")
        if self.problem is not None:
            raise self.problem

    def disconnect(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        if self in self.opened:
            self.opened.remove(self)


Work = Callable[[LaneTask], Coroutine[Any, Any, LaneResult]]


class Lanes:
    """Three lanes, two of them side by side, on clusters that are far away; `work` is what each does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, loop: EventLoop, work: Work, **state: Any) -> None:
        self.cluster = SimpleNamespace(
            **{"unreachable": False, "without_coordinators": False, "problem": None, **state}, opened=[], opening=[]
        )
        shared = SimpleNamespace(loop=loop, round_trip=lambda: 0.1)
        handling = SimpleNamespace(message_handler="", assignment_listener="")
        flow: Any = SimpleNamespace(handling=handling, source=self.cluster, target=self.cluster, memory_bytes=512 * MEBIBYTE)
        self.job: Any = SimpleNamespace(flow=flow, bytes_per_second=None, follow_until=None)

        class Connected:
            def __enter__(self) -> Any:
                return shared

            def __exit__(self, *_: object) -> None:
                """It stays open."""

        async def run(_: object, lane: LaneTask, *__: object) -> LaneResult:
            return await work(lane)

        side = SimpleNamespace(connected=lambda _: Connected())
        self.opened: Any = SimpleNamespace(source=side, target=side)
        monkeypatch.setattr(lane_runner, "ClusterConnection", Connection)
        monkeypatch.setattr(lane_runner, "LANES_BESIDE", 2)
        monkeypatch.setattr(lane_runner._Lanes, "_run", run)
        self.tasks = [LaneTask(number, f"lane-{number}", ProducerIdentity(1, 0), (task(),)) for number in range(3)]

    def results(self) -> list[LaneResult]:
        return list(run_lanes(self.opened, self.job, self.tasks))

    def follow(self) -> None:
        """From now on."""
        self.job.follow_until = 1.0


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


FAILED = Failure("ClusterUnreachable", "gave up", passing=True, unreachable=True)


async def failing(lane: LaneTask) -> LaneResult:
    return LaneResult(lane.lane, failure=FAILED if lane.lane == 0 else None)


def test_a_lane_that_fails_alone_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    lanes = Lanes(monkeypatch, loop, failing)
    assert [result.failure for result in lanes.results()] == [FAILED, None, None]


@pytest.mark.parametrize("state", ["unreachable", "without_coordinators"])
def test_lanes_do_not_wait_a_second_time_for_a_cluster_that_is_down(state: str, monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    lanes = Lanes(monkeypatch, loop, failing, **{state: True})
    assert [result.failure for result in lanes.results()] == [FAILED, None, FAILED]


@pytest.mark.parametrize("problem", [ClusterUnreachable("does not answer"), AuthenticationFailed("no login")])
def test_connections_that_do_not_open(problem: FerryError, monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    lanes = Lanes(monkeypatch, loop, failing, problem=problem)
    down = isinstance(problem, AuthenticationFailed) is False
    assert {result.failure for result in lanes.results()} == {Failure(type(problem).__name__, str(problem), passing=down, unreachable=down)}
    assert lanes.cluster.opened == []


def test_the_connections_of_a_lane_open_side_by_side(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    """Over a distance each takes round trips."""
    lanes = Lanes(monkeypatch, loop, failing)
    del lanes.tasks[2:]
    lanes.results()
    assert lanes.cluster.opening == ["begins"] * 4 + ["ends"] * 4


def test_an_error_of_one_lane_lets_the_others_end_first(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    signals: list[Any] = []
    monkeypatch.setattr(lane_runner, "StopSignals", lambda: signals.append(StopSignals()) or signals[0])
    ended = []

    async def work(lane: LaneTask) -> LaneResult:
        if lane.lane == 0:
            raise ZeroDivisionError
        while not signals[0].received:
            await loop.sleep(0.001)
        ended.append(lane.lane)
        return LaneResult(lane.lane)

    lanes = Lanes(monkeypatch, loop, work)
    with pytest.raises(ZeroDivisionError):
        lanes.results()
    assert (ended, lanes.cluster.opened) == ([1], [])


def test_lanes_side_by_side_end_when_nobody_wants_their_results(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    async def work(lane: LaneTask) -> LaneResult:
        await loop.sleep(0.001 * lane.lane)
        return LaneResult(lane.lane)

    lanes = Lanes(monkeypatch, loop, work)
    results = run_lanes(lanes.opened, lanes.job, lanes.tasks)
    assert next(results).lane == 0
    results.close()
    assert lanes.cluster.opened == []


def test_lanes_that_follow_run_all_at_the_same_time_and_new_ones_join_them(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    monkeypatch.setattr(lane_runner, "LOOK_SECONDS", 0.01)
    running: set[int] = set()

    async def work(lane: LaneTask) -> LaneResult:
        running.add(lane.lane)
        while len(running) < 5:  # none ends before the last has begun
            await loop.sleep(0.001)
        return LaneResult(lane.lane)

    lanes = Lanes(monkeypatch, loop, work)
    lanes.follow()
    later = [[], [replace(lanes.tasks[0], lane=3)], [replace(lanes.tasks[0], lane=4)]]
    results = run_lanes(lanes.opened, lanes.job, lanes.tasks, lambda: later.pop(0) if later else [])
    assert sorted(result.lane for result in results) == [0, 1, 2, 3, 4]
    assert lanes.cluster.opened == []


def test_the_processor_time_of_a_lane_that_follows_is_all_told(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    monkeypatch.setattr(lane_runner, "LOOK_SECONDS", 0.01)
    spent = 0.0
    monkeypatch.setattr(lane_runner.clock, "process_time", lambda: spent)

    async def work(lane: LaneTask) -> LaneResult:
        nonlocal spent
        for _ in range(10):
            spent += 1.0
            await loop.sleep(0.02)
        return LaneResult(lane.lane)

    lanes = Lanes(monkeypatch, loop, work)
    lanes.follow()
    assert sum(result.cpu_seconds for result in run_lanes(lanes.opened, lanes.job, lanes.tasks[:1])) == 10.0


def test_lanes_that_follow_end_when_the_driver_raises(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> None:
    signals: list[Any] = []
    monkeypatch.setattr(lane_runner, "StopSignals", lambda: signals.append(StopSignals()) or signals[0])
    monkeypatch.setattr(lane_runner, "LOOK_SECONDS", 0.01)

    async def work(lane: LaneTask) -> LaneResult:
        while not signals[0].received:
            await loop.sleep(0.001)
        return LaneResult(lane.lane)

    def taken_over() -> list[LaneTask]:
        raise Superseded("another run holds the flow")

    lanes = Lanes(monkeypatch, loop, work)
    lanes.follow()
    with pytest.raises(Superseded):
        list(run_lanes(lanes.opened, lanes.job, lanes.tasks, taken_over))
    assert lanes.cluster.opened == []


class Listener:
    """Its first call takes until `go_on`."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.began, self.go_on, self.problem = threading.Event(), threading.Event(), problem
        self.released: list[Assignment] = []

    def before_starting(self, _: Sequence[Assignment]) -> None:
        self.began.set()
        assert self.go_on.wait(NEVER_SECONDS), "the other lane does not go on meanwhile"
        if self.problem is not None:
            raise self.problem

    def before_releasing(self, assignments: Sequence[Assignment]) -> None:
        self.released.extend(assignments)


@pytest.mark.parametrize("problem", [None, ValueError("no")])
def test_calls_of_a_listener_do_not_hold_up_other_lanes(loop: EventLoop, problem: Exception | None) -> None:
    listener, part = Listener(problem), task()
    copied = LaneResult(0, (PartitionOutcome(*part.key, 7),))

    async def work() -> LaneResult:
        return copied

    async def other_lane() -> None:
        while not listener.began.is_set():
            await loop.sleep(0.001)
        listener.go_on.set()

    with ThreadPoolExecutor(1) as pool:
        mine = LaneTask(0, "lane-0", ProducerIdentity(1, 0), (part,))
        started = [loop.start(listened, listener, mine, work, partial(called_aside, loop, pool)), loop.start(other_lane)]
        loop.run(ended, started)
    result = started[0].value
    if problem is None:
        assert (result, listener.released) == (copied, [Assignment(part.topic, part.partition, part.remote_topic, 7)])
    else:
        assert (result.failure.error, listener.released) == ("ListenerFailed", [])
