"""Sample topics with codecs, headers, nulls, tombstones, aborted transactions and a compacted topic; and a sample group."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from ferry.errors import FerryError, count_of

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FLUSH_SECONDS = 60.0
# Metadata and offsets of a local broker: usually milliseconds.
ANSWER_SECONDS = 15.0
# The first group makes a cluster create the topic of the groups; until then no broker is the coordinator.
COORDINATOR_SECONDS = 30.0
GROUP, GROUP_TOPIC = "billing", "orders-lz4"
# librdkafka retries by itself without messages; when it gives up, Ferry raises.
QUIET = {"log_level": 2}
Headers = list[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers]


class SampleNotWritten(FerryError):
    """Sample records did not reach the cluster."""


@dataclass(frozen=True)
class SampleSummary:
    """Committed records by topic that this call added, and how many were produced in transactions that were aborted."""

    topics: dict[str, int]
    aborted: int

    @property
    def records(self) -> int:
        return sum(self.topics.values())


def load_sample_topics(bootstrap: str, *, seed: int = 1, records: int = 2_000) -> SampleSummary:
    """Create the topics that are missing, and add about `records` records to each of eight topics."""
    randomness = random.Random(seed)  # noqa: S311 - sample data
    topics = {f"orders-{codec}": {"compression.type": "producer"} for codec in CODECS}
    topics |= {"accounts": {"cleanup.policy": "compact"}, "payments": {}, "clicks": {}}
    client = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    existing = client.list_topics(timeout=15).topics
    missing = [NewTopic(name, 6 if name == "clicks" else 3, 1, config=config) for name, config in topics.items() if name not in existing]
    if missing:
        for future in client.create_topics(missing).values():
            future.result()
    added = {f"orders-{codec}": _plain(bootstrap, f"orders-{codec}", codec, _records(records, randomness)) for codec in CODECS}
    added["clicks"] = _plain(bootstrap, "clicks", "lz4", _records(records * 5, randomness))
    added["accounts"] = _plain(bootstrap, "accounts", "zstd", _accounts(records, randomness))
    added["payments"], aborted = _transactions(bootstrap, "payments", records, randomness)
    return SampleSummary(added, aborted)


def _records(count: int, randomness: random.Random) -> Iterator[Record]:
    headers: list[Headers] = [[], [("trace", b"a"), ("trace", b"b")], [("empty", b""), ("null", None)]]
    for number in range(count):
        key = None if number % 7 == 0 else f"key-{randomness.randrange(500)}".encode()
        value = (
            None
            if number % 11 == 5 and key is not None
            else b""
            if number % 13 == 6
            else randomness.randbytes(randomness.randrange(5, 300))
        )
        yield key, value, headers[number % 3]


def _accounts(count: int, randomness: random.Random) -> Iterator[Record]:
    for number in range(count):
        key = f"account-{randomness.randrange(300)}".encode()
        yield key, None if number % 17 == 3 else str(randomness.random()).encode(), []


def _plain(bootstrap: str, topic: str, codec: str, records: Iterator[Record]) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET, "compression.type": codec, "linger.ms": 20, "enable.idempotence": True})
    start, count = int(time.time() * 1000) - 3_600_000, 0
    for count, record in enumerate(records, 1):
        _produce(producer, topic, record, start + count)
    _deliver(producer, topic)
    return count


def _transactions(bootstrap: str, topic: str, count: int, randomness: random.Random) -> tuple[int, int]:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET, "transactional.id": "ferry-sample-payments", "linger.ms": 5})
    producer.init_transactions(30)
    committed = aborted = 0
    size = max(1, count // 20)
    for round_number in range(20):
        producer.begin_transaction()
        for record in _records(size, randomness):
            _produce(producer, topic, record)
        if round_number % 4 == 2:
            _deliver(producer, topic)  # the aborted records must reach the log, so that a copy leaves them out
            producer.abort_transaction(30)
            aborted += size
        else:
            producer.commit_transaction(30)
            committed += size
    _await_markers(bootstrap, topic)
    return committed, aborted


def _await_markers(bootstrap: str, topic: str) -> None:
    """Wait for the transactions' markers. A commit returns before they are written; until then readers and runs stop before the records."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "ferry-sample", **QUIET}
    levels = ("read_committed", "read_uncommitted")
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(Consumer({**settings, "isolation.level": level}))) for level in levels]
        deadline = time.monotonic() + FLUSH_SECONDS
        for number in readers[0].list_topics(topic, timeout=15).topics[topic].partitions:
            partition = TopicPartition(topic, number)
            while len({reader.get_watermark_offsets(partition, timeout=15)[1] for reader in readers}) > 1:
                if time.monotonic() > deadline:
                    raise SampleNotWritten(f"{bootstrap}: a transaction of {topic} was not settled in {FLUSH_SECONDS:.0f} s")
                time.sleep(0.01)


def _deliver(producer: Producer, topic: str) -> None:
    if left := producer.flush(FLUSH_SECONDS):
        raise SampleNotWritten(f"not accepted: {count_of(left, 'record')} of {topic} within {FLUSH_SECONDS:.0f} s: does the cluster run?")


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error is not None:  # raised out of the poll or flush that calls this
        raise SampleNotWritten(f"a record of {message.topic()} was refused: {error}")


def _produce(producer: Producer, topic: str, record: Record, timestamp: int = 0) -> None:
    """`timestamp` in ms; 0: now."""
    key, value, headers = record
    while True:
        try:
            producer.produce(topic, value=value, key=key, headers=headers, on_delivery=_delivered, timestamp=timestamp)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def read_in_part(bootstrap: str, group: str, topic: str) -> int:
    """Commit the middle of each partition for `group`; how many partitions there are."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})) as consumer:
        partitions = sorted(consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions)
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_SECONDS) for number in partitions]
        places = [TopicPartition(topic, number, (low + high) // 2) for number, (low, high) in zip(partitions, ends, strict=True)]
        commit(consumer, places)
        return len(places)


@retry(retry=retry_if_exception_type(KafkaException), stop=stop_after_delay(COORDINATOR_SECONDS), wait=wait_fixed(0.05), reraise=True)
def commit(consumer: Consumer, places: list[TopicPartition]) -> None:
    """Commit for the consumer's group, which has no members. KafkaException after COORDINATOR_SECONDS."""
    consumer.commit(offsets=places, asynchronous=False)
