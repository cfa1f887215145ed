"""Answers that are lost and requests that never leave, at every kind of request: the copy stays exact.

A request whose answer is lost was executed; one that was not sent was not. Both are made up between Ferry and a real broker, so what the
broker does with a repeated, abandoned or settled transaction is the broker's own doing.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Any

import kafka.errors as kafka_errors
import pytest
from confluent_kafka import Producer
from kafka.future import Future
from tests.conftest import Lab
from tests.log_ends import until_markers
from tests.opened import read_receipts
from tools.kafka import RecordSeen, SandboxCluster, read_all

from ferry.clusters.admin import cluster_admin as admin
from ferry.clusters.net.connections import ClusterConnection
from ferry.config import Flow
from ferry.copying import driver, lane, lane_runner
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import InlineLaneRunner, More
from ferry.copying.transaction import TransactionState
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport
from ferry.wire.ranges import end_of_range_at, union

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
KINDS = (
    "ProduceRequest",
    "EndTxnRequest",
    "TxnOffsetCommitRequest",
    "InitProducerIdRequest",
    "OffsetFetchRequest",
    "FetchRequest",
    "abort",
)


class BadNetwork:
    """Stands between a connection and its cluster; `decide(request)` gives `lost`, `not sent` or nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, decide: Callable[[Any], str | None]) -> None:
        self.struck: Counter[str] = Counter()
        self._decide = decide
        self._submit = ClusterConnection.submit
        monkeypatch.setattr(ClusterConnection, "submit", lambda *request: self.submit(*request))  # noqa: PLW0108 - a function becomes a method

    def submit(self, connection: ClusterConnection, request: Any, node: int | None = None, milliseconds: int | None = None) -> Future:
        fate = self._decide(request)
        if fate is None:
            return self._submit(connection, request, node, milliseconds)
        self.struck[f"{request.name} {fate}"] += 1
        if fate == "not sent":
            return Future().failure(kafka_errors.NodeNotReadyError("made up"))
        shown = Future()
        self._submit(connection, request, node, milliseconds).add_both(
            lambda _: shown.failure(kafka_errors.KafkaConnectionError("made up"))
        )
        return shown


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses that are there for real brokers' restarts."""
    monkeypatch.setattr(lane, "RECOVERY_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(driver, "FIRST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=3)


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2")


def fill(cluster: SandboxCluster, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, "transactional.id": f"fill-{topic}"})
    producer.init_transactions(30)
    for start in range(first, first + count, count // 4):
        producer.begin_transaction()
        for number in range(start, start + count // 4):
            producer.produce(topic, value=f"{number} ".encode().ljust(1_000, b"x"), partition=number % 3)
            producer.poll(0)
        producer.flush(30)
        if (start - first) // (count // 4) == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    until_markers(cluster, topic)


def numbers_of(records: list[RecordSeen]) -> list[int]:
    return [int((record.value or b"").split(b" ")[0]) for record in records]


def assert_exact(flow: Flow, topic: str, source: SandboxCluster, target: SandboxCluster) -> None:
    """Both sides equal, and the ledger maps every record to where an independent reader finds it."""
    upstream, downstream = read_all(source.bootstrap, topic), read_all(target.bootstrap, f"{flow.source.alias}.{topic}")
    for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True)):
        wanted, found = [numbers_of(side) for side in (records, copies)]
        assert wanted == found, f"partition {number}"
        assert [record.content for record in records] == [copy.content for copy in copies]
    mapped: Counter[tuple[int, int, int]] = Counter()
    for receipt in read_receipts(flow):
        mapped.update((receipt.partition, start + index, base + index) for start, base, count in receipt.runs for index in range(count))
    wanted: Iterator[tuple[int, int, int]] = (
        (number, record.offset, copy.offset)
        for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True))
        for record, copy in zip(records, copies, strict=True)
    )
    assert mapped == Counter(wanted)


