"""What becomes of every class, method, metric, topic, mode and option that MM2's KIPs (382, 545, 656, 3) name, beside its properties.

The rows of properties come from the registry; `mirrormaker_page` puts both into docs/from-mirrormaker.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What Ferry does with a name."""

    HONOURED = "honoured"
    EQUIVALENT = "equivalent"  # there is something else for the same purpose
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Name:
    """One row. `what` says what instead, why not, or which message; Markdown, without links to files."""

    name: str
    verdict: Verdict
    what: str


def _honoured(name: str, what: str) -> Name:
    return Name(name, Verdict.HONOURED, what)


def _instead(name: str, what: str) -> Name:
    return Name(name, Verdict.EQUIVALENT, what)


def _idle(name: str, what: str) -> Name:
    return Name(name, Verdict.NO_EFFECT, what)


def _refused(name: str, what: str) -> Name:
    return Name(name, Verdict.REFUSED, what)


_PYTHON = "Python class, `package.module:Class`"
_CLIENT = "the same in Python, `ferry.client`"
_METRICS = "through Airflow's metrics, as"

MODES = (
    _honoured("dedicated MirrorMaker cluster", "the same `mm2.properties`; Airflow or `ferry run` in place of its processes"),
    _instead("connector in a distributed Connect cluster", "a flow of `mm2.properties`; a connector's REST document is not read"),
    _instead("standalone Connect worker", "`ferry run` with the connector's file in place of `connect-standalone.sh`"),
    _instead("legacy mode", "`ferry legacy`, with the options of `kafka-mirror-maker.sh`"),
    _instead("legacy configuration of MM2", "`replication.policy.class=LegacyReplicationPolicy`, and every `*.enabled=false`"),
    _honoured("active/active", "with the default policy; under one name on both sides too, which MM2 cannot do"),
    _honoured(
        "aggregation",
        "one flow from each source; under the identity policy a second flow into one remote topic is refused (`AlreadyClaimed`)",
    ),
    _honoured("cycle detection", "MM2's rules of Kafka 4.4, over any number of clusters"),
    _honoured("exactly-once, transaction.producer (KIP-656)", "on unless switched off"),
    _honoured("at-least-once (KIP-656)", "`transaction.producer=false`"),
    _instead("sink mode, connector.type (KIP-656)", "Ferry's only way: offsets are kept on the target, in the records' transaction"),
    _instead(
        '"fake" consumer group on the target (KIP-656)',
        "`__ferry-<source>`; `ferry.publish.source.group` keeps a group on the source up to date besides",
    ),
    _honoured("no data loss (KIP-3)", "positions never go beyond what was acknowledged; nothing is sent without `acks=all`"),
)

SCRIPTS = (
    _instead("connect-mirror-maker.sh", "`ferry run mm2.properties --flow 'A->B'`, once per flow and run, or the DAGs"),
    _instead(
        "connect-mirror-maker.sh --clusters",
        "name the flows: `--clusters B` is a `ferry run` for every flow whose target is `B`; in Airflow, switch the other DAGs off",
    ),
    _instead("config/mirror-maker.properties", "any `mm2.properties`; the README has one"),
    _instead("connect-standalone.sh", "`ferry run` with the connector's file"),
    _instead("config/connect-standalone.properties", "not needed: there is no worker"),
    _honoured("config/connect-mirror-source.properties", "a connector's file is read as a flow of its own"),
    _refused("PUT /connectors/<name>/config", "there is no REST interface of Connect: write the flow into `mm2.properties`"),
    _instead("kafka-mirror-maker.sh", "`ferry legacy`"),
    _honoured("--consumer.config", "of `ferry legacy`; `--consumer` too"),
    _honoured("--producer.config", "of `ferry legacy`; `--producer` too"),
    _honoured("--whitelist", "of `ferry legacy`; a Java regular expression"),
    _honoured("--message.handler", f"of `ferry legacy`, and `ferry.message.handler`: a {_PYTHON}; Java classes are refused"),
    _honoured("--message.handler.args", "of `ferry legacy`, and `ferry.message.handler.args`"),
    _instead(
        "--consumer.rebalance.listener",
        f"of `ferry legacy`, and `ferry.assignment.listener`: a {_PYTHON}; nothing is rebalanced, so it is told assignments",
    ),
    _instead(
        "--consumer.rebalance.listener.args",
        "`--rebalance.listener.args` of `ferry legacy` (its name in Kafka), and `ferry.assignment.listener.args`",
    ),
    _honoured(
        "--abort.on.send.failure", "of `ferry legacy`, and `ferry.abort.on.send.failure`; KIP-3's text also calls it `--abortOnSendFail`"
    ),
)

