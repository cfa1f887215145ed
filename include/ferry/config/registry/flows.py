"""MM2's connector properties: the settings of a flow (MirrorConnectorConfig, MirrorSourceConfig, MirrorCheckpointConfig,
MirrorHeartbeatConfig, the default filters, and the names inherited from Connect's ConnectorConfig and SourceConnectorConfig; Kafka 4.4).
"""

from functools import partial

from ferry.config.registry import kinds
from ferry.config.registry.property import Effect, Property, Scope

MM2 = "org.apache.kafka.connect.mirror."
TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"
CONFIG_PROPERTIES_EXCLUDE = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, message.timestamp.difference.max.ms, "
    "log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, message.timestamp.type, unclean.leader.election.enable, "
    "min.insync.replicas"
)

EVERY_RUN = "every run does this, and the flow's schedule says how often"
NO_CONNECT = "Ferry does not run on Kafka Connect"
RAW = "Ferry copies keys and values as bytes"
NO_TASK_STATE = "only MM2's own tasks read it"
NO_SKIP = "Ferry converts no records. For records that the target refuses, see ferry.abort.on.send.failure"
NO_TRANSFORMS = "Java classes of Connect; Ferry copies records unchanged: remove the key"
NEVER = "MM2 never read it"
SINCE_4 = "MM2 ignores it since Kafka 4.0"
COMPACTED = "the topic is compacted, as in MM2"


def _filter(name: str, default: str, meaning: str) -> Property:
    return Property(name, kinds.java_class(MM2 + default, own=True), MM2 + default, meaning)


def _refused(name: str, meaning: str, instead: str) -> Property:
    return Property(name, kinds.STRING, None, meaning, instead, effect=Effect.REFUSED)


def _older(name: str, successor: str, why: str) -> Property:
    return Property(name, kinds.STRING, None, f"older name of {successor}", why, effect=Effect.RENAMED, successor=successor)


_idle = partial(Property, effect=Effect.NO_EFFECT)


