"""What Ferry has for every class, method, metric, topic, mode and option that MM2's KIPs (382, 545, 656, 3) name, except properties.

The rows of properties come from the registry; `mirrormaker_page` puts both into docs/from-mirrormaker.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What Ferry does with a name."""

    HONOURED = "honoured"
    EQUIVALENT = "equivalent"  # Ferry has something else for the same purpose
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Name:
    """One row. `what`: what to use instead, why Ferry refuses it, or the message that Ferry gives; Markdown, without links to files."""

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
_METRICS = "through Airflow's metrics or from `ferry run`, as"

# fmt: off
# A row of these tables has one line, or two when it is long.
MODES = (
    _honoured("dedicated MirrorMaker cluster", "the same `mm2.properties`; Airflow or `ferry run` replaces its processes"),
    _instead("connector in a distributed Connect cluster",
        "a flow of `mm2.properties`; `ferry import` makes it of the connectors' REST documents"),
    _instead("standalone Connect worker",
        "`ferry run` with the connector's file replaces `connect-standalone.sh`; `ferry import` joins the files of several connectors"),
    _instead("legacy mode", "`ferry legacy`, with the options of `kafka-mirror-maker.sh`"),
    _instead("legacy configuration of MM2", "`replication.policy.class=LegacyReplicationPolicy`, and every `*.enabled=false`"),
    _honoured("active/active", "with the default policy. Ferry also supports the same names on both sides, which MM2 does not"),
    _honoured("aggregation",
        "one flow from each source. With the identity policy Ferry refuses a second flow into the same remote topic (`AlreadyClaimed`)"),
    _honoured("cycle detection", "the rules of MM2 in Kafka 4.4, over any number of clusters"),
    _honoured("exactly-once, transaction.producer (KIP-656)", "on by default"),
    _honoured("at-least-once (KIP-656)", "`transaction.producer=false`"),
    _instead("sink mode, connector.type (KIP-656)",
        "Ferry always works this way: it commits offsets on the target, in the transaction of the records"),
    _instead("\"fake\" consumer group on the target (KIP-656)",
        "`__ferry-<source>`. With `ferry.publish.source.group` Ferry also updates a group on the source"),
    _honoured("finer control (KIP-3)",
        "a message handler may change, drop and multiply records, and [choose their topic and partition]"
        "(handlers.md#choose-topic-and-partition)"),
    _honoured("no data loss (KIP-3)",
        "the position moves past a record only after the target has acknowledged it; Ferry always uses `acks=all`. With "
        "`ferry.abort.on.send.failure=false` it also moves past records that the target refuses: Ferry reports them, exit code 4"),
)

SCRIPTS = (
    _instead("connect-mirror-maker.sh", "`ferry run mm2.properties --flow 'A->B'` for each flow and run, or the DAGs"),
    _instead("connect-mirror-maker.sh --clusters",
        "instead of `--clusters B`, call `ferry run` for every flow whose target is `B`; in Airflow, pause the other DAGs"),
    _instead("config/mirror-maker.properties", "any `mm2.properties`; the README has one"),
    _instead("connect-standalone.sh", "`ferry run` with the connector's file"),
    _instead("config/connect-standalone.properties", "not needed: Ferry has no worker"),
    _honoured("config/connect-mirror-source.properties", "Ferry reads a connector's file as a flow of its own"),
    _refused("PUT /connectors/<name>/config",
        "Ferry has no REST interface of Connect: `ferry import` makes an `mm2.properties` of the document"),
    _instead("kafka-mirror-maker.sh", "`ferry legacy`"),
    _honoured("--consumer.config", "an option of `ferry legacy`, like `--consumer`"),
    _honoured("--producer.config", "an option of `ferry legacy`, like `--producer`"),
    _honoured("--whitelist", "an option of `ferry legacy`; a Java regular expression"),
    _honoured("--message.handler", f"an option of `ferry legacy`, and `ferry.message.handler`: a {_PYTHON}. Ferry refuses Java classes"),
    _honoured("--message.handler.args", "an option of `ferry legacy`, and `ferry.message.handler.args`"),
    _instead("--consumer.rebalance.listener",
        f"an option of `ferry legacy`, and `ferry.assignment.listener`: a {_PYTHON}. Ferry has no rebalances; it calls the class before "
        "and after it copies partitions"),
    _instead("--consumer.rebalance.listener.args",
        "`--rebalance.listener.args` of `ferry legacy` (its name in Kafka), and `ferry.assignment.listener.args`"),
    _honoured("--abort.on.send.failure",
        "an option of `ferry legacy`, and `ferry.abort.on.send.failure`. The text of KIP-3 also calls it `--abortOnSendFail`"),
)