CONNECTORS = (
    _instead("MirrorSourceConnector", "the plan of a run: topics, partitions, configs, ACLs"),
    _instead("MirrorSourceTask", "the copy of a run"),
    _instead("MirrorSinkConnector", "the plan of a run; there is one kind of flow"),
    _instead("MirrorSinkTask", "the copy of a run: its offsets are in the transaction, as in KIP-656"),
    _instead("MirrorCheckpointConnector", "the syncs `checkpoints` and `groups`"),
    _instead("MirrorCheckpointTask", "the same"),
    _instead("MirrorHeartbeatConnector", "the sync `heartbeat`"),
    _instead("MirrorHeartbeatTask", "the same"),
    _instead("MirrorCommonConnector", "KIP-656's idea of shared code; nothing to configure"),
    _instead("MirrorMaker", "`ferry run`, and the DAGs"),
    _honoured("MirrorMakerConfig", "its properties, by its rules"),
    _honoured("MirrorConnectorConfig", "its properties, see below"),
    _honoured("MirrorSourceConfig", "its properties, see below"),
    _honoured("MirrorCheckpointConfig", "its properties, see below"),
    _honoured("MirrorHeartbeatConfig", "its properties, see below"),
    _idle("MirrorTaskConfig", "made by MM2 itself for its tasks"),
    _instead("MirrorClientConfig", "`ferry.client` takes a cluster of `mm2.properties`, with its whole login"),
)

PLUGINS = (
    _honoured(
        "ReplicationPolicy",
        f"`ferry.policy.naming.ReplicationPolicy`: a {_PYTHON}; a Java class of your own is refused: write it in Python",
    ),
    *(
        _honoured(f"ReplicationPolicy.{java}", f"`{python}`")
        for java, python in (
            ("formatRemoteTopic", "format_remote_topic"),
            ("topicSource", "topic_source"),
            ("upstreamTopic", "upstream_topic"),
            ("originalTopic", "original_topic"),
            ("heartbeatsTopic", "heartbeats_topic"),
            ("isHeartbeatsTopic", "is_heartbeats_topic"),
            ("offsetSyncsTopic", "offset_syncs_topic"),
            ("checkpointsTopic", "checkpoints_topic"),
            ("isCheckpointsTopic", "is_checkpoints_topic"),
            ("isMM2InternalTopic", "is_mm2_internal_topic"),
            ("isInternalTopic", "is_internal_topic"),
        )
    ),
    _honoured("DefaultReplicationPolicy", "by its Java name"),
    _honoured("IdentityReplicationPolicy", "by its Java name"),
    _honoured("LegacyReplicationPolicy", "KIP-382's name of what became IdentityReplicationPolicy: read as that"),
    _honoured("TopicFilter", f"`should_replicate_topic` of a {_PYTHON}"),
    _honoured("GroupFilter", f"`should_replicate_group` of a {_PYTHON}"),
    _honoured("ConfigPropertyFilter", f"`should_replicate_config_property` and `should_replicate_source_default` of a {_PYTHON}"),
    _honoured("DefaultTopicFilter", "by its Java name; the same Java regular expressions"),
    _honoured("DefaultGroupFilter", "by its Java name; the same Java regular expressions"),
    _honoured("DefaultConfigPropertyFilter", "by its Java name; the same Java regular expressions"),
    _refused(
        "ForwardingAdmin",
        "MM2's own is accepted and means nothing; your own is refused: `must be ForwardingAdmin (Ferry runs no other Java classes)`",
    ),
    _instead("MirrorMakerMessageHandler", f"a {_PYTHON}: `handle(record)`"),
    _instead("MirrorMakerMessageHandler.init", "the class is made with its args"),
    _instead("ConsumerRebalanceListener", f"an assignment listener, a {_PYTHON}"),
    _instead("ConsumerRebalanceListener.beforeReleasingPartitions", "`before_releasing`, behind the last commit"),
    _instead("ConsumerRebalanceListener.beforeStartingFetchers", "`before_starting`"),
    _idle("ByteArrayConverter", "keys and values are copied as bytes in any case"),
)

TOPICS = (
    _honoured("Heartbeat", "the same records; `ferry format heartbeats` shows them"),
    _honoured("Checkpoint", "the same records; `ferry format checkpoints` shows them"),
    _honoured("OffsetSync", "the same records; `ferry format offset-syncs` shows them"),
    _instead("HeartbeatMessageFormatter", "`ferry format heartbeats`; Kafka's own reads them too"),
    _instead("CheckpointMessageFormatter", "`ferry format checkpoints`; Kafka's own reads them too"),
    _honoured("heartbeats", "written on the target in every run, and copied on"),
    _honoured("<source>.checkpoints.internal", "written on the target"),
    _honoured("mm2-offset-syncs.<other>.internal", "on the target unless `offset-syncs.topic.location=source`"),
    _instead(
        "mm2-offsets.<source>.internal", "positions are group offsets and a ledger on the target; `ferry seed --from-mm2` reads MM2's"
    ),
    _idle("mm2-configs.<source>.internal", "nothing is configured through Kafka"),
    _idle("mm2-status.<source>.internal", "`ferry status`, and the reports of runs"),
    _honoured("__consumer_offsets (KIP-545)", "translated offsets of groups without members on the target"),
)