# fmt: off
# A row of these tables has one line, or a few when it is long.
SOURCE = (
    Property("enabled", kinds.BOOLEAN, "false", "whether Ferry runs the flow"),
    Property("topics", kinds.PATTERNS, ".*", "topics to copy: names and Java regular expressions"),
    Property("topics.exclude", kinds.PATTERNS, TOPICS_EXCLUDE, "topics that are not copied; wins over topics"),
    Property("replication.policy.class",
        # LegacyReplicationPolicy is KIP-382's name of the identity policy, in the two packages that it gives. The last two are from the
        # time before MM2 had one, and do the same (strimzi/mirror-maker-2-extensions, aws-samples/mirrormaker2-msk-migration).
        kinds.java_class(*(f"{MM2}{name}ReplicationPolicy" for name in ("Default", "Identity", "Legacy")),
            "org.apache.kafka.mirror.LegacyReplicationPolicy", "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
            "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", own=True),
        MM2 + "DefaultReplicationPolicy",
        "gives names to remote topics. LegacyReplicationPolicy, Strimzi's IdentityReplicationPolicy and Amazon's "
        "CustomMM2ReplicationPolicy are the same as IdentityReplicationPolicy"),
    Property("replication.policy.separator", kinds.SEPARATOR, ".", "text between the source's alias and the topic's name"),
    Property("replication.policy.internal.topic.separator.enabled", kinds.BOOLEAN, "true",
        "whether names of checkpoints and offset-syncs topics use the separator too. Without a separator in the file it has no effect, "
        "as in MM2"),
    Property("replication.factor", kinds.REPLICATION_FACTOR, "2", "replication factor of the remote topics that Ferry creates"),
    Property("config.properties.exclude", kinds.PATTERNS, CONFIG_PROPERTIES_EXCLUDE, "topic configs that are not synced"),
    Property("use.defaults.from", kinds.choice("target", "source"), "target",
        "whose defaults hold for topic configs that the source does not set", scope=Scope.FLOW_ONLY),
    Property("tasks.max", kinds.AT_LEAST_1, None,
        "number of Spark tasks of a run. If not set: the cores of `local[N]`, or on a Spark cluster the number of lanes (MM2: 1)"),
    Property("transaction.producer", kinds.BOOLEAN, "true",
        "true: exactly-once (KIP-656). false: at-least-once, [without transactions](how-it-copies.md#without-transactions) on the target"),
    Property("sync.topic.configs.enabled", kinds.BOOLEAN, "true", "whether topic configs are synced"),
    Property("sync.topic.configs.interval.seconds", kinds.LONG, "600", "shortest time between two syncs of topic configs"),
    Property("sync.topic.acls.enabled", kinds.BOOLEAN, "true", "whether ACLs of topics are synced"),
    Property("sync.topic.acls.interval.seconds", kinds.LONG, "600", "shortest time between two syncs of ACLs"),
    Property("refresh.topics.enabled", kinds.BOOLEAN, "true",
        "whether a run that follows looks for new topics and partitions. Other runs look once, at their beginning"),
    Property("refresh.topics.interval.seconds", kinds.LONG, "600", "how often a run that follows looks for them"),
    Property("heartbeats.replication.enabled", kinds.BOOLEAN, "true",
        "whether heartbeats topics are copied even if the filter excludes them"),
    Property("emit.offset-syncs.enabled", kinds.BOOLEAN, "true", "whether Ferry writes MM2's offset syncs"),
    Property("offset-syncs.topic.location", kinds.choice("source", "target"), "target",
        "the cluster that holds the offset-syncs topic (MM2: source, which needs write access there)"),
    Property("offset-syncs.topic.replication.factor", kinds.REPLICATION_FACTOR, "3", "replication factor of the offset-syncs topic"),
    Property("offset.lag.max", kinds.LONG_AT_LEAST_0, "100", "distance between two offset syncs, in records"),
)

CHECKPOINTS = (
    Property("groups", kinds.PATTERNS, ".*", "consumer groups to checkpoint: names and Java regular expressions"),
    Property("groups.exclude", kinds.PATTERNS, GROUPS_EXCLUDE, "groups that are left out; wins over groups"),
    Property("emit.checkpoints.enabled", kinds.BOOLEAN, "true", "whether Ferry writes checkpoints"),
    Property("emit.checkpoints.interval.seconds", kinds.LONG, "60", "shortest time between two writes of checkpoints"),
    Property("checkpoints.topic.replication.factor", kinds.REPLICATION_FACTOR, "3", "replication factor of the checkpoints topic"),
    Property("sync.group.offsets.enabled", kinds.BOOLEAN, "false",
        "whether Ferry writes translated offsets to the target's groups (KIP-545)"),
    Property("sync.group.offsets.interval.seconds", kinds.LONG, "60", "shortest time between two syncs of group offsets"),
)

HEARTBEATS = (
    Property("emit.heartbeats.enabled", kinds.BOOLEAN, "true", "whether Ferry writes heartbeats"),
    Property("emit.heartbeats.interval.seconds", kinds.LONG, "1", "shortest time between two heartbeats. A run writes at most one"),
    Property("heartbeats.topic.replication.factor", kinds.REPLICATION_FACTOR, "3", "replication factor of the heartbeats topic"),
)

FILTERS = (
    _filter("topic.filter.class", "DefaultTopicFilter", "decides which topics are copied"),
    _filter("group.filter.class", "DefaultGroupFilter", "decides which groups are checkpointed"),
    _filter("config.property.filter.class", "DefaultConfigPropertyFilter", "decides which topic configs are synced"),
    Property("forwarding.admin.class", kinds.java_class("org.apache.kafka.clients.admin.ForwardingAdmin"),
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "the Java class of MM2's admin client. Ferry accepts only MM2's own, and does not run it"),
)

