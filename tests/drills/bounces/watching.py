"""A concurrent read_committed reader of the target (librdkafka): every record, in the order in which consumers get it."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.drills.bounces.feeding import Sent, read_value

LOOK_SECONDS = 1.0


class Arrival(threading.Thread):
    """Reads all topics that begin with `prefix`, new ones and new partitions too. Latencies in seconds, from the sender's clock."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        super().__init__(name="arrival", daemon=True)
        self._address, self._prefix = bootstrap, prefix
        self.seen: defaultdict[tuple[str, int], list[Sent]] = defaultdict(list)
        self.latencies: list[float] = []
        self._stop_asked = threading.Event()

    def count(self, topic: str) -> int:
        """Records of a source topic so far."""
        return sum(len(found) for (name, _), found in list(self.seen.items()) if name == self._prefix + topic)

    def run(self) -> None:
        """Until told to stop."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "arrival",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        known: set[tuple[str, int]] = set()
        looked = 0.0
        while not self._stop_asked.is_set():
            if time.monotonic() - looked > LOOK_SECONDS:
                known |= self._assign_new(consumer, known)
                looked = time.monotonic()
            for message in consumer.consume(1_000, 0.1):
                if message.error() is None:
                    sent, at = read_value(message.value())
                    self.latencies.append(time.time() - at / 1_000)
                    self.seen[message.topic(), message.partition()].append(sent)
        consumer.close()

    def finish(self) -> None:
        """Stop reading."""
        self._stop_asked.set()
        self.join()

    def _assign_new(self, consumer: Consumer, known: set[tuple[str, int]]) -> set[tuple[str, int]]:
        try:
            topics = consumer.list_topics(timeout=LOOK_SECONDS).topics
        except KafkaException:
            return set()
        listed = {(name, number) for name, topic in topics.items() if name.startswith(self._prefix) for number in topic.partitions}
        consumer.incremental_assign([TopicPartition(name, number, 0) for name, number in listed - known])
        return listed
