"""The flow's positions as a group on the source: for lag tools, best effort, never read back."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.conftest import Lab
from tests.opened import carry_out, copy_run, plan_run, prepare_run
from tools.kafka import SandboxCluster

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.net.error_codes import CODES
from ferry.clusters.net.error_policy import OFFSET_COMMIT
from ferry.clusters.net.failures import granting
from ferry.clusters.net.partitions import TopicPartition as Partition
from ferry.config import Flow
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.state import Head
from ferry.pipeline.syncs import SyncName
from ferry.syncs.group_placing import refused_commit
from ferry.syncs.source_group import METADATA, published

FlowFactory = Callable[..., Flow]
TODAY, BEFORE = str(UUID(int=1)), str(UUID(int=2))


def head(topic: str, partition: int, position: int, topic_id: str = TODAY) -> Head:
    return Head(topic, partition, position, topic_id, f"A.{topic}", str(UUID(int=9)))


@pytest.mark.unit
def test_positions_of_todays_topics() -> None:
    heads = [head("t", 0, 5), head("t", 1, 7), head("gone", 0, 1), head("again", 0, 1, BEFORE)]
    topics = {name: TopicDescription(TODAY, 1) for name in ("t", "again")}
    wanted, skipped = published({(entry.topic, entry.partition): entry for entry in heads}, topics)
    assert {key: (committed.offset, committed.metadata) for key, committed in wanted.items()} == {Partition("t", 0): (5, METADATA)}
    assert [entry.what for entry in skipped] == ["again-0", "gone-0", "t-1"]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", "NotAuthorized: cluster {alias} does not allow writing offsets of t-3; {right}"),
        ("OFFSET_METADATA_TOO_LARGE", "GroupFailed: cluster {alias} refused t-3: {told}"),
    ],
)
def test_why_an_offset_was_refused(name: str, told: str, flow_factory: FlowFactory) -> None:
    cluster = flow_factory().source
    names = {"alias": cluster.alias, "right": granting(cluster, "Read on topic t"), "told": OFFSET_COMMIT.told(CODES[name])}
    assert refused_commit(cluster, Partition("t", 3), CODES[name]).named == told.format(**names)


def fill(cluster: SandboxCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0


def copy(flow: Flow, run: str) -> None:
    request = RunRequest(flow.name, run)
    prepare_run(flow, request, spark_follows=True)
    copy_run(flow, request, InlineLaneRunner(), lambda _: None)


def committed(consumer: Consumer, topic: str) -> list[int]:
    return [entry.offset for entry in consumer.committed([TopicPartition(topic, partition) for partition in (0, 1)], timeout=15)]


@pytest.mark.brokers
def test_tools_that_watch_lag_see_ferrys_positions(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2)
    group = f"connect-{topic}"
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.ferry.publish.source.group = {group}")
    consumer = Consumer({"bootstrap.servers": lab.source.bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        fill(lab.source, topic, 10)
        copy(flow, "one")
        looked = carry_out(flow, SyncName.SOURCE_GROUP, dry_run=True)
        assert ([change.detail for change in looked.changes], committed(consumer, topic)) == (["none -> 5"] * 2, [-1001] * 2)
        done = carry_out(flow, SyncName.SOURCE_GROUP, run_id="one")
        assert (done.changes, done.failed, committed(consumer, topic)) == (looked.changes, (), [5, 5])
        assert "nobody else may use it" in done.notices[0]

        # A consumer that uses it all the same: this sync fails, and copying goes by the positions on the target.
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        fill(lab.source, topic, 4)
        (failure,) = carry_out(flow, SyncName.SOURCE_GROUP, run_id="two").failed
        assert (failure.error, "has members" in failure.problem) == ("GroupFailed", True)
        assert plan_run(flow, RunRequest(flow.name, "look")).needs_copy
    finally:
        consumer.close()
    copy(flow, "two")
    assert [change.detail for change in carry_out(flow, SyncName.SOURCE_GROUP, run_id="two").changes] == ["5 -> 7"] * 2


@pytest.mark.brokers
def test_without_a_group_nothing_is_written(flow_factory: FlowFactory) -> None:
    assert carry_out(flow_factory(), SyncName.SOURCE_GROUP).left_out == "ferry.publish.source.group is not set"
    assert carry_out(flow_factory(), SyncName.SOURCE_GROUP, on_request=True).left_out == "ferry.publish.source.group is not set"
