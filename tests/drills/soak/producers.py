"""What writes to the source all along: producers with and without transactions, of changing codecs and batch sizes.

Everything that a broker or the network does to them is an outcome to record, not a failure: a producer that is refused for good is
replaced by a new one. Timestamps come from clocks that are wrong, by a day behind or almost an hour ahead.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from tests.drills.histories.model import Outcome, Place, RecordId
from tests.drills.soak.recording import Recorder
from tests.drills.soak.stamps import Content, stamped
from tests.drills.soak.topics import COMPACTED, Topics

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Seconds that a producer's clock is wrong; the broker refuses what is more than an hour ahead.
CLOCKS = (0, 0, 0, -86_400, -3_600, 60, 3_000)
KEYS = 100
ANSWER_SECONDS = 20.0
DELIVERY_MILLISECONDS = 15_000
TRANSACTION_MILLISECONDS = 15_000
# A producer of one kind lives so long, then another one comes.
LIFE_SECONDS = (8.0, 30.0)
SETTLE_SECONDS = 30.0

# Every producer ever made has a number of its own.
_numbers = itertools.count(1)


def write_once(bootstrap: str, place: Place, count: int, recorder: Recorder) -> None:
    """So many small records into one partition, by a producer of its own."""
    number = next(_numbers)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "delivery.timeout.ms": 10_000, "log_level": 0})
    for sequence in range(count):
        record = (number, sequence)
        recorder.sending(record, place, None, None)
        content = stamped(record, place, Content(None, b"brief", (), int(time.time() * 1_000)), in_header=False)
        report = partial(_delivered, recorder, record)
        producer.produce(place[0], content.value, partition=place[1], timestamp=content.timestamp, on_delivery=report)
    producer.flush(SETTLE_SECONDS)


class Writer(threading.Thread):
    """Writes until told to stop; about `rate` records a second. With `transactional_id`, in transactions."""

    def __init__(
        self, bootstrap: str, topics: Topics, recorder: Recorder, seed: int, rate: float, transactional_id: str | None = None
    ) -> None:
        super().__init__(name=transactional_id or f"plain-{seed}", daemon=True)
        self._address, self._topics, self._recorder = bootstrap, topics, recorder
        self._id, self._rate = transactional_id, rate
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self._clock = 0
        self._number, self._sequence = next(_numbers), 0
        self._transactions = 0

    def run(self) -> None:
        """One producer after the other."""
        while not self._stopped.is_set():
            self._number, self._sequence = next(_numbers), 0
            self._clock = self._chance.choice(CLOCKS)
            try:
                (self._in_transactions if self._id else self._plainly)(self._producer())
            except KafkaException:
                self._stopped.wait(0.5)

    def finish(self) -> None:
        """Stop; whatever was begun is ended."""
        self._stopped.set()
        self.join()

    def _producer(self) -> Producer:
        settings: dict[str, Any] = {
            "bootstrap.servers": self._address,
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": self._chance.choice(CODECS),
            "linger.ms": self._chance.choice([0, 5, 50]),
            "batch.num.messages": self._chance.choice([1, 10, 1_000]),
            "delivery.timeout.ms": DELIVERY_MILLISECONDS,
            "topic.metadata.refresh.interval.ms": 5_000,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,
        }
        if self._id:
            settings |= {"transactional.id": self._id, "transaction.timeout.ms": TRANSACTION_MILLISECONDS}
            settings["delivery.timeout.ms"] = TRANSACTION_MILLISECONDS - 1_000
        return Producer(settings)

    def _plainly(self, producer: Producer) -> None:
        end = time.monotonic() + self._chance.uniform(*LIFE_SECONDS)
        while not self._stopped.is_set() and time.monotonic() < end:
            count = self._chance.randint(1, 60)
            for _ in range(count):
                self._send(producer, None)
            producer.poll(0)
            self._stopped.wait(count / self._rate)
        producer.flush(SETTLE_SECONDS)

    def _in_transactions(self, producer: Producer) -> None:
        end = time.monotonic() + self._chance.uniform(*LIFE_SECONDS)
        try:
            producer.init_transactions(SETTLE_SECONDS)
            while not self._stopped.is_set() and time.monotonic() < end:
                self._transactions += 1
                self._one_transaction(producer, f"{self._id}/{self._transactions}")
        finally:
            producer.flush(ANSWER_SECONDS)

    def _one_transaction(self, producer: Producer, name: str) -> None:
        """Commit or abort; a commit that got no answer is unknown, and all that was not committed is aborted."""
        begun = time.monotonic()
        count = self._chance.randint(1, 80)
        # Without an attempt to commit it can only abort.
        outcome = Outcome.FAILED
        try:
            producer.begin_transaction()
            for _ in range(count):
                self._send(producer, name)
            # Some are open for seconds and hold back the last stable offset.
            self._stopped.wait(self._chance.choice([0, 0, 0, 0, 0.5, 4.0]))
            if self._chance.random() < 0.25:
                producer.flush(ANSWER_SECONDS)
                producer.abort_transaction(ANSWER_SECONDS)
            else:
                outcome = Outcome.UNKNOWN
                outcome = _commit(producer)
        finally:
            self._recorder.ended(self._id or "", name, outcome)
        self._stopped.wait(max(0.0, begun + count / self._rate - time.monotonic()))

    def _send(self, producer: Producer, transaction: str | None) -> None:
        place = self._topics.place(self._chance)
        self._sequence += 1
        record = (self._number, self._sequence)
        content = self._content(place, record)
        self._recorder.sending(record, place, transaction, content.key)
        while True:
            try:
                producer.produce(
                    place[0],
                    value=content.value,
                    key=content.key,
                    partition=place[1],
                    headers=list(content.headers),
                    timestamp=content.timestamp,
                    on_delivery=partial(_delivered, self._recorder, record),
                )
            except BufferError:
                producer.poll(0.1)
            else:
                producer.poll(0)
                return

    def _content(self, place: Place, record: RecordId) -> Content:
        chance = self._chance
        key: bytes | None = f"key-{chance.randrange(KEYS)}".encode()
        value = None if chance.random() < 0.05 else chance.randbytes(chance.choice([0, 10, 100, 100, 300, 1_000]))
        headers: list[tuple[str, bytes | None]] = chance.choice(
            [[], [], [("trace", b"a"), ("trace", b"b")], [("empty", b""), ("null", None)]]
        )
        if place[0] != COMPACTED and chance.random() < 0.2:
            key = None
        content = Content(key, value, tuple(headers), int((time.time() + self._clock) * 1_000))
        return stamped(record, place, content, in_header=chance.random() < 0.3)


def _delivered(recorder: Recorder, record: RecordId, error: KafkaError | None, message: Message) -> None:
    offset = message.offset()
    recorder.answered(record, error, offset if offset is not None and offset >= 0 else None)


def _commit(producer: Producer) -> Outcome:
    """Committed, or aborted because it had to be; KafkaException when nobody knows."""
    try:
        producer.commit_transaction(ANSWER_SECONDS)
    except KafkaException as problem:
        if not problem.args[0].txn_requires_abort():
            raise
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(ANSWER_SECONDS)
            return Outcome.FAILED
        raise
    return Outcome.OK
