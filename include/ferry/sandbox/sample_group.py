"""A consumer group that has read the first half of a topic."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

# Metadata and offsets of a local broker: usually milliseconds.
ANSWER_SECONDS = 15.0
GROUP, GROUP_TOPIC = "billing", "orders-lz4"


def read_in_part(bootstrap: str, group: str, topic: str) -> int:
    """Commit the middle of each partition for `group`; how many partitions there are."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 2})
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions)
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ANSWER_SECONDS) for number in partitions]
        places = [TopicPartition(topic, number, (low + high) // 2) for number, (low, high) in zip(partitions, ends, strict=True)]
        consumer.commit(offsets=places, asynchronous=False)
        return len(places)
    finally:
        consumer.close()
