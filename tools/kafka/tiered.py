"""Tiered storage (KIP-405) with Kafka's own LocalTieredStorage, from the test jar of `kafka-storage`: "remote" is another directory.

`remote_share` tells how much of a topic only the remote storage still holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from tools.kafka.artifacts import retrieve

from ferry.cache import cache_directory
from ferry.sandbox.broker_process import SandboxFailed
from ferry.sandbox.jars import KAFKA_VERSION, locked
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.structs import TopicPartition

JAR = f"kafka-storage-{KAFKA_VERSION}-test.jar"
# Segments of a topic, and how much of it stays on the brokers' disks.
TOPIC = {"remote.storage.enable": "true", "segment.bytes": str(1 << 20), "local.retention.bytes": "1", "file.delete.delay.ms": "100"}
# A loaded machine moves a segment in a fraction of a second.
MOVE_SECONDS, LOOK_SECONDS = 300.0, 0.5


def broker_properties(remote: Path) -> dict[str, str]:
    """What a broker needs on top, with `remote` as its remote storage."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": f"{_jar().parent}/*",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rsm.config.dir": str(remote),
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "100",
    }


def await_remote(bootstrap: str, topic: str, partitions: int, share: float) -> float:
    """Return when the remote storage alone holds at least `share` of the offsets of every partition; the least share. SandboxFailed."""
    deadline = time.monotonic() + MOVE_SECONDS
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    keys = [TopicPartition(topic, number) for number in range(partitions)]
    try:
        while (least := min(remote_shares(client, keys).values())) < share:
            if time.monotonic() > deadline:
                raise SandboxFailed(f"only {least:.0%} of {topic} is remote after {MOVE_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)
    finally:
        client.close()
    return least


def remote_shares(client: KafkaAdminClient, keys: Collection[TopicPartition]) -> Mapping[TopicPartition, float]:
    """By partition, the share of offsets that no broker's disk holds any more."""
    local = client.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST_LOCAL))
    ends = client.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.LATEST))
    return {key: local[key].offset / ends[key].offset for key in keys}


def _jar() -> Path:
    directory = cache_directory() / f"tiered-{KAFKA_VERSION}"
    with locked(cache_directory() / "resolve.lock", os.O_WRONLY | os.O_CREAT):
        if not (directory / JAR).is_file():
            retrieve(("org.apache.kafka", "kafka-storage", KAFKA_VERSION), "test", "jar", directory)
    return directory / JAR