CONNECTORS = (
    _instead("MirrorSourceConnector", "the plan of a run: topics, partitions, configs, ACLs"),
    _instead("MirrorSourceTask", "the copy of a run"),
    _instead("MirrorSinkConnector", "the plan of a run; Ferry has only one kind of flow"),
    _instead("MirrorSinkTask", "the copy of a run, with the offsets in the transaction as in KIP-656"),
    _instead("MirrorCheckpointConnector", "the syncs `checkpoints` and `groups`"),
    _instead("MirrorCheckpointTask", "the same"),
    _instead("MirrorHeartbeatConnector", "the sync `heartbeat`"),
    _instead("MirrorHeartbeatTask", "the same"),
    _instead("MirrorCommonConnector", "code that the connectors of KIP-656 share; nothing to configure"),
    _instead("MirrorMaker", "`ferry run`, and the DAGs"),
    _honoured("MirrorMakerConfig", "its properties and its rules"),
    _honoured("MirrorConnectorConfig", "its properties, see below"),
    _honoured("MirrorSourceConfig", "its properties, see below"),
    _honoured("MirrorCheckpointConfig", "its properties, see below"),
    _honoured("MirrorHeartbeatConfig", "its properties, see below"),
    _idle("MirrorTaskConfig", "MM2 makes it for its own tasks"),
    _instead("MirrorClientConfig", "`ferry.client` takes a cluster of `mm2.properties`, with its login"),
)

PLUGINS = (
    _honoured("ReplicationPolicy",
        f"`ferry.policy.naming.ReplicationPolicy`: a {_PYTHON}. Ferry refuses a Java class of your own: write it in Python"),
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
    _honoured("LegacyReplicationPolicy",
        "KIP-382's name for the policy that became IdentityReplicationPolicy; Ferry reads it as that policy"),
    _honoured("TopicFilter", f"`should_replicate_topic` of a {_PYTHON}"),
    _honoured("GroupFilter", f"`should_replicate_group` of a {_PYTHON}"),
    _honoured("ConfigPropertyFilter", f"`should_replicate_config_property` and `should_replicate_source_default` of a {_PYTHON}"),
    _honoured("DefaultTopicFilter", "by its Java name; the same Java regular expressions"),
    _honoured("DefaultGroupFilter", "by its Java name; the same Java regular expressions"),
    _honoured("DefaultConfigPropertyFilter", "by its Java name; the same Java regular expressions"),
    _refused("ForwardingAdmin",
        "Ferry accepts MM2's own class, without effect, and refuses yours: `must be ForwardingAdmin (Ferry runs no other Java classes)`"),
    _instead("MirrorMakerMessageHandler", f"a {_PYTHON}: `handle(record)`"),
    _instead("MirrorMakerMessageHandler.init", "the constructor gets the args"),
    _instead("ConsumerRebalanceListener", f"an assignment listener, a {_PYTHON}"),
    _instead("ConsumerRebalanceListener.beforeReleasingPartitions", "`before_releasing`, after the last commit"),
    _instead("ConsumerRebalanceListener.beforeStartingFetchers", "`before_starting`"),
    _idle("ByteArrayConverter", "Ferry always copies keys and values as bytes"),
)

