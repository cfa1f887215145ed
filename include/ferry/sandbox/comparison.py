"""Are two topics equal? An answer by clients that share no code with what copied them (librdkafka).

Both sides are read by read_committed consumers, partition by partition, to the last stable offset of the beginning, in step, so memory is
bounded. Compared are order, key, value, headers (order, duplicates, nulls) and timestamp.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

# A comparison that makes no headway is a finding, not a reason to hang.
STALL_SECONDS = 60.0
DIFFERENCES_A_PARTITION = 5
# A poll returns only when it is full or this has passed.
POLL_SECONDS = 0.03


class RecordSeen(NamedTuple):
    """One record as a reader sees it; `offset` is not compared."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    offset: int

    @property
    def content(self) -> tuple[object, ...]:
        """What must be equal on both sides."""
        return self.key, self.value, self.headers, self.timestamp


@dataclass(frozen=True)
class Difference:
    """The first things that differ: `kind` is missing, extra or altered; `position` counts records from the start of the partition."""

    topic: str
    partition: int
    position: int
    kind: str
    source: RecordSeen | None
    target: RecordSeen | None


@dataclass
class Comparison:
    """The outcome over all topics."""

    topics: int = 0
    records: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return not self.differences


def compare_topics(source_bootstrap: str, target_bootstrap: str, pairs: Mapping[str, str]) -> Comparison:
    """Compare each source topic with its remote topic (`pairs`)."""
    outcome = Comparison()
    for topic, remote in pairs.items():
        outcome.topics += 1
        for partition in _partitions(source_bootstrap, topic):
            found = itertools.zip_longest(
                read_partition(source_bootstrap, topic, partition), read_partition(target_bootstrap, remote, partition)
            )
            differing = 0
            for position, (wanted, copied) in enumerate(found):
                outcome.records += 1
                if wanted is not None and copied is not None and wanted.content == copied.content:
                    continue
                kind = "missing" if copied is None else "extra" if wanted is None else "altered"
                outcome.differences.append(Difference(topic, partition, position, kind, wanted, copied))
                differing += 1
                if differing >= DIFFERENCES_A_PARTITION:
                    break
    return outcome


def read_all(bootstrap: str, topic: str) -> list[list[RecordSeen]]:
    """Every committed record of a topic, by partition."""
    return [list(read_partition(bootstrap, topic, partition)) for partition in _partitions(bootstrap, topic)]


def read_partition(bootstrap: str, topic: str, partition: int) -> Iterator[RecordSeen]:
    """The committed records of one partition up to the last stable offset of now."""
    consumer = _consumer(bootstrap)
    try:
        # For a read_committed client this is the last stable offset.
        low, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=15)
        if low >= end:
            return
        consumer.assign([TopicPartition(topic, partition, low)])
        deadline = time.monotonic() + STALL_SECONDS
        while time.monotonic() < deadline:
            for message in consumer.consume(5_000, POLL_SECONDS):
                error = message.error()
                if error is None:
                    if message.offset() >= end:
                        return
                    deadline = time.monotonic() + STALL_SECONDS
                    headers = tuple(message.headers() or ())
                    yield RecordSeen(message.key(), message.value(), headers, message.timestamp()[1], message.offset())
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
                    if message.offset() >= end:
                        return
                else:
                    raise KafkaException(error)
        raise TimeoutError(f"{bootstrap}: {topic}-{partition} could not be read to offset {end} in {STALL_SECONDS:.0f} s")
    finally:
        consumer.close()


def _partitions(bootstrap: str, topic: str) -> list[int]:
    consumer = _consumer(bootstrap)
    try:
        return sorted(consumer.list_topics(topic, timeout=15).topics[topic].partitions)
    finally:
        consumer.close()


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "ferry-comparison",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
        }
    )
