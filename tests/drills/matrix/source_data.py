"""What a source of the matrix holds: every codec, headers, tombstones, old timestamps, aborted transactions, configs, ACLs."""

from __future__ import annotations

import random
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster
from tools.kafka.topics import delete_topics

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# The retention is longer than the records are old: on a busy machine a broker would come to delete them.
CONFIGS = {"retention.ms": "864000000000", "segment.bytes": "67108864", "max.message.bytes": "2000000"}
TRANSACTIONAL, COMPACTED, HISTORY, AGAIN = "moves", "table", "history", "again"
TOPICS = (*CODECS, TRANSACTIONAL, COMPACTED)
PARTITIONS = 2
SECONDS = 30.0
OLD_MILLISECONDS = 1_577_836_800_000  # 2020-01-01
RECORDS = 400
# Slow enough for a kill in the middle at one megabyte a second.
LARGE, LARGE_RECORDS = 4_000, 250
ROUNDS = 10


def create(cluster: SandboxCluster, prefix: str) -> None:
    """All topics, and one ACL."""
    admin = AdminClient(cluster.client_settings())
    wanted = [NewTopic(f"{prefix}.{name}", PARTITIONS, 1, config=CONFIGS) for name in (*CODECS, TRANSACTIONAL)]
    wanted.append(NewTopic(f"{prefix}.{COMPACTED}", PARTITIONS, 1, config={"cleanup.policy": "compact"}))
    wanted += [NewTopic(f"{prefix}-{name}", 1, 1) for name in (HISTORY, AGAIN)]
    for future in admin.create_topics(wanted).values():
        future.result(SECONDS)
    for future in admin.create_acls([binding(f"{prefix}.{CODECS[0]}")]).values():
        future.result(SECONDS)


def binding(topic: str) -> AclBinding:
    """Read on a topic for a user of some name."""
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, topic, pattern, "User:reader", "*", AclOperation.READ, allow)


def fill(cluster: SandboxCluster, prefix: str, *, large: bool = False) -> None:
    """Some of everything into every topic."""
    for codec in CODECS:
        producer = _producer(cluster, codec)
        _write(producer, f"{prefix}.{codec}", large=large)
        assert producer.flush(SECONDS) == 0
    _transactions(cluster, f"{prefix}.{TRANSACTIONAL}")
    producer = _producer(cluster, "zstd")
    _write(producer, f"{prefix}.{COMPACTED}")
    assert producer.flush(SECONDS) == 0


def fill_alone(cluster: SandboxCluster, topic: str, count: int) -> None:
    """Plain records of a topic with one partition."""
    producer = _producer(cluster, "lz4")
    for number in range(count):
        producer.produce(topic, f"{number}".encode(), timestamp=OLD_MILLISECONDS + number)
    assert producer.flush(SECONDS) == 0


def recreate(cluster: SandboxCluster, topic: str) -> None:
    """Delete a topic of one partition and create it again; with ZooKeeper its name is taken for a while."""
    delete_topics(cluster.client_settings(), topic)
    admin = AdminClient(cluster.client_settings())
    deadline = time.monotonic() + NEVER_SECONDS
    while True:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SECONDS)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _producer(cluster: SandboxCluster, codec: str, **settings: object) -> Producer:
    return Producer({**cluster.client_settings(), "compression.type": codec, "linger.ms": 20, "acks": "all", "log_level": 2, **settings})


def _write(producer: Producer, topic: str, *, large: bool = False, count: int = RECORDS) -> None:
    source = random.Random(topic)
    for number in range(LARGE_RECORDS if large else count):
        value = None if number % 7 == 3 else source.randbytes(LARGE if large else source.randrange(120))
        headers = [("h", b"1"), ("h", None), ("e", b"")] if number % 5 == 0 else None
        moment = {"timestamp": OLD_MILLISECONDS + number} if number % 3 else {}
        producer.produce(topic, value, key=f"k{number}", partition=number % PARTITIONS, headers=headers, **moment)
        producer.poll(0)


def _transactions(cluster: SandboxCluster, topic: str) -> None:
    producer = _producer(cluster, "lz4", **{"transactional.id": topic})
    producer.init_transactions(SECONDS)
    for number in range(ROUNDS):
        producer.begin_transaction()
        _write(producer, topic, count=40)
        assert producer.flush(SECONDS) == 0
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(SECONDS)
