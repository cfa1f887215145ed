"""A consumer group of the demo: it reads a part of a topic, and what it would read next can be compared on both sides."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

# Metadata and offsets of a local broker: usually milliseconds.
ANSWER_SECONDS = 15.0
GROUP, GROUP_TOPIC = "billing", "orders-lz4"
Settings = dict[str, object]


def _settings(bootstrap: str, group: str) -> Settings:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "log_level": 2,
    }


def read_in_part(bootstrap: str, group: str, topic: str) -> int:
    """Commit the middle of each partition for `group`; how many partitions there are."""
    consumer = Consumer(_settings(bootstrap, group))
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions)
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_SECONDS) for number in partitions]
        places = [TopicPartition(topic, number, (low + high) // 2) for number, (low, high) in zip(partitions, ends, strict=True)]
        consumer.commit(offsets=places, asynchronous=False)
        return len(places)
    finally:
        consumer.close()


def next_records(bootstrap: str, group: str, topic: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value of the record that `group` reads next, by partition; partitions without an offset or a further record are absent."""
    consumer = Consumer(_settings(bootstrap, group))
    try:
        partitions = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions
        places = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=ANSWER_SECONDS)
        wanted = [place for place in places if place.offset >= 0]
        consumer.assign(wanted)
        found: dict[int, tuple[bytes | None, bytes | None]] = {}
        while len(found) < len(wanted):
            message = consumer.poll(ANSWER_SECONDS)
            if message is None:
                break
            if message.error() is None:
                found.setdefault(message.partition(), (message.key(), message.value()))
        return found
    finally:
        consumer.close()
