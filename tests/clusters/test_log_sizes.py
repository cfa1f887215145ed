"""How large logs are, as brokers tell it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tools.kafka import SandboxCluster

from ferry.clusters.log_sizes import log_sizes
from ferry.clusters.partitions import TopicPartition
from ferry.clusters.shared_connection import ask_cluster
from ferry.config import Flow

pytestmark = pytest.mark.brokers


def test_the_size_of_each_log(flow_factory: Callable[..., Flow], topic_factory: Callable[..., str], source_cluster: SandboxCluster) -> None:
    topic = topic_factory(source_cluster, partitions=3)
    producer = Producer(source_cluster.client_settings())
    for _ in range(100):
        producer.produce(topic, b"v" * 1_000, partition=1)
    assert producer.flush(30) == 0
    asked = [TopicPartition(topic, number) for number in range(2)]
    found = ask_cluster(flow_factory().source, log_sizes, [*asked, TopicPartition("missing", 0)])
    assert found.keys() == set(asked)
    assert found[asked[0]] == 0
    assert 100_000 < found[asked[1]] < 120_000
