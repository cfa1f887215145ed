"""What the source gets: a batch of records before every round, and a trickle of committed and aborted transactions all along."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, Producer

VALUE_BYTES = 1_000
FILLER = "x" * VALUE_BYTES
TRANSACTIONS_A_BATCH = 8
TRICKLE_SECONDS = 0.25
FLUSH_SECONDS = 60


def numbers() -> Iterator[int]:
    """One number for every record ever sent; `next` is atomic."""
    return itertools.count(1)


def produce_batch(
    bootstrap: str, topics: Mapping[str, str], transactional: str, partitions: int, share: int, source: Iterator[int]
) -> None:
    """`share` records into each topic (name to codec); into `transactional` as transactions, every fourth of them aborted."""
    for topic, codec in topics.items():
        settings = _settings(bootstrap, codec)
        if topic != transactional:
            producer = Producer({**settings, "enable.idempotence": True})
            _write(producer, topic, partitions, share, source)
            assert producer.flush(FLUSH_SECONDS) == 0
            continue
        producer = Producer({**settings, "transactional.id": f"batch-{topic}"})
        producer.init_transactions(FLUSH_SECONDS)
        for index in range(TRANSACTIONS_A_BATCH):
            producer.begin_transaction()
            _write(producer, topic, partitions, share // TRANSACTIONS_A_BATCH, source)
            assert producer.flush(FLUSH_SECONDS) == 0
            (producer.abort_transaction if index % 4 == 3 else producer.commit_transaction)(FLUSH_SECONDS)


class Trickle(threading.Thread):
    """Small transactions, a third of them aborted, into every topic until stopped; a new producer after every broker failure."""

    def __init__(self, bootstrap: str, topics: Mapping[str, str], partitions: int, source: Iterator[int], seed: int) -> None:
        super().__init__(name="trickle", daemon=True)
        self._address, self._topics, self._partitions, self._source = bootstrap, topics, partitions, source
        self._random = random.Random(seed)
        self._stop_asked = threading.Event()
        self.committed = self.aborted = 0

    def run(self) -> None:
        """Until told to stop."""
        while not self._stop_asked.is_set():
            try:
                self._with_one_producer()
            except KafkaException:
                self._stop_asked.wait(1.0)

    def finish(self) -> None:
        """Stop; nothing is left open."""
        self._stop_asked.set()
        self.join()

    def _with_one_producer(self) -> None:
        producer = Producer({**_settings(self._address, "none"), "transactional.id": "trickle", "transaction.timeout.ms": 10_000})
        producer.init_transactions(FLUSH_SECONDS)
        while not self._stop_asked.wait(TRICKLE_SECONDS):
            producer.begin_transaction()
            for topic in self._topics:
                _write(producer, topic, self._partitions, self._random.randint(1, 30), self._source)
            if self._random.random() < 1 / 3:
                producer.flush(FLUSH_SECONDS)
                producer.abort_transaction(FLUSH_SECONDS)
                self.aborted += 1
            else:
                producer.commit_transaction(FLUSH_SECONDS)
                self.committed += 1


def _settings(bootstrap: str, codec: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 10, "acks": "all", "log_level": 0}


def _write(producer: Producer, topic: str, partitions: int, count: int, source: Iterator[int]) -> None:
    for _ in range(count):
        number = next(source)
        while True:
            try:
                producer.produce(topic, value=f"{number} {FILLER}".encode(), key=b"k", partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