WITHOUT_EFFECT = (
    _idle("refresh.groups.enabled", kinds.BOOLEAN, "true", "whether MM2 lists groups again", EVERY_RUN),
    _idle("refresh.groups.interval.seconds", kinds.LONG, "600", "how often MM2 lists groups", EVERY_RUN),
    _idle("admin.timeout.ms", kinds.LONG, "60000", "time limit of MM2's admin work", "Ferry sets the time limits of its requests"),
    _idle("consumer.poll.timeout.ms", kinds.LONG, "1000", "poll time-out of MM2's consumers", "a run reads up to fixed offsets"),
    _idle("metric.reporters", kinds.LIST, "", "Java metric reporters", "metrics go through Airflow"),
    _idle("metric.names.formats", kinds.list_of("legacy", "new"), "legacy", "names of MM2's JMX metrics", "metrics go through Airflow"),
    _idle("auto.include.jmx.reporter", kinds.BOOLEAN, "true", "whether MM2 offers JMX metrics", "metrics go through Airflow"),
    _idle("task.index", kinds.INT, None, "internal to MM2", NO_TASK_STATE),
    _idle("task.assigned.partitions", kinds.STRING, None, "internal to MM2", NO_TASK_STATE),
    _idle("task.assigned.groups", kinds.STRING, None, "internal to MM2", NO_TASK_STATE),
)

CONNECT = (
    _idle("name", kinds.STRING, None, "the connector's name", NO_CONNECT),
    _idle("connector.class", kinds.CLASS, None,
        "the connector's class. In a connector's file it says which part of a flow Ferry runs", NO_CONNECT),
    _idle("connector.plugin.version", kinds.STRING, None, "the connector's version", NO_CONNECT),
    _idle("tasks.max.enforce", kinds.BOOLEAN, "true", "whether more tasks than tasks.max are an error", NO_CONNECT),
    _idle("key.converter", kinds.CLASS, None, "how keys are converted", RAW),
    _idle("key.converter.plugin.version", kinds.STRING, None, "version of the key converter", RAW),
    _idle("value.converter", kinds.CLASS, None, "how values are converted", RAW),
    _idle("value.converter.plugin.version", kinds.STRING, None, "version of the value converter", RAW),
    _idle("header.converter", kinds.CLASS, None, "how headers are converted", RAW),
    _idle("header.converter.plugin.version", kinds.STRING, None, "version of the header converter", RAW),
    _idle("config.action.reload", kinds.choice("restart", "none", ignore_case=True), "restart", "what happens when a secret changes",
        "each run reads secrets again"),
    _idle("errors.retry.timeout", kinds.LONG, "0", "how long Connect retries a record", "Ferry does not process records one by one"),
    _idle("errors.retry.delay.max.ms", kinds.LONG, "60000", "pause between those retries", "Ferry does not process records one by one"),
    _idle("errors.tolerance", kinds.choice("none", "all", ignore_case=True), "none", "whether Connect skips bad records", NO_SKIP),
    _idle("errors.log.enable", kinds.BOOLEAN, "false", "whether Connect logs bad records", NO_SKIP),
    _idle("errors.log.include.messages", kinds.BOOLEAN, "false", "whether Connect logs the content of bad records", NO_SKIP),
    _idle("exactly.once.support", kinds.choice("requested", "required", ignore_case=True), "requested",
        "whether the connector must copy exactly once", "Ferry copies exactly once unless transaction.producer=false", Scope.FLOW_ONLY),
    _idle("transaction.boundary", kinds.choice("poll", "interval", "connector", ignore_case=True), "poll",
        "when Connect ends a transaction", "see ferry.transaction.mb and ferry.transaction.seconds", Scope.FLOW_ONLY),
    _idle("transaction.boundary.interval.ms", kinds.LONG, None, "length of the interval", "see ferry.transaction.seconds", Scope.FLOW_ONLY),
    Property("offsets.storage.topic", kinds.STRING, None, "topic that holds the connector's offsets; `ferry seed --from-mm2` reads it",
        scope=Scope.FLOW_ONLY),
    _refused("transforms", "single message transforms", NO_TRANSFORMS),
    _refused("predicates", "conditions of single message transforms", NO_TRANSFORMS),
    Property("source.cluster.alias", kinds.STRING, None,
        "the source's alias, as `clusters` gives it; an empty one has no effect, another one is refused"),
    Property("target.cluster.alias", kinds.STRING, None, "the target's alias, as `clusters` gives it; another one is refused"),
)