CLIENTS = (
    _honoured("MirrorClient", f"{_CLIENT}: `MirrorClient`; MM2's Java client works against Ferry's topics as well"),
    *(
        _honoured(f"MirrorClient.{java}", f"`MirrorClient.{python}`")
        for java, python in (
            ("close", "close"),
            ("replicationPolicy", "replication_policy"),
            ("replicationHops", "replication_hops"),
            ("heartbeatTopics", "heartbeat_topics"),
            ("checkpointTopics", "checkpoint_topics"),
            ("upstreamClusters", "upstream_clusters"),
            ("remoteTopics", "remote_topics"),
            ("remoteConsumerOffsets", "remote_consumer_offsets"),
        )
    ),
    _honoured("RemoteClusterUtils", f"{_CLIENT}, and `ferry client`"),
    *(
        _honoured(f"RemoteClusterUtils.{java}", f"`ferry client {command}`, `ferry.client.{command.replace('-', '_')}`")
        for java, command in (
            ("replicationHops", "replication-hops"),
            ("heartbeatTopics", "heartbeat-topics"),
            ("checkpointTopics", "checkpoint-topics"),
            ("upstreamClusters", "upstream-clusters"),
            ("translateOffsets", "translate-offsets"),
        )
    ),
)

METRICS = (
    _honoured("replication-latency-ms(-avg/-min/-max)", f"{_METRICS} `ferry.replication-latency-ms-avg`, `-min`, `-max`"),
    _honoured("record-age-ms(-avg/-min/-max)", f"{_METRICS} `ferry.record-age-ms-avg`, `-min`, `-max`"),
    _instead(
        "record-bytes(-avg/-min/-max)",
        f"{_METRICS} `ferry.record-bytes-avg`, with `ferry.byte-count` and `ferry.byte-rate` as Kafka has them; no `-min` and `-max`",
    ),
    _honoured("record-count", f"{_METRICS} `ferry.record-count`"),
    _honoured("checkpoint-latency-ms(-avg/-min/-max)", f"{_METRICS} `ferry.checkpoint-latency-ms`"),
    _instead(
        "kafka.mirror.connect:type=MirrorSourceConnect", "tags `source`, `target`, `topic`, `partition`; there is no JVM, so no MBean"
    ),
    _instead(
        "kafka.mirror.connect:type=MirrorCheckpointConnector",
        "tags `source`, `target`, `group`, `topic`, `partition`; there is no JVM, so no MBean",
    ),
)

CLIENT_SETTINGS = (
    _honoured("bootstrap.servers", "`A.bootstrap.servers`"),
    _honoured("security.protocol", "for a cluster, or for all"),
    _honoured("ssl.*", "by the Java names; a few that OpenSSL cannot take are refused"),
    _honoured("sasl.*", "by the Java names; Kerberos and Java classes of your own are refused"),
    _honoured("admin.*", "as `A.admin.x`; at the top level no effect, as in MM2"),
    _honoured("consumer.*", "as `A.consumer.x`; at the top level no effect, as in MM2"),
    _honoured("producer.*", "as `A.producer.x`; at the top level no effect, as in MM2"),
    _refused("remote.admin.*", "KIP-382's text: `is not a known property: write <cluster>.admin.x`"),
    _refused("cluster.<alias>.broker.list", "KIP-382's text: `is not a known property: write <alias>.bootstrap.servers`"),
    _refused("cluster.<alias>.x.y.z", "KIP-382's text: `is not a known property: write <alias>.x.y.z`"),
    _refused(
        "source.cluster.bootstrap.servers",
        "at the top level: write `<source>.bootstrap.servers`; honoured in a connector's file and behind `A->B.`",
    ),
    _refused(
        "target.cluster.bootstrap.servers",
        "at the top level: write `<target>.bootstrap.servers`; honoured in a connector's file and behind `A->B.`",
    ),
    _honoured("isolation.level", "always `read_committed`; with `exactly.once.support=required` it must be written, as in MM2"),
    _honoured("auto.offset.reset", "where a partition that was never copied begins; see `ferry.start`"),
    _idle("auto.commit.enabled", "KIP-3's safe setting: Ferry's readers join no group"),
    _idle("retries", "KIP-3's safe setting: bounded by time, and no batch is lost"),
    _idle("acks", "KIP-3's safe setting: always `all`"),
    _idle("block.on.buffer.full", "KIP-3's safe setting, of a producer of long ago"),
)

SECTIONS: Mapping[str, tuple[Name, ...]] = {
    "Modes": MODES,
    "Scripts and options": SCRIPTS,
    "Connectors, tasks and configs": CONNECTORS,
    "Policies, filters, handlers": PLUGINS,
    "Records and topics": TOPICS,
    "Clients": CLIENTS,
    "Metrics": METRICS,
    "Settings of clients": CLIENT_SETTINGS,
}
