"""Offsets of many partitions at once, compared with librdkafka's one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.conftest import Lab
from tests.opened import administration, plan_run
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.clusters.logs.offset_listing import EARLIEST, LATEST, OffsetListing
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import open_cluster
from ferry.config import ClientRole, Flow
from ferry.copying.request import RunRequest

pytestmark = pytest.mark.brokers

HOUR = 3_600_000
FIRST = 1_790_000_000_000


@pytest.fixture
def listing(flow_factory: Callable[..., Flow]) -> Iterator[OffsetListing]:
    with open_cluster(flow_factory().source) as opened:
        yield OffsetListing(opened, ClientRole.ADMIN)


def test_beginnings_ends_and_times(lab: Lab, listing, monkeypatch) -> None:
    monkeypatch.setattr("ferry.clusters.logs.offset_listing.PARTITIONS_A_REQUEST", 2)
    topics = [lab.topic(lab.source, partitions=3) for _ in range(2)]
    keys = [TopicPartition(topic, partition) for topic in topics for partition in range(3)]
    producer = Producer({**lab.source.client_settings(), "transactional.id": topics[0]})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number, key in enumerate(keys):
        for record in range(number):
            producer.produce(*key[:1], b"v", partition=key.partition, timestamp=(record + 1) * HOUR)
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topics[1], b"open", partition=2, timestamp=9 * HOUR)
    producer.flush(30)
    consumer = Consumer({**lab.source.client_settings(), "group.id": "compares", "isolation.level": "read_uncommitted"})
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
        consumer.close()
        producer.abort_transaction(30)


def forgetful_topic(cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    """A topic with two records of FIRST + 2 h, whose leader says that none is of FIRST or later.

    The batch of an aborted transaction is alone in its segment: its marker is so much later that it begins the next one.
    """
    compacting = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100", "max.compaction.lag.ms": "100"}
    topic = topic_factory(cluster, config={**compacting, "retention.ms": "-1"})
    producer = Producer({**cluster.client_settings(), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"dropped", b"key", timestamp=FIRST + HOUR)
    producer.flush(30)
    producer.abort_transaction(30)
    # Until the marker is written the record lies beyond the last stable offset.
    consumer = Consumer({**cluster.client_settings(), "group.id": "compares", "isolation.level": "read_uncommitted"})
    until(lambda: consumer.offsets_for_times([Place(topic, 0, FIRST)], timeout=30)[0].offset < 0, lambda: "the cleaner has not come")
    consumer.close()
    # So that the cleaner does not come again.
    entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient(cluster.client_settings())
    client.incremental_alter_configs([resource])[resource].result(30)
    for number in range(2):
        producer.begin_transaction()
        producer.produce(topic, b"kept", b"%d" % number, timestamp=FIRST + 2 * HOUR)
        producer.commit_transaction(30)
    return topic


def test_a_leader_that_overlooks_records_past_an_empty_batch_is_not_believed(lab: Lab) -> None:
    """Or a run from that time on would copy nothing, without a word."""
    topic = forgetful_topic(lab.source, lab.topic)
    moment = datetime.fromtimestamp(FIRST / 1000, UTC)
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.ferry.start = {moment.isoformat()}", *lab.copy_only)
    key = TopicPartition(topic, 0)
    with administration(flow.source) as source:
        found, problems = source.offsets_for_time([key], FIRST)
        assert (found, list(problems), str(FIRST) in problems[key]) == ({}, [key], True)
        assert source.offsets_for_time([key], FIRST + HOUR + 1) == ({key: 1}, {}), "the marker of the aborted transaction"
        assert source.offsets_for_time([key], 253_402_300_799_000) == ({key: None}, {})
    (failure,) = plan_run(flow, RunRequest(flow.name, "run")).failed
    assert (failure.topic, failure.error) == (topic, "PartitionUnavailable")


def test_a_deleted_or_new_record_is_not_an_overlooked_record(lab: Lab, listing: OffsetListing) -> None:
    """A leader still names the newest record of an active segment after DeleteRecords; and records come between two questions."""
    topic = lab.topic(lab.source)
    key = TopicPartition(topic, 0)
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, b"deleted", timestamp=FIRST + HOUR)
    producer.flush(30)
    client = AdminClient(lab.source.client_settings())
    client.delete_records([Place(topic, 0, 1)])[Place(topic, 0)].result(30)
    with administration(lab.flow().source) as source:
        assert source.offsets_for_time([key], FIRST) == ({key: None}, {})
    producer.produce(topic, b"just come", timestamp=FIRST + HOUR)
    producer.flush(30)
    with administration(lab.flow().source) as source:
        assert [source.offsets_for_time([key], moment) for moment in (-1, -3, -5_000_000_000_000)] == [({key: 1}, {})] * 3, "before 1970"
    assert listing.overlooked([key], FIRST, committed=True) == {}, "the first question was asked before"
