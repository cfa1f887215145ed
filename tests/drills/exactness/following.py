"""Reading with librdkafka: some topics all along, and a log from any position to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.waiting import NEVER_SECONDS
from tools.kafka import RecordSeen, SandboxCluster

Place = tuple[str, int]
SETTINGS = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 20,
}
ANSWER_SECONDS = 15.0
# A poll returns only when it is full or this has passed.
POLL_SECONDS = 0.03
POLL_RECORDS = 2000


class Follower:
    """A read_committed consumer of all remote partitions from their beginnings; keeps what it reads, in order of offsets."""

    def __init__(self, cluster: SandboxCluster, places: Iterable[Place], check: Callable[[], None]) -> None:
        self._check = check
        self._consumer = Consumer({**cluster.client_settings(), **SETTINGS, "group.id": "follower", "isolation.level": "read_committed"})
        self.records: dict[Place, list[RecordSeen]] = {place: [] for place in places}
        deadline = time.monotonic() + NEVER_SECONDS
        while not {topic for topic, _ in self.records} <= set(self._consumer.list_topics(timeout=ANSWER_SECONDS).topics):
            self._patient(deadline, "its remote topics are not all there")
            time.sleep(0.3)
        self._consumer.assign([TopicPartition(*place, 0) for place in self.records])

    def wait_for(self, counts: Mapping[Place, int], seconds: float) -> None:
        """Read until each partition has so many records."""
        deadline = time.monotonic() + seconds
        while any(len(self.records[place]) < count for place, count in counts.items()):
            self.drain()
            behind = {place: count - len(self.records[place]) for place, count in counts.items() if len(self.records[place]) < count}
            self._patient(deadline, f"records are missing: {behind}")

    def drain(self) -> None:
        """Take what has come."""
        for message in self._consumer.consume(POLL_RECORDS, POLL_SECONDS):
            error = message.error()
            if error is None:
                headers = tuple(message.headers() or ())
                seen = RecordSeen(message.key(), message.value(), headers, message.timestamp()[1], message.offset())
                self.records[message.topic(), message.partition()].append(seen)
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)

    def close(self) -> None:
        self._consumer.close()

    def _patient(self, deadline: float, problem: str) -> None:
        self._check()
        if time.monotonic() > deadline:
            raise TimeoutError(problem)


class Reader:
    """One consumer that reads many times from a position to the end of what is there."""

    def __init__(self, cluster: SandboxCluster, isolation: str) -> None:
        self._consumer = Consumer({**cluster.client_settings(), **SETTINGS, "group.id": "reader", "isolation.level": isolation})

    def read(self, place: Place, start: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of what follows."""
        self._consumer.assign([TopicPartition(*place, start)])
        found = []
        deadline = time.monotonic() + NEVER_SECONDS
        while time.monotonic() < deadline:
            for message in self._consumer.consume(POLL_RECORDS, POLL_SECONDS):
                error = message.error()
                if error is None:
                    found.append((message.offset(), message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._consumer.unassign()
                    return found
                else:
                    raise KafkaException(error)
        raise TimeoutError(f"{place} could not be read to its end")

    def end(self, place: Place) -> int:
        """Where the log ends at this isolation level."""
        return int(self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_SECONDS)[1])

    def close(self) -> None:
        self._consumer.close()
