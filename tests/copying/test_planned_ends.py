"""A source whose ListOffsets names an end before the last records: the run says so and copies nothing that hides it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.behind_a_proxy import behind_a_proxy, playing
from tests.conftest import Lab
from tests.copying.feed_bench import Bench, batch, task
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import LIST_OFFSETS

from ferry.clusters.net.connections import RequestLost
from ferry.clusters.net.leaders import Leader
from ferry.copying import planned_ends
from ferry.copying.lane_messages import Failure
from ferry.errors import ExitCode

LIE = "cluster A contradicts itself: its ListOffsets ends at offset 1, its Fetch at offset 3: nobody can tell what is left to copy"


class Asked:
    """A bench whose ListOffsets answers from a script; an exception is raised, and the last answer stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends: list[dict[int, int] | Exception], *numbers: int) -> None:
        self.bench = Bench(*(task(number, end=1) for number in numbers))
        self.ends, self.epochs, self.started = ends, [], list[Any]()
        monkeypatch.setattr(planned_ends, "clock", self.bench.source)
        monkeypatch.setattr(planned_ends, "stable_ends", self.stable_ends)
        monkeypatch.setattr(self.bench.source, "start", lambda made, *more: self.started.append(made(*more)), raising=False)
        monkeypatch.setattr(self.bench.source, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.bench.source.now += seconds

    async def stable_ends(self, _: Any, node: int, epochs: Mapping[Any, int]) -> dict[Any, int]:
        self.epochs.append((node, dict(epochs)))
        answer = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(answer, Exception):
            raise answer
        return {("t", number): end for number, end in answer.items()}

    def answered(self, records: dict[int, bytes], lso: int = 100) -> Any:
        """What arrives once ListOffsets has answered."""
        assert self.bench.answer_all(records, lso=lso) == []
        for coroutine in self.started:
            asyncio.run(coroutine)
        self.started.clear()
        return self.bench.feed.arrivals()


@pytest.mark.unit
def test_records_that_came_since_the_plan_are_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Asked(monkeypatch, [{0: 100, 1: 100}], 0, 1)
    made.bench.feed.pump(0)
    found = made.answered({0: batch(0) + batch(1, 2), 1: batch(0, 1)})
    assert [(cursor.fetched, len(units)) for cursor, units in found] == [(1, 1), (1, 1)]
    assert made.epochs == [(1, {("t", 0): 7, ("t", 1): 7})]


@pytest.mark.unit
def test_a_partition_whose_end_stays_before_its_records_is_stopped_before_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Asked(monkeypatch, [{0: 1, 1: 2}, {0: 1, 1: 3}, {0: 1}], 0, 1)
    made.bench.feed.pump(0)
    found = made.answered({0: batch(0, 1, 2), 1: batch(0) + batch(1, 2)}, lso=3)
    lying, right = made.bench.cursors
    assert [cursor for cursor, _ in found] == [right]
    assert (lying.failure, lying.fetched) == (Failure("PartitionUnavailable", LIE, passing=True), 0)
    assert (right.failure, right.fetched) == (None, 1)
    assert made.bench.source.now - 1_000 == pytest.approx(planned_ends.LAG_SECONDS, abs=planned_ends.PAUSE_SECONDS * 1.01)


@pytest.mark.unit
@pytest.mark.parametrize("ends", [[RequestLost("gone")], [{}]])
def test_where_nobody_answers_nothing_is_contradicted(monkeypatch: pytest.MonkeyPatch, ends: list[Any]) -> None:
    made = Asked(monkeypatch, ends, 0)
    made.bench.feed.pump(0)
    ((cursor, _),) = made.answered({0: batch(0, 1)})
    assert (cursor.failure, cursor.fetched) == (None, 1)


@pytest.mark.unit
def test_the_new_leader_of_a_partition_is_not_judged_by_what_the_old_one_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Asked(monkeypatch, [{}], 0)
    made.bench.feed.pump(0)
    made.bench.source.leaders[0] = Leader(2, 8)
    assert made.answered({0: batch(0, 1)}) != []
    assert made.epochs == [(1, {})]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    with behind_a_proxy(tmp_path_factory.mktemp("ends")) as both:
        yield both


def names_the_last_batch(last: dict[str, int]) -> Callable[[Any], None]:
    """ListOffsets answers one behind the last batch's base offset, and never more."""

    def change(answer: Any) -> None:
        for topic in answer.topics:
            for part in topic.partitions:
                part.offset = min(part.offset, last.get(topic.name, part.offset))

    return change


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize("end", [1, 150])
def test_a_run_says_that_the_source_contradicts_itself(end: int, source: tuple[SandboxCluster, BrokerProxy], lab: Lab) -> None:
    """Inside a batch, and between two; every run says it. Then the answer is right, and everything is copied once."""
    cluster, proxy = source
    topic = lab.topic(cluster)
    for part in (range(150), range(150, 200)):
        lab.produce(cluster, topic, [(0, b"k", b"%d" % number) for number in part], **{"linger.ms": 500})
    flow = lab.flow(f"A->B.topics = {topic}", *lab.copy_only, source=proxy)
    with playing(proxy, answered={LIST_OFFSETS: names_the_last_batch({topic: end})}):
        for _ in range(2):
            report = lab.run(flow)
            assert report.exit_code is ExitCode.PARTLY_FAILED
            (failure,) = report.failed
            assert (failure.topic, failure.partition, failure.error) == (topic, 0, "PartitionUnavailable")
            assert f"its ListOffsets ends at offset {end}, its Fetch at offset 200" in failure.problem
    assert lab.run(flow).exit_code is ExitCode.DONE
    (copies,) = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [int(copy.content[1]) for copy in copies] == list(range(200))
