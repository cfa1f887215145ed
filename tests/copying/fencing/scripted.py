"""What happens to the lanes of a run instead of, or before, their work; and a topic that is replaced meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.opened import run_lanes
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.topics import delete_topics

from ferry.copying.lane import Lane
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import More
from ferry.ledger.open_flow import OpenFlow

Between = Callable[[], object]


class Scripted:
    """A runner that does something before, or instead of, running the lanes of each call."""

    def __init__(self, *steps: Callable[[CopyJob, Sequence[LaneTask]], Iterator[LaneResult]]) -> None:
        self._steps = list(steps)
        self.calls: list[tuple[CopyJob, list[LaneTask]]] = []

    def run(self, _: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], __: More = list) -> Generator[LaneResult]:
        self.calls.append((job, list(tasks)))
        step = self._steps.pop(0) if self._steps else run_lanes
        yield from step(job, tasks)


def after(act: Between) -> Callable[[CopyJob, Sequence[LaneTask]], Iterator[LaneResult]]:
    def step(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        act()
        return run_lanes(job, tasks)

    return step


def without_results(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
    """The lanes did their work, but the worker died before it could say so."""
    list(run_lanes(job, tasks))
    return iter(())


def never_ran(_: CopyJob, __: Sequence[LaneTask]) -> Iterator[LaneResult]:
    return iter(())


def at_commit(monkeypatch: pytest.MonkeyPatch, number: int, act: Between) -> None:
    """`act` once, when the `number`th commit of any lane begins: records are appended, the transaction is open."""
    commit, count = Lane._commit, iter(range(1, 1_000_000))

    async def interrupted(lane: Lane) -> None:
        if next(count) == number:
            act()
        await commit(lane)

    monkeypatch.setattr(Lane, "_commit", interrupted)


def replace_topic(cluster: SandboxCluster, topic: str, *, again: bool = True) -> None:
    delete_topics(cluster.client_settings(), topic)
    if again:
        client = AdminClient(cluster.client_settings())
        client.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
        # The controller answers before the broker knows: a commit that names the topic in between is refused, and nothing is copied yet.
        until(lambda: topic in client.list_topics(timeout=10).topics)
