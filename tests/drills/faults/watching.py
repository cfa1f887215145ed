"""Independent eyes: a read_committed reader that watches all along, and the coordinator's own list of open transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

# After the last run everything is committed: what has not been seen by then will not come.
WATCH_SECONDS = 90.0
OPEN_STATE = "Ongoing"
ASK_MILLISECONDS = 5_000


class Watcher(threading.Thread):
    """Reads remote partitions from their beginning, across broker restarts, and keeps the number of every record in order."""

    def __init__(self, bootstrap: str, topics: Iterable[str], partitions: int) -> None:
        super().__init__(name="watcher", daemon=True)
        self.seen: dict[tuple[str, int], list[int]] = {(topic, number): [] for topic in topics for number in range(partitions)}
        self._address = bootstrap
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Read until told to stop."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "watcher",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in self.seen])
        while not self._stop_asked.is_set():
            for message in consumer.consume(2_000, 0.2):
                if message.error() is None:
                    self.seen[message.topic(), message.partition()].append(number_of(message.value()))
        consumer.close()

    def finish(self, wanted: int) -> None:
        """Stop once `wanted` records were seen, or no more come."""
        deadline = time.monotonic() + WATCH_SECONDS
        while sum(map(len, self.seen.values())) < wanted and time.monotonic() < deadline:
            time.sleep(0.2)
        self._stop_asked.set()
        self.join()


class OpenTransactions:
    """How many transactions of a flow's lanes are open, as the target's coordinator says; one connection, made anew after a restart."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._address, self._prefix = bootstrap, prefix
        self._client: KafkaAdminClient | None = None

    def count(self) -> int:
        """Now; 0 while the broker does not answer."""
        try:
            if self._client is None:
                self._client = KafkaAdminClient(bootstrap_servers=self._address, request_timeout_ms=ASK_MILLISECONDS)
            listings = self._client.list_transactions(state_filters=[OPEN_STATE]).values()
        except (KafkaError, OSError):
            self.close()
            return 0
        return sum(entry.transactional_id.startswith(self._prefix) for listing in listings for entry in listing)

    def close(self) -> None:
        """Drop the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def number_of(value: bytes) -> int:
    """The number that a record's value begins with."""
    return int(value.split(b" ", 1)[0])
