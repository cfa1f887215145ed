"""Applications on both sides: producers that know what was acknowledged, consumers that know what they have committed. librdkafka only."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Message, Producer

# Between two records of one producer, at first.
PACE_SECONDS = 0.01
COMMIT_SECONDS = 0.3


class Writer(threading.Thread):
    """Produces `name:n` to the partitions of a topic in turn until it is stopped; `acked` are those that stand there, by partition."""

    def __init__(self, name: str, servers: str, topic: str, partitions: int, acked: dict[int, list[str]], *, first: int) -> None:
        super().__init__(name=f"writer {name}", daemon=True)
        self._name, self._topic, self._partitions = name, topic, partitions
        self._settings = {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 3,
            "message.timeout.ms": 5000,
            "log_level": 2,
        }
        self._acked = acked
        self._halt = threading.Event()
        self.number = first

    def run(self) -> None:
        """Until halted; what was sent is flushed."""
        producer = Producer(self._settings)
        while not self._halt.wait(PACE_SECONDS):
            value, partition = f"{self._name}:{self.number}", self.number % self._partitions
            producer.produce(self._topic, value=value.encode(), partition=partition, on_delivery=self._delivered)
            producer.poll(0)
            self.number += 1
        producer.flush(30)

    def halt(self) -> int:
        """Stop, and wait for acknowledgements; the number of the next record."""
        self._halt.set()
        self.join()
        return self.number

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self._acked[message.partition() or 0].append((message.value() or b"").decode())


class Reader(threading.Thread):
    """A member of a group that works records off: what it has committed is its work done, by origin's partition, in order.

    `pace` seconds between two records, which may be changed at any time. A reader that fails to commit says so in `trouble`.
    """

    def __init__(self, group: str, servers: str, topics: Sequence[str], work: Work, *, pace: float = 0.0) -> None:
        super().__init__(name=f"reader {group}", daemon=True)
        self._group, self._topics, self.pace, self._work = group, list(topics), pace, work
        self._servers = servers
        self._halt = threading.Event()
        self.trouble = ""

    def run(self) -> None:
        """Until halted: commits what it holds, and leaves the group."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": self._group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "topic.metadata.refresh.interval.ms": 1000,
                "session.timeout.ms": 6000,
                "log_level": 2,
            }
        )
        consumer.subscribe(self._topics)
        try:
            held: list[Message] = []
            committed = time.monotonic()
            while not self._halt.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    held.append(message)
                    if self.pace:
                        time.sleep(self.pace)
                if held and time.monotonic() - committed > COMMIT_SECONDS:
                    self._commit(consumer, held)
                    committed = time.monotonic()
            self._commit(consumer, held)
        except KafkaException as problem:
            self.trouble = str(problem)
        finally:
            consumer.close()

    def halt(self) -> None:
        """Stop and leave."""
        self._halt.set()
        self.join()

    def _commit(self, consumer: Consumer, held: list[Message]) -> None:
        if held:
            consumer.commit(asynchronous=False)
            self._work.add([(message.value() or b"").decode() for message in held], [message.partition() or 0 for message in held])
            held.clear()


class Work:
    """What a group has done, over all its members and sides: records by origin and partition, in the order in which they were read."""

    def __init__(self) -> None:
        self.done: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._lock = threading.Lock()

    def add(self, values: Sequence[str], partitions: Sequence[int]) -> None:
        """Committed."""
        with self._lock:
            for value, partition in zip(values, partitions, strict=True):
                self.done[value.partition(":")[0], partition].append(value)

    def count(self, origin: str) -> int:
        """How many records of an origin."""
        with self._lock:
            return sum(len(found) for (name, _), found in self.done.items() if name == origin)
