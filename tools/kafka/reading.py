"""Committed records as librdkafka's read_committed consumer sees them: a reader that shares no code with what copies."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from ferry.errors import FerryError

# A broker that does not answer would hang the reader.
ANSWER_SECONDS = 15.0
# A partition that makes no headway is a finding, not a reason to hang.
STALL_SECONDS = 60.0
# A poll returns only when it is full or this has passed.
POLL_SECONDS = 0.03
POLL_RECORDS = 500
# What librdkafka may fetch ahead for each partition: two sides are read at a time.
AHEAD_KIB = 16_384
# A broker that has just started answers so until it leads its partitions.
ELECTING = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}

# `host:port`, or librdkafka settings where the cluster wants a login.
Address = str | Mapping[str, str]


class NotReadable(FerryError):
    """A topic that should be read is not there, or cannot be read to its end."""


class RecordSeen(NamedTuple):
    """One record as a reader sees it; `offset` is not compared. `timestamp` in ms, `timestamp_type` as confluent_kafka's TIMESTAMP_*."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    offset: int
    timestamp_type: int = TIMESTAMP_CREATE_TIME

    @property
    def content(self) -> tuple[object, ...]:
        """What must be equal on both sides."""
        return self.key, self.value, self.headers, self.timestamp


def read_all(address: Address, topic: str) -> list[list[RecordSeen]]:
    """Every committed record of a topic, by partition. NotReadable when there is no such topic."""
    return [list(read_partition(address, topic, number, bounds)) for number, bounds in partition_bounds(address, topic).items()]


def partition_bounds(address: Address, topic: str) -> dict[int, tuple[int, int]]:
    """Log start and last stable offset (exclusive) of every partition, now. NotReadable when there is no such topic."""
    with _consumer(address) as consumer:
        listed = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
        if listed.error is not None or not listed.partitions:
            raise NotReadable(f"topic {topic} of {_name(address)}: {listed.error or 'it has no partitions'}")
        # For a read_committed client the high watermark is the last stable offset.
        return {number: _bounds(consumer, TopicPartition(topic, number)) for number in sorted(listed.partitions)}


def read_partition(address: Address, topic: str, partition: int, bounds: tuple[int, int]) -> Iterator[RecordSeen]:
    """The committed records of one partition in `bounds` (half-open offsets). NotReadable when they do not come."""
    start, end = bounds
    if start >= end:
        return
    with _consumer(address) as consumer:
        consumer.assign([TopicPartition(topic, partition, start)])
        deadline = time.monotonic() + STALL_SECONDS
        while time.monotonic() < deadline:
            for message in consumer.consume(POLL_RECORDS, POLL_SECONDS):
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
                    raise KafkaException(error)
                if message.offset() >= end:
                    return
                if error is None:
                    headers = tuple(message.headers() or ())
                    kind, timestamp = message.timestamp()
                    yield RecordSeen(message.key(), message.value(), headers, timestamp, message.offset(), kind)
                    # Counted from here: whoever takes the records may have been slow.
                    deadline = time.monotonic() + STALL_SECONDS
    raise NotReadable(f"{_name(address)}: {topic}-{partition} could not be read to offset {end}: nothing came for {STALL_SECONDS:.0f} s")


@retry(
    retry=retry_if_exception(lambda problem: isinstance(problem, KafkaException) and problem.args[0].code() in ELECTING),
    stop=stop_after_delay(ANSWER_SECONDS),
    wait=wait_fixed(POLL_SECONDS),
    reraise=True,
)
def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    bounds: tuple[int, int] = consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS)
    return bounds


def _name(address: Address) -> str:
    return address if isinstance(address, str) else address["bootstrap.servers"]


@contextmanager
def _consumer(address: Address) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            **({"bootstrap.servers": address} if isinstance(address, str) else address),
            "group.id": "ferry-comparison",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
            "queued.max.messages.kbytes": AHEAD_KIB,
            # A full queue is asked for more after this, not after librdkafka's second.
            "fetch.queue.backoff.ms": 10,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()
