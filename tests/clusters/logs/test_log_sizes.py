"""How large logs are, as brokers tell it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.future import Future
from tools.kafka import SandboxCluster

from ferry.clusters.logs import log_sizes as module
from ferry.clusters.logs.log_sizes import log_sizes
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import ask_cluster
from ferry.config import Flow

pytestmark = pytest.mark.brokers


def test_the_size_of_each_log(
    flow_factory: Callable[..., Flow],
    topic_factory: Callable[..., str],
    source_cluster: SandboxCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 60.0)  # on a busy machine a broker may need longer than a run waits
    topic = topic_factory(source_cluster, partitions=3)
    producer = Producer(source_cluster.client_settings())
    for _ in range(100):
        producer.produce(topic, b"v" * 1_000, partition=1)
    assert producer.flush(30) == 0
    asked = [TopicPartition(topic, number) for number in range(2)]
    found = ask_cluster(flow_factory().source, log_sizes, [*asked, TopicPartition("missing", 0)])
    if not is_mounted(source_cluster.directory):
        assert found == {}
        return
    assert found.keys() == set(asked)
    assert found[asked[0]] == 0
    assert 100_000 < found[asked[1]] < 120_000


def is_mounted(directory: Path) -> bool:
    """Whether a mount point is on the way to the directory. In a chroot there may be none: then the broker's Java finds no file store, and
    a broker since 3.3 answers DescribeLogDirs with an error, as often as one asks.
    """
    points = {Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()}
    return not points.isdisjoint((directory, *directory.parents))


@pytest.mark.unit
def test_a_broker_that_hangs_holds_up_nobody_and_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python closes the connection of a request whose own time is over, with all that others have asked over it."""
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    asked: list[tuple[Any, ...]] = []

    async def known(_: object) -> None:
        """It knows them."""

    def submit(*how: Any) -> Future:
        asked.append(how)
        return Future()

    loop = EventLoop()
    leaders = SimpleNamespace(known=known, by_node=lambda keys: {1: keys})
    connection: Any = SimpleNamespace(loop=loop, leaders=leaders, submit=submit)
    assert loop.run(log_sizes, connection, [TopicPartition("t", 0)]) == {}
    loop.close()
    [(_, *how)] = asked
    assert how == [1], "no time of its own"
