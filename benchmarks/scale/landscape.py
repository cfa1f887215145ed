"""Two clusters with thousands of partitions on one machine, and what is put into them.

Brokers get a heap for the partitions' state. A partition costs a broker one open file and two mapped index files, which are kept small, so
that 10,000 partitions fit the usual limits of a machine (20,000 files, 65,530 maps) and its disk.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata
from tools.kafka import SandboxCluster

BROKER_JAVA = ("-Xms1g", "-Xmx2g", "-XX:+UseG1GC")
BROKER = {
    "log.index.size.max.bytes": "4096",
    "log.segment.bytes": str(16 << 20),
    "log.retention.ms": "-1",
    "log.cleaner.dedupe.buffer.size": str(32 << 20),
    "offsets.topic.segment.bytes": str(16 << 20),
    # What a controller does to thousands of partitions at once takes its time.
    "controller.quorum.request.timeout.ms": "30000",
}
# A controller refuses a request that creates more than 10,000 partitions.
TOPICS_A_REQUEST = 400
CREATE_SECONDS = 300.0
PAUSE_SECONDS = 0.5
GROUPS_IN_FLIGHT = 200


@dataclass(frozen=True)
class Landscape:
    """A running pair of clusters; the source has `topics` topics of `width` partitions each."""

    source: SandboxCluster
    target: SandboxCluster
    directory: Path
    topics: int
    width: int

    @property
    def names(self) -> list[str]:
        """The topics of the source."""
        return [f"scale-{number:05d}" for number in range(self.topics)]

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """All partitions, those of one number first: neighbours in this order belong to different topics."""
        return [(name, partition) for partition in range(self.width) for name in self.names]


@contextmanager
def landscape(directory: Path, topics: int, width: int) -> Iterator[Landscape]:
    """Both clusters with the empty topics; stopped and removed at the end."""
    directory.mkdir(parents=True, exist_ok=True)
    started: list[SandboxCluster] = []
    try:
        with ThreadPoolExecutor(2) as pool:
            places = ((directory / name, name) for name in ("A", "B"))
            started += pool.map(lambda place: SandboxCluster.start(*place, properties=BROKER, java_options=BROKER_JAVA), places)
        made = Landscape(started[0], started[1], directory, topics, width)
        _create(made)
        yield made
    finally:
        for cluster in started:
            cluster.stop()
            shutil.rmtree(cluster.directory / "data", ignore_errors=True)


def produce(found: Landscape, partitions: Iterable[tuple[str, int]], records: int, *, size: int = 100) -> None:
    """Append `records` records of `size` bytes to each partition. RuntimeError when some do not arrive."""
    failed: list[object] = []
    producer = Producer({**found.source.client_settings(), "linger.ms": 50, "acks": "all", "queue.buffering.max.messages": 1_000_000})
    for topic, partition in partitions:
        for _ in range(records):
            producer.produce(topic, b"x" * size, partition=partition, on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    if producer.flush(CREATE_SECONDS) or failed:
        raise RuntimeError(f"records did not arrive at the source: {failed[:3]}")


def commit_groups(found: Landscape, groups: int, offset: int) -> None:
    """Let `groups` groups without members stand at `offset` of all partitions of one topic each."""
    client = AdminClient(found.source.client_settings())
    names = found.names
    wanted = [
        ConsumerGroupTopicPartitions(
            f"group-{number:05d}",
            [TopicPartition(names[number % len(names)], partition, offset) for partition in range(found.width)],
        )
        for number in range(groups)
    ]
    for start in range(0, groups, GROUPS_IN_FLIGHT):
        waiting = wanted[start : start + GROUPS_IN_FLIGHT]
        while waiting:
            futures = [(one, client.alter_consumer_group_offsets([one])) for one in waiting]
            waiting = [one for one, answers in futures if not all(_is_committed(answer) for answer in answers.values())]


def _is_committed(answer: Future[ConsumerGroupTopicPartitions]) -> bool:
    """False while the coordinator is not up yet; raises what else goes wrong."""
    try:
        return all(entry.error is None for entry in answer.result(CREATE_SECONDS).topic_partitions)
    except KafkaException as problem:
        if not problem.args[0].retriable():
            raise
        return False


def _create(found: Landscape) -> None:
    client = AdminClient(found.source.client_settings())
    names = found.names
    for start in range(0, len(names), TOPICS_A_REQUEST):
        wanted = [NewTopic(name, found.width, 1) for name in names[start : start + TOPICS_A_REQUEST]]
        for future in client.create_topics(wanted, request_timeout=CREATE_SECONDS).values():
            future.result(CREATE_SECONDS)
    # The controller has them at once; the broker makes some hundred directories a second.
    deadline = time.monotonic() + CREATE_SECONDS
    missing = set(names)
    while missing:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(missing)} topics have no leaders after {CREATE_SECONDS:.0f} s")
        time.sleep(PAUSE_SECONDS)
        listed = client.list_topics(timeout=CREATE_SECONDS).topics
        missing -= {name for name in missing if name in listed and _led(listed[name])}


def _led(topic: TopicMetadata) -> bool:
    return topic.error is None and all(partition.leader >= 0 for partition in topic.partitions.values())
