"""docs/from-mirrormaker.md has a row for every name of MM2's, and each row says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.docs.mirrormaker_names import CLIENTS, METRICS, PLUGINS
from tools.docs.mirrormaker_page import PAGE, names, page, tables
from typer.main import get_command

from ferry import client
from ferry.cli.main import app
from ferry.client import MirrorClient
from ferry.config.registry import FILE_PROPERTIES, FLOW_PROPERTIES
from ferry.policy.naming import ReplicationPolicy

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
ROWS = {row.name: row for row in names()}

# Read out of the KIPs' texts, by hand.
KIP_382 = """
MirrorSourceConnector MirrorSinkConnector MirrorSourceTask MirrorSinkTask MirrorCheckpointConnector MirrorCheckpointTask
MirrorHeartbeatConnector MirrorHeartbeatTask MirrorConnectorConfig MirrorTaskConfig ReplicationPolicy DefaultReplicationPolicy
LegacyReplicationPolicy Heartbeat Checkpoint OffsetSync RemoteClusterUtils MirrorClient MirrorMaker MirrorMakerConfig
HeartbeatMessageFormatter CheckpointMessageFormatter connect-mirror-maker.sh config/mirror-maker.properties
replication-latency-ms(-avg/-min/-max) record-bytes(-avg/-min/-max) record-age-ms(-avg/-min/-max) record-count
checkpoint-latency-ms(-avg/-min/-max) kafka.mirror.connect:type=MirrorSourceConnect kafka.mirror.connect:type=MirrorCheckpointConnector
heartbeats <source>.checkpoints.internal mm2-offset-syncs.<other>.internal
RemoteClusterUtils.replicationHops RemoteClusterUtils.heartbeatTopics RemoteClusterUtils.checkpointTopics
RemoteClusterUtils.upstreamClusters RemoteClusterUtils.translateOffsets
MirrorClient.close MirrorClient.replicationPolicy MirrorClient.replicationHops MirrorClient.heartbeatTopics MirrorClient.checkpointTopics
MirrorClient.upstreamClusters MirrorClient.remoteTopics MirrorClient.remoteConsumerOffsets
ReplicationPolicy.formatRemoteTopic ReplicationPolicy.topicSource ReplicationPolicy.upstreamTopic ReplicationPolicy.originalTopic
ReplicationPolicy.isInternalTopic TopicFilter GroupFilter ConfigPropertyFilter DefaultTopicFilter DefaultGroupFilter
DefaultConfigPropertyFilter name topics topics.blacklist groups groups.blacklist source.cluster.alias target.cluster.alias
source.cluster.bootstrap.servers target.cluster.bootstrap.servers sync.topic.configs sync.topic.acls admin.* remote.admin.* rename.topics
emit.heartbeats emit.heartbeats.interval.seconds emit.checkpoints emit.checkpoints.interval.seconds refresh.topics
refresh.topics.interval.seconds refresh.groups refresh.groups.interval.seconds readahead.queue.capacity replication.policy.class
heartbeats.topic.retention.ms checkpoints.topic.retention.ms offset.syncs.topic.retention.ms replication.factor consumer.*
consumer.poll.timeout.ms producer.* config/connect-mirror-source.properties connector.class tasks.max source.bootstrap.servers
target.bootstrap.servers key.converter value.converter key.converter.class value.converter.class ByteArrayConverter connect-standalone.sh
config/connect-standalone.properties clusters cluster.<alias>.broker.list cluster.<alias>.x.y.z bootstrap.servers
PUT_/connectors/<name>/config kafka-mirror-maker.sh dedicated_MirrorMaker_cluster connector_in_a_distributed_Connect_cluster
standalone_Connect_worker legacy_mode active/active aggregation cycle_detection
"""
KIP_545 = "sync.group.offsets.enabled emit.checkpoints.enabled MirrorCheckpointTask __consumer_offsets_(KIP-545)"
KIP_656 = """
connector.type transaction.producer MirrorSinkTask MirrorSinkConnector MirrorSourceConnector MirrorCommonConnector
exactly-once,_transaction.producer_(KIP-656) at-least-once_(KIP-656) "fake"_consumer_group_on_the_target_(KIP-656)
sink_mode,_connector.type_(KIP-656)
"""
KIP_3 = """
--consumer.rebalance.listener --consumer.rebalance.listener.args --message.handler --message.handler.args --abort.on.send.failure
MirrorMakerMessageHandler MirrorMakerMessageHandler.init ConsumerRebalanceListener ConsumerRebalanceListener.beforeReleasingPartitions
ConsumerRebalanceListener.beforeStartingFetchers no_data_loss_(KIP-3) auto.commit.enabled retries acks block.on.buffer.full
"""
# The tables of MM2's configuration classes, as of Kafka 4.4, and what they name besides.
CONFIGURATION = """
clusters dedicated.mode.enable.internal.rest config.providers security.protocol ssl.* sasl.* enabled source.cluster.alias
target.cluster.alias replication.policy.class replication.policy.separator replication.policy.internal.topic.separator.enabled
admin.timeout.ms forwarding.admin.class metric.reporters task.index topics topics.exclude topic.filter.class config.properties.exclude
config.property.filter.class consumer.poll.timeout.ms refresh.topics.enabled refresh.topics.interval.seconds sync.topic.configs.enabled
sync.topic.configs.interval.seconds sync.topic.acls.enabled sync.topic.acls.interval.seconds replication.factor
offset-syncs.topic.replication.factor offset-syncs.topic.location offset.lag.max emit.offset-syncs.enabled
heartbeats.replication.enabled metric.names.formats task.assigned.partitions exactly.once.support isolation.level groups groups.exclude
group.filter.class refresh.groups.enabled refresh.groups.interval.seconds emit.checkpoints.enabled emit.checkpoints.interval.seconds
sync.group.offsets.enabled sync.group.offsets.interval.seconds checkpoints.topic.replication.factor task.assigned.groups
emit.heartbeats.enabled emit.heartbeats.interval.seconds heartbeats.topic.replication.factor use.defaults.from name connector.class
connector.plugin.version tasks.max tasks.max.enforce key.converter value.converter header.converter key.converter.plugin.version
value.converter.plugin.version header.converter.plugin.version transforms predicates config.action.reload errors.retry.timeout
errors.retry.delay.max.ms errors.tolerance errors.log.enable errors.log.include.messages transaction.boundary offsets.storage.topic
topics.whitelist config.properties.blacklist use.incremental.alter.configs add.source.alias.to.metrics auto.include.jmx.reporter
IdentityReplicationPolicy MirrorClientConfig MirrorSourceConfig MirrorCheckpointConfig MirrorHeartbeatConfig ForwardingAdmin
connect-mirror-maker.sh_--clusters mm2-offsets.<source>.internal mm2-configs.<source>.internal mm2-status.<source>.internal
auto.offset.reset
"""
NAMED = sorted(
    {
        word.replace("_", " ") if not word.startswith("__") else word.replace("_(", " (")
        for text in (KIP_382, KIP_545, KIP_656, KIP_3, CONFIGURATION)
        for word in text.split()
    }
)
COMMANDS = {f"ferry {name}": command for name, command in get_command(app).commands.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMED)
def test_every_name_of_the_kips_has_one_row(name: str) -> None:
    """Here, or on the page of properties, which lists the whole registry."""
    assert (name in ROWS) + (name in {**FILE_PROPERTIES, **FLOW_PROPERTIES}) == 1


def test_no_name_has_two_rows() -> None:
    rows = [row.name for row in names()]
    assert sorted(rows) == sorted(set(rows))


def test_the_page_holds_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.docs"
    assert all(line.replace("\\|", "").count("|") == 4 for line in tables().split("\n") if line.startswith("|"))


def test_what_rows_promise_is_there() -> None:
    """Commands, methods and properties that rows name as equivalents exist."""
    promised = " ".join(row.what for row in names())
    named = {f"ferry {word}" for word in re.findall(r"`ferry ([a-z]+)", promised)}
    assert named <= COMMANDS.keys()
    ferrys = set(re.findall(r"`(ferry\.[a-z.]+)`", promised)) - {"ferry.client", "ferry.start"}
    assert {
        name for name in ferrys if not name.startswith(("ferry.client.", "ferry.policy.", "ferry.byte", "ferry.record"))
    } <= FLOW_PROPERTIES.keys()
    for row in PLUGINS:
        if row.name.startswith("ReplicationPolicy."):
            assert callable(getattr(ReplicationPolicy, row.what.strip("`")))
    for row in CLIENTS:
        for method in re.findall(r"`MirrorClient\.(\w+)`", row.what):
            assert method in {*dir(MirrorClient), *MirrorClient.__annotations__}
        for function in re.findall(r"`ferry\.client\.(\w+)`", row.what):
            assert function in client.__all__
    metrics = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(ferry\.[\w-]+)`", " ".join(row.what for row in METRICS)):
        assert f"`{re.sub('-(avg|min|max)$', '', name)}" in metrics
