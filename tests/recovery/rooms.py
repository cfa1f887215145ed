"""A topic on both sides, and what moves between them, seen by librdkafka's clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.log_ends import log_ends
from tools.kafka import SandboxCluster, read_all
from tools.kafka.groups import commit_offsets
from typer.testing import CliRunner, Result

from ferry.cli.main import app
from ferry.config import load_config

POLICIES = {"default": (), "identity": ("replication.policy.class = IdentityReplicationPolicy",)}


class Room:
    """A topic with two partitions on the source, and its flow in both directions."""

    def __init__(self, source: SandboxCluster, target: SandboxCluster, config: Path, topic: str, policy: str) -> None:
        self.source, self.target, self.config, self.topic = source, target, config, topic
        self.there, self.back = load_config(config).flows
        self.remote = topic if policy == "identity" else f"{self.there.source.alias}.{topic}"
        self.produced = 0

    def produce(self, cluster: SandboxCluster, topic: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 2, "batch.num.messages": 7, "enable.idempotence": True})
        for number in range(self.produced, self.produced + count):
            producer.produce(topic, value=b"%d" % number, partition=number % 2)
        assert producer.flush(30) == 0
        self.produced += count

    def command(self, *arguments: str, config: Path | None = None) -> tuple[Result, dict[str, Any]]:
        name, *options = arguments
        ended = CliRunner().invoke(app, [name, str(config or self.config), "--flow", self.there.name, "--json", *options])
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return ended, json.loads(ended.stdout) if ended.stdout else {}

    def away(self) -> Path:
        """The config, with a source that nobody listens for."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = self.config.with_name("away.properties")
        path.write_text(self.config.read_text().replace(self.source.bootstrap, f"127.0.0.1:{port}"))
        return path


def commit(cluster: SandboxCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    commit_offsets(cluster.client_settings(), group, {(topic, partition): offset for partition, offset in offsets.items()})


def read_on(cluster: SandboxCluster, group: str, topic: str) -> dict[int, list[int]]:
    """What a group reads that goes on there, by partition; it commits nothing."""
    consumer = Consumer(
        {
            **cluster.client_settings(),
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    places = consumer.committed([TopicPartition(topic, number) for number in range(2)], timeout=10)
    consumer.assign(places)
    found: dict[int, list[int]] = {0: [], 1: []}
    ended: set[int] = set()
    while len(ended) < 2:
        record = consumer.poll(10)
        assert record is not None
        if record.error() is None:
            found[record.partition()].append(int(record.value()))
        else:
            assert record.error().code() == KafkaError._PARTITION_EOF, record.error()
            ended.add(record.partition())
    consumer.close()
    return found


def from_record(first: Mapping[int, int], end: int) -> dict[int, list[int]]:
    """Records of each partition from the n-th one on."""
    return {number: list(range(number + 2 * first[number], end, 2)) for number in range(2)}


def everything(cluster: SandboxCluster) -> dict[str, Any]:
    """Ends of every partition and offsets of every group: what a look must leave as it was."""
    client = AdminClient(cluster.client_settings())
    groups = sorted(entry.group_id for entry in client.list_consumer_groups().result().valid)
    return {"topics": log_ends(cluster), "groups": groups}


def numbers(cluster: SandboxCluster, topic: str) -> list[list[int]]:
    """The records of a topic, by partition."""
    return [[int(record.value or b"-1") for record in found] for found in read_all(cluster.bootstrap, topic)]
