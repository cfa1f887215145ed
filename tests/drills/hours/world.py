"""Two clusters whose data stays between the pieces of an endurance run, what writes to the source, and the flow between them."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.steps import disk_bytes
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets
from tools.kafka.properties_file import write_properties
from tools.kafka.reading import partition_bounds

from ferry.config import Flow, load_config

FLOW = "A->B"
TOPIC, WIDTH = "hours", 4
GROUPS = tuple(f"hours-group-{number}" for number in range(5))
# The source keeps some 20 minutes of what is written; a run comes every few seconds.
TOPIC_CONFIG = {"retention.bytes": str(16 << 20), "retention.ms": "-1", "segment.bytes": str(1 << 20)}
BROKER = {
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.backoff.ms": "5000",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "10000",
    "offsets.topic.segment.bytes": "4194304",
}
# What Ferry's own topics do within hours, they do here within minutes. Brokers keep commit markers and tombstones of a compacted topic for
# a day by default.
YOUNG = {"segment.ms": "120000", "delete.retention.ms": "120000"}
YOUNG_RUNS = {**YOUNG, "retention.ms": "600000"}
RECORDS_A_SECOND, RECORD_BYTES = 100, 500
ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class World:
    """Both clusters, running, and the config file of the flow."""

    source: SandboxCluster
    target: SandboxCluster
    config: Path

    @property
    def flow(self) -> Flow:
        """As the file has it."""
        return load_config(self.config).flows[0]

    def age(self) -> None:
        """Let Ferry's own topics, which the first run made, be compacted and expire early."""
        flow = self.flow
        wanted = {flow.ledger_topic: YOUNG, flow.state_topic: YOUNG, flow.runs_topic: YOUNG_RUNS}
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                topic,
                incremental_configs=[ConfigEntry(*entry, incremental_operation=AlterConfigOpType.SET) for entry in entries.items()],
            )
            for topic, entries in wanted.items()
        ]
        client = AdminClient(self.target.client_settings())
        for future in client.incremental_alter_configs(resources).values():
            future.result(ANSWER_SECONDS)

    def disk(self) -> dict[str, float]:
        """MiB on the target's disk of the topics that Ferry keeps."""
        flow = self.flow
        topics = {"ledger": flow.ledger_topic, "state": flow.state_topic, "runs": flow.runs_topic}
        logs = list((self.target.directory / "data").iterdir())
        return {
            f"{name} on disk, MiB": sum(disk_bytes(log) for log in logs if log.name.rpartition("-")[0] == topic) / (1 << 20)
            for name, topic in topics.items()
        }


class Writer(threading.Thread):
    """Writes to the source, and lets the groups follow, until it is finished."""

    def __init__(self, world: World) -> None:
        super().__init__(name="writer", daemon=True)
        self._source = world.source
        self._stopped = threading.Event()

    def run(self) -> None:
        producer = Producer({**self._source.client_settings(), "acks": "all", "linger.ms": 50, "compression.type": "lz4"})
        number = 0
        while not self._stopped.wait(1.0):
            for _ in range(RECORDS_A_SECOND):
                number += 1
                # Bytes that no codec makes smaller: otherwise both clusters would keep for hours what they should keep for minutes.
                producer.produce(TOPIC, random.randbytes(RECORD_BYTES), key=str(number % 1_000).encode())
            producer.flush(ANSWER_SECONDS)
            if number // RECORDS_A_SECOND % 5 == 0:
                ends = {(TOPIC, partition): end for partition, (_, end) in partition_bounds(self._source.bootstrap, TOPIC).items()}
                commit_offsets(self._source.client_settings(), GROUPS[number // RECORDS_A_SECOND % len(GROUPS)], ends)

    def finish(self) -> None:
        """Stop writing."""
        self._stopped.set()
        self.join()


@contextmanager
def world(store: Path) -> Iterator[World]:
    """The clusters of `store`, made if there are none yet. Afterwards they are stopped; their data stays."""
    found = [SandboxCluster.load(store / name) for name in ("A", "B")]
    started: list[SandboxCluster] = []
    try:
        for name, cluster in zip(("A", "B"), found, strict=True):
            if cluster is None:
                shutil.rmtree(store / name, ignore_errors=True)
                started.append(SandboxCluster.start(store / name, name, properties=BROKER))
            else:
                cluster.run()
                started.append(cluster)
        made = World(started[0], started[1], store / "mm2.properties")
        if None in found:
            _set_out(made)
        yield made
    finally:
        for cluster in started:
            cluster.stop()


def _set_out(made: World) -> None:
    settings = {
        "clusters": "A, B",
        "A.bootstrap.servers": made.source.bootstrap,
        "B.bootstrap.servers": made.target.bootstrap,
        f"{FLOW}.enabled": "true",
        f"{FLOW}.topics": TOPIC,
        f"{FLOW}.groups": "hours-.*",
        "replication.factor": "1",
        "ferry.internal.topics.replication.factor": "1",
        f"{FLOW}.sync.group.offsets.enabled": "true",
        f"{FLOW}.ferry.ledger.partitions": "1",
    }
    write_properties(settings, made.config)
    client = AdminClient(made.source.client_settings())
    client.create_topics([NewTopic(TOPIC, WIDTH, 1, config=TOPIC_CONFIG)])[TOPIC].result(ANSWER_SECONDS)