TOPICS = (
    _honoured("Heartbeat", "the same records; `ferry format heartbeats` shows them"),
    _honoured("Checkpoint", "the same records; `ferry format checkpoints` shows them"),
    _honoured("OffsetSync", "the same records; `ferry format offset-syncs` shows them"),
    _instead("HeartbeatMessageFormatter", "`ferry format heartbeats`. Kafka's own formatter also reads them"),
    _instead("CheckpointMessageFormatter", "`ferry format checkpoints`. Kafka's own formatter also reads them"),
    _honoured("heartbeats", "runs write them on the target; flows copy them"),
    _honoured("<source>.checkpoints.internal", "Ferry writes it on the target"),
    _honoured("mm2-offset-syncs.<other>.internal", "on the target unless `offset-syncs.topic.location=source`"),
    _instead("mm2-offsets.<source>.internal",
        "Ferry keeps positions as group offsets and in a ledger on the target; `ferry seed --from-mm2` reads MM2's topic"),
    _idle("mm2-configs.<source>.internal", "Ferry does not keep its configuration in Kafka"),
    _idle("mm2-status.<source>.internal", "`ferry status` and the reports of runs show the status"),
    _honoured("__consumer_offsets (KIP-545)", "Ferry writes translated offsets of groups without members on the target"),
)

CLIENTS = (
    _honoured("MirrorClient", f"{_CLIENT}: `MirrorClient`; MM2's Java client also works with Ferry's topics"),
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
    _honoured("replication-latency-ms(-avg/-min/-max)", f"{_METRICS} `ferry.replication-latency-ms`, `-avg`, `-min`, `-max`"),
    _honoured("record-age-ms(-avg/-min/-max)", f"{_METRICS} `ferry.record-age-ms`, `-avg`, `-min`, `-max`"),
    _instead("record-bytes(-avg/-min/-max)",
        f"{_METRICS} `ferry.record-bytes-avg`, and Kafka's `ferry.byte-count` and `ferry.byte-rate`; no `-min` and `-max`, which no "
        "release of MM2 has either"),
    _honoured("record-count", f"{_METRICS} `ferry.record-count`, and Kafka's `ferry.record-rate`"),
    _honoured("checkpoint-latency-ms(-avg/-min/-max)", f"{_METRICS} `ferry.checkpoint-latency-ms`, `-avg`, `-min`, `-max`"),
    _instead("kafka.mirror.connect:type=MirrorSourceConnect",
        "tags `source`, `target`, `topic`, `partition`; Ferry has no JVM and no MBean"),
    _instead("kafka.mirror.connect:type=MirrorCheckpointConnector",
        "tags `source`, `target`, `group`, `topic`, `partition`; Ferry has no JVM and no MBean"),
)

CLIENT_SETTINGS = (
    _honoured("bootstrap.servers", "`A.bootstrap.servers`"),
    _honoured("security.protocol", "for one cluster, or for all"),
    _honoured("ssl.*", "with the Java names. Ferry refuses a few that OpenSSL does not have"),
    _honoured("sasl.*", "with the Java names. Ferry refuses Kerberos without a keytab, and Java classes of your own"),
    _honoured("admin.*", "as `A.admin.x`; without effect at the top level, as in MM2"),
    _honoured("consumer.*", "as `A.consumer.x`; without effect at the top level, as in MM2"),
    _honoured("producer.*", "as `A.producer.x`; without effect at the top level, as in MM2"),
    _refused("remote.admin.*", "from the text of KIP-382. Message: `is not a known property: write <cluster>.admin.x`"),
    _refused("cluster.<alias>.broker.list",
        "from the text of KIP-382. Message: `is not a known property: write <alias>.bootstrap.servers`"),
    _refused("cluster.<alias>.x.y.z", "from the text of KIP-382. Message: `is not a known property: write <alias>.x.y.z`"),
    _refused("source.cluster.bootstrap.servers",
        "at the top level: write `<source>.bootstrap.servers`; Ferry honours it in a connector's file and after `A->B.`"),
    _refused("target.cluster.bootstrap.servers",
        "at the top level: write `<target>.bootstrap.servers`; Ferry honours it in a connector's file and after `A->B.`"),
    _honoured("isolation.level", "always `read_committed`. With `exactly.once.support=required` the file must set it, as in MM2"),
    _honoured("auto.offset.reset", "where the flow's first run begins; see `ferry.start`"),
    _idle("auto.commit.enabled", "a safe setting of KIP-3; Ferry's readers join no group"),
    _idle("retries", "a safe setting of KIP-3; Ferry limits retries by time and loses no batch"),
    _idle("acks", "a safe setting of KIP-3; Ferry always uses `all`"),
    _idle("block.on.buffer.full", "a safe setting of KIP-3 for a producer that no longer exists"),
)

# fmt: on
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
