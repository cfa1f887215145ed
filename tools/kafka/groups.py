"""Positions of consumer groups, as clients have them that are not Ferry."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from ferry.sandbox.sample_data import commit

# Metadata and offsets of a local broker: usually milliseconds.
ANSWER_SECONDS = 15.0


def commit_offsets(settings: Mapping[str, str], group: str, offsets: Mapping[tuple[str, int], int], metadata: str | None = None) -> None:
    """Commit for a group without members. `settings`: librdkafka's; `offsets`: by topic and partition. KafkaException."""
    consumer = Consumer({**settings, "group.id": group, "enable.auto.commit": False, "log_level": 2})
    # With an empty text, librdkafka commits one of length 1: its C string with its end.
    with_metadata = {} if metadata is None else {"metadata": metadata}
    try:
        commit(consumer, [TopicPartition(*key, offset, **with_metadata) for key, offset in offsets.items()])
    finally:
        consumer.close()


def next_records(bootstrap: str, group: str, topic: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value of the record that `group` reads next, by partition; partitions without an offset or a further record are absent."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "log_level": 2,
        }
    )
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