REMOVED = (
    _refused("topics.whitelist", "looks like an older name of topics", f"{NEVER}: write topics"),
    _older("topics.blacklist", "topics.exclude", SINCE_4),
    _refused("groups.whitelist", "looks like an older name of groups", f"{NEVER}: write groups"),
    _older("groups.blacklist", "groups.exclude", SINCE_4),
    _older("config.properties.blacklist", "config.properties.exclude", SINCE_4),
    _idle("use.incremental.alter.configs", kinds.STRING, None, "which request changes configs",
        "Kafka 4.0 removed it. Ferry always changes single entries (IncrementalAlterConfigs)"),
    _idle("add.source.alias.to.metrics", kinds.STRING, None, "labels of MM2's metrics", "Kafka 4.0 removed it"),
)

# Names from the texts of KIP-382 and KIP-656 that no release of MM2 reads: MM2 ignores them without a warning. A person who writes them
# expects an effect. So Ferry reads them as their later names, or refuses them.
PROPOSED = (
    _refused("rename.topics", "proposed in KIP-382",
        "MM2 never read it. Instead of false, write replication.policy.class=IdentityReplicationPolicy; instead of true, remove the key. "
        "In a connector's file Ferry reads false as that policy"),
    _older("sync.topic.configs", "sync.topic.configs.enabled", NEVER),
    _older("sync.topic.acls", "sync.topic.acls.enabled", NEVER),
    _older("emit.heartbeats", "emit.heartbeats.enabled", NEVER),
    _older("emit.checkpoints", "emit.checkpoints.enabled", NEVER),
    _refused("source.bootstrap.servers", "proposed in KIP-382",
        "write <source>.bootstrap.servers (in a connector's file source.cluster.bootstrap.servers)"),
    _refused("target.bootstrap.servers", "proposed in KIP-382",
        "write <target>.bootstrap.servers (in a connector's file target.cluster.bootstrap.servers)"),
    _idle("refresh.topics", kinds.STRING, None, "proposed in KIP-382", EVERY_RUN),
    _idle("refresh.groups", kinds.STRING, None, "proposed in KIP-382", EVERY_RUN),
    _idle("readahead.queue.capacity", kinds.STRING, None, "proposed in KIP-382", "Ferry fetches batches ahead as far as memory allows"),
    _idle("heartbeats.topic.retention.ms", kinds.STRING, None, "proposed in KIP-382", COMPACTED),
    _idle("checkpoints.topic.retention.ms", kinds.STRING, None, "proposed in KIP-382", COMPACTED),
    _idle("offset.syncs.topic.retention.ms", kinds.STRING, None, "proposed in KIP-382", COMPACTED),
    _idle("key.converter.class", kinds.STRING, None, "proposed in KIP-382", RAW),
    _idle("value.converter.class", kinds.STRING, None, "proposed in KIP-382", RAW),
    _idle("connector.type", kinds.choice("source", "sink"), "source", "proposed in KIP-656: which of two connectors copies",
        "Ferry does the work of both and keeps positions on the target. For the guarantee, see transaction.producer. For the sink's "
        "group on the source, see ferry.publish.source.group"),
)

# fmt: on
FLOWS: tuple[Property, ...] = SOURCE + CHECKPOINTS + HEARTBEATS + FILTERS + WITHOUT_EFFECT + CONNECT + REMOVED + PROPOSED
