"""A flow of three partitions and two lanes, what fills its topic, and a run that does not pause."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tools.kafka import SandboxCluster, compare_topics

from ferry.config import Flow
from ferry.copying import driver


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that is there for real brokers' restarts."""
    monkeypatch.setattr(driver, "FIRST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=3)


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}.*", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2")


@pytest.fixture
def fill(source_cluster: SandboxCluster, topic: str) -> Callable[..., None]:
    numbers = iter(range(1_000_000))

    def produce(count: int = 5_000, *, name: str = topic) -> None:
        producer = Producer({"bootstrap.servers": source_cluster.bootstrap, "linger.ms": 5, "batch.size": 100_000})
        for _ in range(count):
            number = next(numbers)
            producer.produce(name, value=f"{number} ".encode().ljust(1_000, b"x"), partition=number % 3)
            producer.poll(0)
        assert producer.flush(60) == 0

    return produce


@pytest.fixture
def equal(flow: Flow, topic: str, lab: Lab) -> Callable[[], bool]:
    remote = f"{flow.source.alias}.{topic}"
    return lambda: compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote}).equal
