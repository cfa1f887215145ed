"""A policy of a user's own names everything: records, configs, ACL rules, groups."""

from __future__ import annotations

import secrets

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.conftest import Lab
from tests.opened import sync_configs, sync_groups
from tools.kafka.groups import commit_offsets

pytestmark = pytest.mark.brokers

SECONDS = 30.0


def test_one_policy_names_everything(lab: Lab) -> None:
    topic, group, hidden = lab.topic(lab.source, partitions=2), f"g{secrets.token_hex(2)}", f"group-{secrets.token_hex(16)}"
    flow = lab.flow(
        f"A->B.topics = {topic}.*",
        "A->B.replication.policy.class = tests.policy.policies:Suffix",
        "replication.policy.suffix.mark = -out-of-",
        "A->B.group.filter.class = tests.policy.policies:OnlyShort",
        "A->B.sync.group.offsets.enabled = true",
    )
    remote = f"{topic}-out-of-{flow.source.alias}"
    lab.produce(lab.source, topic, [(number % 2, b"k", str(number).encode()) for number in range(20)])
    report = lab.run(flow)
    assert {entry.remote_topic for entry in report.partitions} == {remote}
    assert report.failed == ()

    for name in (group, hidden):
        commit_offsets(lab.source.client_settings(), name, {(topic, 0): 4})
    entry = ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    source = AdminClient(lab.source.client_settings())
    source.incremental_alter_configs([resource])[resource].result(SECONDS)
    assert sync_configs(flow).failed == ()
    outcome = sync_groups(flow)
    assert outcome.failed == ()
    assert f"left out by {flow.mirroring.group_filter_class}" in {skipped.reason for skipped in outcome.skipped if hidden in skipped.what}

    target = AdminClient(lab.target.client_settings())
    described = ConfigResource(ResourceType.TOPIC, remote)
    assert target.describe_configs([described])[described].result(SECONDS)["retention.ms"].value == "86400000"
    consumer = Consumer({**lab.target.client_settings(), "group.id": group, "auto.offset.reset": "error"})
    (found,) = consumer.committed([TopicPartition(remote, 0)], timeout=SECONDS)
    assert found.offset == 4
    consumer.assign([found])
    record = consumer.poll(SECONDS)
    assert record is not None
    assert record.value() == b"8"
    consumer.close()

    # A run in the other direction would leave it alone, and so do its ACLs.
    back = lab.flow("A->B.replication.policy.class = tests.policy.policies:Suffix", "replication.policy.suffix.mark = -out-of-")
    assert flow.topic_rules.remote_topic(topic) == remote
    assert str(back.topic_rules.why_not(f"{topic}-out-of-{flow.target.alias}")).startswith("cycle")
