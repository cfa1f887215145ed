"""What Ferry says when a topic is one of Kafka Streams', or was turned compact, is done here as it says: then it goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.conftest import Lab
from tests.opened import plan_run, sync_configs
from tools.kafka import SandboxCluster, read_all

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import BatchRefused

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]


def set_policy(cluster: SandboxCluster, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient(cluster.client_settings())
    client.incremental_alter_configs([resource])[resource].result(30)


def fill(cluster: SandboxCluster, topic: str, count: int) -> None:
    producer = Producer(cluster.client_settings())
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


def test_records_without_a_key_in_a_topic_that_was_turned_compact(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    fill(lab.source, topic, 20)
    set_policy(lab.source, topic, "compact")
    flow = lab.flow(f"topics = {topic}")
    (notice,) = [text for text in plan_run(flow, RunRequest(flow.name, "look")).notices if "has no key" in text]
    assert f"topic {topic} is compacted" in notice
    (failure,) = lab.run(flow).failed
    assert failure.error == BatchRefused.__name__
    assert "have no key" in failure.problem
    assert "set cleanup.policy=delete there" in failure.problem
    remote = f"{flow.source.alias}.{topic}"
    set_policy(lab.target, remote, "delete")
    again = lab.run(flow)
    assert (again.failed, again.records, len(read_all(lab.target.client_settings(), remote)[0])) == ((), 20, 20)
    assert "cleanup.policy" in str(sync_configs(flow).changes)


def test_records_that_kafka_streams_deletes(lab: Lab) -> None:
    """With the configs of Kafka Streams' InternalTopicManager for repartition topics."""
    streams = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800", "message.timestamp.type": "CreateTime"}
    topic = lab.topic(lab.source, config=streams, name="app-counts-repartition")
    fill(lab.source, topic, 20)
    flow = lab.flow(f"topics = {topic}")
    told = f"A.{topic}".replace("A.", f"{flow.source.alias}.")
    (notice,) = [text for text in plan_run(flow, RunRequest(flow.name, "look")).notices if "Kafka Streams" in text]
    assert f"of {told}" in notice
    client = AdminClient(lab.source.client_settings())
    for future in client.delete_records([TopicPartition(topic, 0, 5)]).values():
        future.result(30)
    lab.run(flow)
    fill(lab.source, topic, 20)
    for future in client.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result(30)
    report = lab.run(flow)
    (problem,) = report.problems()
    assert f"exclude {topic}: Kafka Streams deletes" in problem.next_step
    assert "raise the source's retention" not in problem.next_step
    excluded = lab.flow(f"topics = {topic}", notice.partition("set ")[2].partition(": Streams")[0].replace(flow.name, "A->B"))
    assert lab.run(excluded).problems() == []