@pytest.mark.parametrize("fate", ["lost", "not sent"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_request_of_each_kind(kind: str, fate: str, flow: Flow, topic: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lab.source, topic, 0, 6_000)
    seen: Counter[str] = Counter()

    def every_third_of_the_kind(request: Any) -> str | None:  # a lost commit is followed by one that asks for its outcome
        name = "abort" if request.name == "EndTxnRequest" and not request.committed else request.name
        seen[name] += 1
        return fate if name == kind and seen[name] % 3 == 1 and seen[name] < 20 else None

    network = BadNetwork(monkeypatch, every_third_of_the_kind)
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE, report.problems()
    assert network.struck[f"{'EndTxnRequest' if kind == 'abort' else kind} {fate}"] >= 1
    assert_exact(flow, topic, lab.source, lab.target)


def copy_over_a_bad_network(
    flow: Flow, topic: str, run_flow: RunFlow, patch: pytest.MonkeyPatch, source: SandboxCluster, seed: int
) -> None:
    """Two runs in which any request may fail at any time, and a last one in which none does."""
    chance = random.Random(seed)
    active = True

    def sometimes(_: Any) -> str | None:
        return chance.choice(["lost", "not sent"]) if active and chance.random() < 0.08 else None

    network = BadNetwork(patch, sometimes)
    for number in range(2):
        fill(source, topic, number * 8_000, 8_000)
        with contextlib.suppress(ClusterUnreachable):
            run_flow(flow)
    assert network.struck
    active = False
    assert run_flow(flow).exit_code is ExitCode.DONE


def test_what_was_fetched_ahead_of_a_commit_whose_answer_is_lost(flow: Flow, topic: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first transaction is committed, the next one's units wait in the appender that the recovery throws away."""
    fill(lab.source, topic, 0, 30_000)
    waiting: list[int] = []
    commit = lane.Lane._commit

    async def seen(self: lane.Lane) -> None:
        waiting.append(self._records.waiting_bytes)
        await commit(self)

    monkeypatch.setattr(lane.Lane, "_commit", seen)

    def lost(request: Any) -> str | None:
        if request.name != "EndTxnRequest" or not request.committed or not any(waiting[-1:]):
            return None
        waiting.append(0)  # the answer to the question after the lost one arrives
        return "lost"

    BadNetwork(monkeypatch, lost)
    monkeypatch.setattr(lane, "RECOVERIES", 1)  # every transaction meets a lost answer, none comes twice
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert sum(map(bool, waiting)) > 2
    assert_exact(flow, topic, lab.source, lab.target)


class AnswersAtTheLastMoment:
    """Keeps the answers to a lane's batches until the lane closes its transaction; then they arrive while it asks for leaders.

    Each transaction closes as soon as something is in flight. The answers of some transactions are lost.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, topic: str, lost: Collection[int]) -> None:
        self.closed = 0
        self._topic, self._lost = topic, lost
        self._kept: dict[ClusterConnection, list[tuple[Future, Future]]] = defaultdict(list)
        self._submit, self._mend = ClusterConnection.submit, lane.Lane._mend_target
        monkeypatch.setattr(lane.Lane, "_due", lambda of: bool(of._records.unanswered) or not any(map(of._records.busy, of._cursors)))
        monkeypatch.setattr(lane.Lane, "_mend_target", lambda of: self.mend(of))  # noqa: PLW0108 - a function becomes a method
        monkeypatch.setattr(ClusterConnection, "submit", lambda *request: self.submit(*request))  # noqa: PLW0108 - likewise

    def submit(self, connection: ClusterConnection, request: Any, node: int | None = None, milliseconds: int | None = None) -> Future:
        answer = self._submit(connection, request, node, milliseconds)
        if request.name != "ProduceRequest" or not request.batches[0][0].endswith(self._topic):
            return answer
        shown = Future()
        self._kept[connection].append((answer, shown))
        return shown

    async def mend(self, of: lane.Lane) -> None:
        kept = self._kept.pop(of._target, []) if of._state is TransactionState.CLOSING else []
        self.closed += bool(kept)
        for answer, shown in kept:
            while not answer.is_done:
                await of._loop.sleep(0.001)
            if self.closed in self._lost:
                shown.failure(kafka_errors.KafkaConnectionError("made up"))
            else:
                answer.add_both(lambda _, answer=answer, shown=shown: shown.success(answer.value))
        await self._mend(of)


def test_answers_that_arrive_during_another_question(flow: Flow, topic: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last answers of a transaction come while the lane asks for leaders: it must handle them before it commits."""
    fill(lab.source, topic, 0, 6_000)
    answers = AnswersAtTheLastMoment(monkeypatch, topic, lost={1, 3})
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert answers.closed > 3
    assert_exact(flow, topic, lab.source, lab.target)


class WorkersDieWithTheSource:
    """Runs no lane the first time and kills the source; it is back a while later."""

    def __init__(self, source: SandboxCluster) -> None:
        self._source = source
        self.restarting: threading.Timer | None = None

    def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], _: More = list) -> Generator[LaneResult]:
        if self.restarting is not None:
            yield from InlineLaneRunner().run(opened, job, tasks)
            return
        self._source.kill()
        self.restarting = threading.Timer(3.0, self._source.run)
        self.restarting.start()


@pytest.mark.long
def test_a_source_that_restarts_while_lost_lanes_are_planned_again(
    lab: Lab, cluster_factory: Callable[..., SandboxCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = cluster_factory()
    topic = lab.topic(source, partitions=3)
    flow = lab.flow(f"A->B.topics = {topic}", source=source)
    fill(source, topic, 0, 2_000)
    monkeypatch.setattr(admin, "FIRST_ATTEMPT_SECONDS", 1.0)
    monkeypatch.setattr(admin, "ANY_BROKER_SECONDS", 1.0)
    runner = WorkersDieWithTheSource(source)
    assert lab.run(flow, runner=runner).exit_code is ExitCode.DONE
    assert runner.restarting is not None
    runner.restarting.join()
    assert_exact(flow, topic, source, lab.target)


@pytest.mark.long
@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_any_request_at_any_time(seed: int, side_by_side: bool, flow: Flow, topic: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    if side_by_side:
        monkeypatch.setattr(lane_runner, "FAR_SECONDS", -1.0)
    copy_over_a_bad_network(flow, topic, lab.run, monkeypatch, lab.source, seed)
    assert_exact(flow, topic, lab.source, lab.target)


@pytest.mark.long
@pytest.mark.parametrize("side_by_side", [False, True])
def test_any_request_at_any_time_by_the_older_transaction_protocol(
    side_by_side: bool, topic: str, lab: Lab, cluster_factory: Callable[..., SandboxCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = cluster_factory(features=("transaction.version=1",))
    if side_by_side:
        monkeypatch.setattr(lane_runner, "FAR_SECONDS", -1.0)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2", target=target)
    copy_over_a_bad_network(flow, topic, lab.run, monkeypatch, lab.source, 1)
    assert_exact(flow, topic, lab.source, target)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_at_least_once_loses_nothing_and_what_comes_twice_comes_in_order(
    seed: int, topic: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", "A->B.transaction.producer = false")
    copy_over_a_bad_network(flow, topic, lab.run, monkeypatch, lab.source, seed)
    upstream, downstream = read_all(lab.source.bootstrap, topic), read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    receipts = read_receipts(flow)
    for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True)):
        wanted, found = numbers_of(records), numbers_of(copies)
        assert sorted(set(found)) == wanted
        # A repetition goes back to an earlier record and from there on in order again, without a gap.
        following = dict(itertools.pairwise(wanted))
        assert all(after == following.get(before) or after <= before for before, after in itertools.pairwise(found))
        # And the ledger names it.
        told = union(span for receipt in receipts if receipt.partition == number for span in receipt.repeated)
        assert numbers_of([copy for copy in copies if end_of_range_at(told, copy.offset) == copy.offset]) == wanted
