"""Answers that are lost and requests that never leave, at every kind of request: the copy stays exact.

A request whose answer is lost was executed; one that was not sent was not. Both are made up between Ferry and a real broker, so what the
broker does with a repeated, abandoned or settled transaction is the broker's own doing.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import kafka.errors as kafka_errors
import pytest
from confluent_kafka import Producer
from kafka.future import Future

from ferry.clusters.connections import ClusterConnection
from ferry.config import Flow
from ferry.copying import driver, lane
from ferry.copying.survey import read_receipts
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.reporting.run_report import RunReport
from ferry.sandbox import SandboxCluster, read_all
from ferry.sandbox.comparison import RecordSeen

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
KINDS = ("ProduceRequest", "EndTxnRequest", "TxnOffsetCommitRequest", "InitProducerIdRequest", "OffsetFetchRequest", "FetchRequest")


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
        self.struck[f"{type(request).__name__} {fate}"] += 1
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
def topic(source_cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source_cluster, partitions=3)


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
def test_one_request_of_each_kind(
    kind: str,
    fate: str,
    flow: Flow,
    topic: str,
    run_flow: RunFlow,
    monkeypatch: pytest.MonkeyPatch,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> None:
    fill(source_cluster, topic, 0, 6_000)
    seen: Counter[str] = Counter()

    def every_second_of_the_kind(request: Any) -> str | None:
        name = type(request).__name__
        seen[name] += 1
        return fate if name == kind and seen[name] % 2 and seen[name] < 20 else None

    network = BadNetwork(monkeypatch, every_second_of_the_kind)
    report = run_flow(flow)
    assert report.exit_code is ExitCode.DONE, report.problems()
    assert network.struck[f"{kind} {fate}"] >= 1
    assert_exact(flow, topic, source_cluster, target_cluster)


@pytest.mark.parametrize("seed", range(3))
def test_any_request_at_any_time(
    seed: int,
    flow: Flow,
    topic: str,
    run_flow: RunFlow,
    monkeypatch: pytest.MonkeyPatch,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> None:
    chance = random.Random(seed)
    active = True

    def sometimes(_: Any) -> str | None:
        return chance.choice(["lost", "not sent"]) if active and chance.random() < 0.08 else None

    network = BadNetwork(monkeypatch, sometimes)
    for number in range(2):
        fill(source_cluster, topic, number * 8_000, 8_000)
        with contextlib.suppress(ClusterUnreachable):
            run_flow(flow)
    assert sum(network.struck.values()) > 5
    active = False
    assert run_flow(flow).exit_code is ExitCode.DONE
    assert_exact(flow, topic, source_cluster, target_cluster)
