"""What the source gets: records that say who sent them, as which one, and when.

The value is `producer;sequence;milliseconds;` and filler, as kafka-mirror-tester has it, so gaps are losses and repetitions duplicates.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

FLUSH_SECONDS = 120
TICK_SECONDS = 0.05
# Between the committed ones; their records must never arrive anywhere.
ABORTED = 0.25
# Two replicators that the tester was made for drop headers; here they are compared, as all else is.
HEADERS = [("a", b"1"), ("a", b"2"), ("none", None)]


class Sent(NamedTuple):
    """Which record it is."""

    producer: str
    sequence: int


def value_of(sent: Sent, size: int) -> bytes:
    """Its value, `size` bytes long."""
    return f"{sent.producer};{sent.sequence};{time.time_ns() // 1_000_000};".encode().ljust(size, b"x")


def read_value(value: bytes) -> tuple[Sent, int]:
    """Which record it is, and when it was sent, in milliseconds."""
    producer, sequence, sent, _ = value.split(b";", 3)
    return Sent(producer.decode(), int(sequence)), int(sent)


def seed(bootstrap: str, topic: str, partitions: int, records: int, in_transaction: int, size: int, dice: random.Random) -> int:
    """`records` committed records by a transactional producer, `in_transaction` at a time, and aborted ones between; how many aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"seed-{topic}", "linger.ms": 20, "acks": "all"})
    producer.init_transactions(FLUSH_SECONDS)
    sequence = aborted = 0
    while sequence < records:
        doomed = dice.random() < ABORTED
        producer.begin_transaction()
        count = min(in_transaction, records - sequence)
        for number in range(sequence, sequence + count):
            sent = Sent("aborted" if doomed else "seed", number)
            _produce(producer, topic, value_of(sent, size), number % partitions)
        if doomed:
            producer.flush(FLUSH_SECONDS)  # they are in the log, not only in the client
            producer.abort_transaction(FLUSH_SECONDS)
            aborted += count
        else:
            producer.commit_transaction(FLUSH_SECONDS)
            sequence += count
    return aborted


class Feeder(threading.Thread):
    """An idempotent producer that sends `rate` records a second, in turn to every partition of `targets` (topic to partitions).

    `acked` counts what the source has acknowledged, `failed` what it has refused for good.
    `label` begins the name of its producers: one for each topic.
    """

    def __init__(self, bootstrap: str, name: str, rate: int, size: int, targets: dict[str, int]) -> None:
        super().__init__(name=f"feeder-{name}", daemon=True)
        self._address, self._rate, self._size = bootstrap, rate, size
        self.label, self.targets = name, targets
        self.acked: Counter[str] = Counter()
        self.failed: list[str] = []
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Until told to stop."""
        producer = Producer(
            {
                "bootstrap.servers": self._address,
                "enable.idempotence": True,
                "linger.ms": 20,
                "acks": "all",
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        sequences: Counter[str] = Counter()
        started, produced = time.monotonic(), 0
        while not self._stop_asked.is_set():
            due = int((time.monotonic() - started) * self._rate)
            while produced < due and not self._stop_asked.is_set():
                for topic, partitions in list(self.targets.items()):
                    sent = Sent(f"{self.label}-{topic}", sequences[topic])
                    if _produce(producer, topic, value_of(sent, self._size), sequences[topic] % partitions, self._delivered):
                        sequences[topic] += 1
                produced += 1
            producer.poll(TICK_SECONDS)
        assert producer.flush(FLUSH_SECONDS) == 0

    def finish(self) -> None:
        """Everything is acknowledged."""
        self._stop_asked.set()
        self.join()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked[message.topic()] += 1
        else:
            self.failed.append(f"{message.topic()}-{message.partition()}: {error}")


def _produce(
    producer: Producer, topic: str, value: bytes, partition: int, then: Callable[[KafkaError | None, Message], None] | None = None
) -> bool:
    """Whether it was taken; a partition that the client does not know yet is tried again later."""
    while True:
        try:
            producer.produce(topic, value, str(partition), partition, then, headers=HEADERS)
        except BufferError:
            producer.poll(TICK_SECONDS)
        except KafkaException as problem:
            if problem.args[0].code() in {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}:
                return False
            raise
        else:
            producer.poll(0)
            return True
