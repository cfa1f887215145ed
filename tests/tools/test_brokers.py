"""A cluster of three survives the loss of a broker, and takes a fourth."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.waiting import until
from tools.kafka import SandboxBrokers, read_all

pytestmark = pytest.mark.brokers


@pytest.mark.long
def test_brokers_come_and_go(tmp_path: Path) -> None:
    with SandboxBrokers.start(tmp_path, "R") as cluster:
        admin = AdminClient(cluster.client_settings())
        topic = f"t-{secrets.token_hex(3)}"
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
        producer = Producer({**cluster.client_settings(), "transactional.id": topic, "log_level": 0})
        producer.init_transactions(60)
        commit(producer, topic, b"whole")
        cluster.wait_until_in_sync()
        leader = cluster.leaders(topic)[0]
        cluster.nodes[leader].kill()
        commit(producer, topic, b"without one")
        assert cluster.leaders(topic)[0] not in {leader, -1}
        cluster.nodes[leader].run()
        cluster.wait_until_in_sync()
        added = cluster.add()
        assert added.node == 4
        until(lambda: len(admin.list_topics(timeout=10).brokers) == 4)
        assert [[record.value for record in partition] for partition in read_all(cluster.bootstrap, topic)] == [
            [b"whole", b"without one"],
            [b"whole", b"without one"],
            [b"whole", b"without one"],
        ]
    assert not any(node.running for node in cluster.nodes.values())


def commit(producer: Producer, topic: str, value: bytes) -> None:
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(topic, value, partition=partition)
    producer.commit_transaction(60)
