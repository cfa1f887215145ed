"""One enabled flow with everything that its runs need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ferry.config.acls import AclSettings, read_acls
from ferry.config.alerts import AlertSettings, read_alerts
from ferry.config.cluster import Cluster
from ferry.config.combinations import Combinations
from ferry.config.handling import HandlingSettings, read_handling
from ferry.config.keys import is_own_key
from ferry.config.mirroring import PROPERTIES as MIRRORING_PROPERTIES
from ferry.config.mirroring import MirroringSettings, read_mirroring
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.registry import FLOW_PROPERTIES, Effect
from ferry.config.replicas import CHECKPOINTS, HEARTBEATS, OFFSET_SYNCS, OWN_TOPICS, REMOTE_TOPICS, REPLICA_KEYS, WantedReplicas
from ferry.config.sources import ClientRole, Pair, Setting, Sources
from ferry.errors import ConfigError
from ferry.policy.custom_classes import is_custom
from ferry.policy.custom_filters import CustomConfigPropertyFilter, CustomGroupFilter, CustomTopicFilter
from ferry.policy.default_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from ferry.policy.filters import ConfigPropertyRule, GroupRule, TopicRule
from ferry.policy.naming import ReplicationPolicy, ledger_topic, position_group, replication_policy, runs_topic, state_topic
from ferry.policy.selection import Selection, TopicRules

MEBIBYTE = 1 << 20
MEGABYTE = 1_000_000
_ENABLED = "enabled"
_HEARTBEATS = "emit.heartbeats.enabled"
_REPLICATION_CLASS = "replication.policy.class"

# Properties that have a field of their own in Flow; all others that MM2 knows are in `settings`.
_FIELDS = frozenset(
    {
        _ENABLED,
        "topics",
        "topics.exclude",
        _REPLICATION_CLASS,
        "replication.policy.separator",
        "replication.policy.internal.topic.separator.enabled",
        "replication.factor",
        "config.properties.exclude",
        "use.defaults.from",
        "tasks.max",
        "transaction.producer",
    }
) | frozenset(MIRRORING_PROPERTIES.values())


@dataclass(frozen=True)
class Flow:
    """A flow `A->B`. Sizes in bytes, times in seconds; `start` is where a partition that was never copied begins (a time is aware).

    `copies` False: the flow is only what stands around the records (a connector's file). `tasks_max` None: it is not set.
    Replication factors may be -1, the broker's default; `replicas_given` are the keys of those that the file sets.
    `reverse_heartbeat`: whether MM2 would write heartbeats of the other direction,
    which is no flow of its own, to the source: because nobody switched them off (`default`), or because the file asks for them by the
    pair's own key (`asked`). `settings` are the flow's other MM2 properties by name, defaults included, as texts. `class_properties` are
    what policies and filters of a user's own are configured with.
    """

    name: str
    source: Cluster
    target: Cluster
    topics: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    replication_policy_class: str
    separator: str
    internal_separator_enabled: bool
    replication_factor: int
    config_properties_exclude: tuple[str, ...]
    use_defaults_from: str
    tasks_max: int | None = None
    copies: bool = True
    exactly_once: bool = True
    start: Literal["earliest", "latest"] | datetime = "earliest"
    lanes: int | None = None
    on_recreate: Literal["fail", "restart"] = "fail"
    on_target_recreate: Literal["fail", "restart"] = "fail"
    on_unexplained: Literal["fail", "local"] = "fail"
    on_unclear: Literal["fail", "local"] = "fail"
    schedule: str | None = None
    spark_connection: str = "spark_default"
    transaction_bytes: int = 64 * MEBIBYTE
    transaction_seconds: int = 10
    open_transaction_warn_ms: int = 900_000
    memory_bytes: int = 512 * MEBIBYTE
    max_bytes_per_second: float | None = None
    ledger_partitions: int = 5
    internal_topics_replication_factor: int = 3
    mirroring: MirroringSettings = field(default_factory=MirroringSettings)
    acls: AclSettings = field(default_factory=AclSettings)
    reverse_heartbeat: Literal["off", "default", "asked"] = "off"
    handling: HandlingSettings = field(default_factory=HandlingSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    replicas_given: frozenset[str] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    class_properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def policy(self) -> ReplicationPolicy:
        """How remote topics are named. ConfigError for a class that Ferry does not know, or a custom one that cannot be made."""
        try:
            return replication_policy(
                self.replication_policy_class,
                self.source.alias,
                self.separator,
                internal_separator=self.internal_separator_enabled,
                properties=self.class_properties,
            )
        except ConfigError as problem:
            raise ConfigError(f"flow {self.name}: {problem}") from None

    @property
    def topic_filter(self) -> TopicRule:
        """Which topics are copied. ConfigError for a custom class that cannot be made."""
        custom = self.mirroring.topic_filter_class
        return (
            CustomTopicFilter(custom, self.class_properties) if is_custom(custom) else DefaultTopicFilter(self.topics, self.topics_exclude)
        )

    @property
    def group_filter(self) -> GroupRule:
        """Which groups are synced. ConfigError as of `topic_filter`."""
        custom, sync = self.mirroring.group_filter_class, self.mirroring
        if is_custom(custom):
            return CustomGroupFilter(custom, self.class_properties)
        return DefaultGroupFilter(sync.groups, sync.groups_exclude)

    @property
    def config_property_filter(self) -> ConfigPropertyRule:
        """Which topic configs are synced. ConfigError as of `topic_filter`."""
        custom = self.mirroring.config_property_filter_class
        if is_custom(custom):
            return CustomConfigPropertyFilter(custom, self.class_properties)
        return DefaultConfigPropertyFilter(self.config_properties_exclude, self.use_defaults_from)

    @property
    def topic_rules(self) -> TopicRules:
        """What decides about each topic of the source."""
        return TopicRules(
            self.source.alias,
            self.target.alias,
            self.policy,
            self.topic_filter,
            self.mirroring.heartbeats_replication_enabled,
            self.separator,
            self.replication_policy_class,
        )

    def select_topics(self, names: Iterable[str]) -> Selection:
        """Which of these topics of the source are copied, and to where. ConfigError as of `TopicRules.select`."""
        return self.topic_rules.select(names)

    @property
    def ledger_topic(self) -> str:
        """The topic on the target that says what was copied."""
        return ledger_topic(self.source.alias)

    @property
    def state_topic(self) -> str:
        """The topic on the target that holds heads, claims and the flow record."""
        return state_topic(self.source.alias)

    @property
    def runs_topic(self) -> str:
        """The topic on the target that holds run reports."""
        return runs_topic(self.source.alias)

    @property
    def position_group(self) -> str:
        """The group on the target that holds the flow's positions (KIP-656)."""
        return position_group(self.source.alias)

    def wanted_replicas(self, key: str) -> WantedReplicas:
        """What one of REPLICA_KEYS says."""
        factors = {
            REMOTE_TOPICS: self.replication_factor,
            OWN_TOPICS: self.internal_topics_replication_factor,
            HEARTBEATS: self.mirroring.heartbeats_topic_replication_factor,
            CHECKPOINTS: self.mirroring.checkpoints_topic_replication_factor,
            OFFSET_SYNCS: self.mirroring.offset_syncs_topic_replication_factor,
        }
        return WantedReplicas(key, factors[key], key in self.replicas_given)


@dataclass(frozen=True)
class FlowReader:
    """Reads the properties of one pair of clusters. Values that are not of their kind were reported before: they read as the default."""

    sources: Sources
    pair: Pair
    problems: Problems

    def value(self, name: str) -> Any:
        """The effective value by its kind; None when there is none and no default."""
        known = FLOW_PROPERTIES[name]
        entry = self.sources.of_flow(self.pair, name)
        for text in (entry.value if entry else None, known.default):
            if text is not None:
                try:
                    return known.kind.parse(text)
                except ValueError:
                    continue
        return None

    @property
    def enabled(self) -> bool:
        """Whether MM2 would copy: a herder is started for the pair, and its connectors are enabled.

        MirrorMakerConfig.clusterPairs reads two flags of the pair by Boolean.parseBoolean, which takes `true ` (trailing blank) for
        false, but the pair also gets its connectors because heartbeats are on by default, and they read `enabled` trimmed.
        """
        own = self.sources.entries.get(f"{self.pair.name}.{_ENABLED}")
        heartbeats = self.sources.of_flow(self.pair, _HEARTBEATS)
        started = (own is not None and _parse_boolean(own.value)) or heartbeats is None or _parse_boolean(heartbeats.value)
        return started and bool(self.value(_ENABLED))

    def read(self, source: Cluster, target: Cluster) -> Flow:
        """The flow; problems that concern several properties at once are reported."""
        separator_given = self.sources.of_flow(self.pair, "replication.policy.separator") is not None
        Combinations(self.value, self._entry, source.of_role(ClientRole.CONSUMER), self.problems).check()
        flow = Flow(
            name=self.pair.name,
            source=source,
            target=target,
            topics=self.value("topics"),
            topics_exclude=self.value("topics.exclude"),
            replication_policy_class=self._policy_class(),
            separator=self.value("replication.policy.separator"),
            # DefaultReplicationPolicy.configure looks at this flag only where a separator is given.
            internal_separator_enabled=not separator_given or self.value("replication.policy.internal.topic.separator.enabled"),
            replication_factor=self.value("replication.factor"),
            config_properties_exclude=self.value("config.properties.exclude"),
            use_defaults_from=self.value("use.defaults.from"),
            tasks_max=self.value("tasks.max"),
            exactly_once=self.value("transaction.producer"),
            start=self._start(source),
            lanes=self.value("ferry.lanes"),
            on_recreate=self.value("ferry.on.recreate"),
            on_target_recreate=self.value("ferry.on.target.recreate"),
            on_unexplained=self.value("ferry.on.unexplained"),
            on_unclear=self.value("ferry.on.unclear"),
            schedule=self.value("ferry.schedule"),
            spark_connection=self.value("ferry.spark.connection"),
            transaction_bytes=self.value("ferry.transaction.mb") * MEBIBYTE,
            transaction_seconds=self.value("ferry.transaction.seconds"),
            open_transaction_warn_ms=self.value("ferry.open.transaction.warn.ms"),
            memory_bytes=self.value("ferry.memory.mb") * MEBIBYTE,
            max_bytes_per_second=self.value("ferry.max.rate.mb") * MEGABYTE or None,
            ledger_partitions=self.value("ferry.ledger.partitions"),
            internal_topics_replication_factor=self.value("ferry.internal.topics.replication.factor"),
            mirroring=read_mirroring(self.value),
            acls=read_acls(self.value),
            reverse_heartbeat=self._reverse_heartbeat(),
            handling=read_handling(self.value, self._entry, self.problems),
            alerts=read_alerts(self.value, self._entry, self.problems),
            replicas_given=frozenset(key for key in REPLICA_KEYS if self._entry(key) is not None),
            settings=self._settings(),
            class_properties=self._class_properties(),
        )
        self._check_classes(flow)
        return flow

    def _entry(self, name: str) -> Entry | None:
        return self.sources.of_flow(self.pair, name)

    def _reverse_heartbeat(self) -> Literal["off", "default", "asked"]:
        """MirrorMakerConfig.clusterPairs starts a heartbeat connector for every pair that does not switch it off."""
        reverse = Pair(self.pair.target, self.pair.source)
        entry = self.sources.of_flow(reverse, _HEARTBEATS)
        if FlowReader(self.sources, reverse, self.problems).enabled or (entry is not None and not _parse_boolean(entry.value)):
            return "off"
        return "asked" if entry is not None and entry.key.startswith(reverse.name) else "default"

    def _policy_class(self) -> str:
        name = str(self.value(_REPLICATION_CLASS))
        if is_custom(name):
            return name
        # The kind gives the simple name; Java's full name is the one that MM2 and its clients use. MM2 never had KIP-382's legacy policy
        # under that name: it became the identity policy.
        simple = name.rpartition(".")[2].replace("LegacyReplicationPolicy", "IdentityReplicationPolicy")
        return f"org.apache.kafka.connect.mirror.{simple}"

    def _class_properties(self) -> dict[str, str]:
        """What MM2 configures its plug-ins with: the flow's properties, the aliases, and what only the plug-ins know."""
        result = {"source.cluster.alias": self.pair.source, "target.cluster.alias": self.pair.target}
        for name, known in FLOW_PROPERTIES.items():
            entry = self.sources.of_flow(self.pair, name)
            text = entry.value.strip() if entry else known.default
            if text is not None and known.effect is not Effect.REFUSED:
                result[name] = text
        flow = f"{self.pair.name}."
        for key in sorted(self.sources.entries, key=lambda key: key.startswith(flow)):  # the flow's own win
            name = key.removeprefix(flow)
            if is_own_key(name, top_level=key == name):
                result[name] = self.sources.entries[key].value.strip()
        return result

    def _check_classes(self, flow: Flow) -> None:
        """Classes of a user's own are made and asked once, so that a bad one is told when the file is read."""
        for key, ask in _CLASS_CHECKS.items():
            entry = self.sources.of_flow(self.pair, key)
            if entry is not None and is_custom(str(self.value(key))):
                try:
                    ask(flow)
                except ConfigError as problem:
                    self.problems.add(str(problem), key=entry.key, line=entry.line)

    def _start(self, source: Cluster) -> Literal["earliest", "latest"] | datetime:
        own: Literal["earliest", "latest"] | datetime | None = self.value("ferry.start")
        if own is not None:
            return own
        setting = next((setting for setting in source.of_role(ClientRole.CONSUMER) if setting.name == "auto.offset.reset"), None)
        return "earliest" if setting is None else self._reset(setting)

    def _reset(self, setting: Setting) -> Literal["earliest", "latest"]:
        match setting.value.reveal().strip().lower():
            case "earliest":
                return "earliest"
            case "latest":
                return "latest"
        what = (
            "must be earliest or latest; for a time write ferry.start=<ISO time>, and a lost position is never reset silently in any case"
        )
        self.problems.add(what, key=setting.key, line=setting.line)
        return "earliest"

    def _settings(self) -> dict[str, str]:
        result: dict[str, str] = {}
        for name, known in FLOW_PROPERTIES.items():
            entry = self.sources.of_flow(self.pair, name)
            text = entry.value.strip() if entry else known.default
            if text is not None and name not in _FIELDS and not name.startswith("ferry.") and known.effect is not Effect.REFUSED:
                result[name] = text
        return result


def _ask_policy(flow: Flow) -> None:
    policy = flow.policy
    flow.select_topics(["orders"])
    for name in ("orders", policy.format_remote_topic(flow.source.alias, "orders")):
        policy.topic_source(name)
        policy.original_topic(name)
        policy.is_internal_topic(name)
        policy.is_heartbeats_topic(name)


_CLASS_CHECKS: Mapping[str, Callable[[Flow], object]] = {
    _REPLICATION_CLASS: _ask_policy,
    "topic.filter.class": lambda flow: flow.topic_filter.why_not("orders"),
    "group.filter.class": lambda flow: flow.group_filter.why_not("billing"),
    "config.property.filter.class": lambda flow: flow.config_property_filter.why_not("retention.ms"),
}


def _parse_boolean(text: str) -> bool:
    """Java's Boolean.parseBoolean: no trimming."""
    return text.lower() == "true"
