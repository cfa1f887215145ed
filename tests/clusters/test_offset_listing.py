"""Offsets of many partitions at once, compared with librdkafka's one by one."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as Place

from ferry.clusters.offset_listing import EARLIEST, LATEST, OffsetListing
from ferry.clusters.partitions import TopicPartition
from ferry.config import ClientRole

pytestmark = pytest.mark.brokers

HOUR = 3_600_000


def test_beginnings_ends_and_times(source_cluster, flow_factory, topic_factory, monkeypatch) -> None:
    monkeypatch.setattr("ferry.clusters.offset_listing.PARTITIONS_A_REQUEST", 2)
    topics = [topic_factory(source_cluster, partitions=3) for _ in range(2)]
    keys = [TopicPartition(topic, partition) for topic in topics for partition in range(3)]
    producer = Producer({**source_cluster.client_settings(), "transactional.id": topics[0]})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number, key in enumerate(keys):
        for record in range(number):
            producer.produce(*key[:1], b"v", partition=key.partition, timestamp=(record + 1) * HOUR)
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topics[1], b"open", partition=2, timestamp=9 * HOUR)
    producer.flush(30)
    listing = OffsetListing(flow_factory().source, ClientRole.ADMIN)
    consumer = Consumer({**source_cluster.client_settings(), "group.id": "compares", "isolation.level": "read_uncommitted"})
    try:
        watermarks = {key: consumer.get_watermark_offsets(Place(*key), timeout=30) for key in keys}
        assert listing.offsets(keys, EARLIEST, committed=False) == ({key: low for key, (low, _) in watermarks.items()}, {})
        assert listing.offsets(keys, LATEST, committed=False) == ({key: high for key, (_, high) in watermarks.items()}, {})
        stable, problems = listing.offsets(keys, LATEST, committed=True)
        assert problems == {}
        assert stable == {**{key: high for key, (_, high) in watermarks.items()}, keys[-1]: watermarks[keys[-1]][1] - 1}
        asked = consumer.offsets_for_times([Place(*key, 2 * HOUR) for key in keys], timeout=30)
        expected = {(entry.topic, entry.partition): entry.offset if entry.offset >= 0 else -1 for entry in asked}
        expected = {key: offset if offset < watermarks[key][1] else -1 for key, offset in expected.items()}
        assert listing.offsets(keys, 2 * HOUR, committed=True) == (expected, {})
        found, problems = listing.offsets([keys[0], TopicPartition("never-made", 0), TopicPartition(topics[0], 7)], LATEST, committed=True)
        assert set(found) == {keys[0]}
        assert {key.topic: error.code() for key, error in problems.items()} == {
            "never-made": KafkaError.UNKNOWN_TOPIC_OR_PART,
            topics[0]: KafkaError.UNKNOWN_TOPIC_OR_PART,
        }
    finally:
        listing.close()
        consumer.close()
        producer.abort_transaction(30)
