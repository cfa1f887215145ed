"""One enabled flow with everything that its runs need."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ferry.config.cluster import Cluster
from ferry.config.combinations import Combinations
from ferry.config.keys import is_custom_key
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.registry import FLOW_PROPERTIES
from ferry.config.registry.kinds import REPLICATION_FACTOR
from ferry.config.registry.property import Effect
from ferry.config.settings import (
    AclSettings,
    AlertSettings,
    HandlingSettings,
    MirroringSettings,
    WantedReplicas,
    properties_of,
    read_from,
    read_settings,
)
from ferry.config.sources import ClientRole, Pair, Sources
from ferry.errors import ConfigError
from ferry.policy.custom_classes import is_custom
from ferry.policy.filters import ConfigPropertyRule, CustomFilter, DefaultConfigPropertyFilter, IncludeExclude, NameRule
from ferry.policy.naming import ReplicationPolicy, ledger_topic, position_group, replication_policy, runs_topic, state_topic
from ferry.policy.selection import Selection, TopicRules

_ENABLED = "enabled"
_HEARTBEATS = "emit.heartbeats.enabled"
_REPLICATION_CLASS = "replication.policy.class"


@dataclass(frozen=True)
class Flow:
    """A flow `A->B`. Sizes in bytes, times in seconds where no other unit is named.

    `start`: where a partition that was never copied begins; a time has a time zone. `copies` False: the flow does not copy records, only
    what belongs to them, as a connector's file may say. `tasks_max` None: it is not set. Replication factors may be -1, the broker's
    default; `replicas_given` are the keys of those that the file sets. `class_properties` configure custom policies and filters.

    `reverse_heartbeat`: whether MM2 would write heartbeats to the source for the opposite direction when that is not a flow: because the
    file asks for them with the pair's own key (`asked`), or because nobody switched them off (`default`).
    """

    name: str
    source: Cluster
    target: Cluster
    replication_policy_class: str
    internal_separator_enabled: bool
    topics: tuple[str, ...] = read_from("topics")
    topics_exclude: tuple[str, ...] = read_from("topics.exclude")
    separator: str = read_from("replication.policy.separator")
    replication_factor: int = read_from("replication.factor")
    config_properties_exclude: tuple[str, ...] = read_from("config.properties.exclude")
    use_defaults_from: str = read_from("use.defaults.from")
    tasks_max: int | None = read_from("tasks.max")
    copies: bool = True
    exactly_once: bool = read_from("transaction.producer")
    start: Literal["earliest", "latest"] | datetime = "earliest"
    lanes: int | None = read_from("ferry.lanes")
    on_recreate: Literal["fail", "restart"] = read_from("ferry.on.recreate")
    on_target_recreate: Literal["fail", "restart"] = read_from("ferry.on.target.recreate")
    on_unexplained: Literal["fail", "local"] = read_from("ferry.on.unexplained")
    on_unclear: Literal["fail", "local"] = read_from("ferry.on.unclear")
    schedule: str | None = read_from("ferry.schedule")
    spark_connection: str = read_from("ferry.spark.connection")
    transaction_bytes: int = read_from("ferry.transaction.mb")
    transaction_seconds: int = read_from("ferry.transaction.seconds")
    open_transaction_warn_ms: int = read_from("ferry.open.transaction.warn.ms")
    memory_bytes: int = read_from("ferry.memory.mb")
    max_bytes_per_second: float | None = read_from("ferry.max.rate.mb")
    ledger_partitions: int = read_from("ferry.ledger.partitions")
    internal_topics_replication_factor: int = read_from("ferry.internal.topics.replication.factor")
    connect_offsets_topic: str | None = read_from("offsets.storage.topic")
    mirroring: MirroringSettings = field(default_factory=MirroringSettings)
    acls: AclSettings = field(default_factory=AclSettings)
    reverse_heartbeat: Literal["off", "default", "asked"] = "off"
    handling: HandlingSettings = field(default_factory=HandlingSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    replicas_given: frozenset[str] = frozenset()
    class_properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def policy(self) -> ReplicationPolicy:
        """Gives names to remote topics. ConfigError for an unknown class, or a custom class that cannot be made."""
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
    def topic_filter(self) -> NameRule:
        """Decides which topics are copied. ConfigError for a custom class that cannot be made."""
        custom = self.mirroring.topic_filter_class
        if is_custom(custom):
            return CustomFilter(custom, self.class_properties, "should_replicate_topic")
        return IncludeExclude("topics", self.topics, self.topics_exclude)

    @property
    def group_filter(self) -> NameRule:
        """Decides which groups are synced. ConfigError as in `topic_filter`."""
        custom, sync = self.mirroring.group_filter_class, self.mirroring
        if is_custom(custom):
            return CustomFilter(custom, self.class_properties, "should_replicate_group")
        return IncludeExclude("groups", sync.groups, sync.groups_exclude)

    @property
    def config_property_filter(self) -> ConfigPropertyRule:
        """Decides which topic configs are synced. ConfigError as in `topic_filter`."""
        custom = self.mirroring.config_property_filter_class
        if is_custom(custom):
            return CustomFilter(custom, self.class_properties, "should_replicate_config_property", "should_replicate_source_default")
        return DefaultConfigPropertyFilter(self.config_properties_exclude, self.use_defaults_from)

    @property
    def topic_rules(self) -> TopicRules:
        """The rules that decide about each topic of the source."""
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
        """Which of these topics of the source are copied, and their remote names. ConfigError as in `TopicRules.select`."""
        return self.topic_rules.select(names)

    @property
    def ledger_topic(self) -> str:
        """The topic on the target with the receipts of what was copied."""
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

    def setting(self, key: str, default: Any = None) -> Any:
        """The value of the field that is read from property `key`; `default` if there is no such field."""
        parts = (self, self.mirroring, self.acls, self.handling, self.alerts)
        return next((getattr(part, name) for part in parts for name, known in properties_of(part).items() if known == key), default)

    def wanted_replicas(self, key: str) -> WantedReplicas:
        """How many replicas the property `key` wants."""
        return WantedReplicas(key, self.setting(key), key in self.replicas_given)


@dataclass(frozen=True)
class FlowReader:
    """Reads the properties of one pair of clusters. Bad values were reported before; for them it reads the default."""

    sources: Sources
    pair: Pair
    problems: Problems

    def value(self, name: str) -> Any:
        """The effective value, parsed by its kind; None without value and default."""
        known = FLOW_PROPERTIES[name]
        entry = self.sources.of_flow(self.pair, name)
        for text in (entry.value if entry else None, known.default):
            if text is not None:
                with suppress(ValueError):
                    return known.kind.parse(text)
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
        """The flow. Reports problems that concern several properties at once."""
        separator_given = self.sources.of_flow(self.pair, "replication.policy.separator") is not None
        Combinations(self.value, self._entry, source.of_role(ClientRole.CONSUMER), self.problems).check()
        flow: Flow = read_settings(
            Flow,
            self.value,
            name=self.pair.name,
            source=source,
            target=target,
            replication_policy_class=self._policy_class(),
            # DefaultReplicationPolicy.configure looks at this flag only where a separator is given.
            internal_separator_enabled=not separator_given or self.value("replication.policy.internal.topic.separator.enabled"),
            start=self._start(source),
            reverse_heartbeat=self._reverse_heartbeat(),
            replicas_given=frozenset(
                key for key, known in FLOW_PROPERTIES.items() if known.kind is REPLICATION_FACTOR and self._entry(key)
            ),
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
        """The properties with which MM2 configures its plug-ins: the flow's, the aliases, and those that only plug-ins know."""
        result = {"source.cluster.alias": self.pair.source, "target.cluster.alias": self.pair.target}
        for name, known in FLOW_PROPERTIES.items():
            entry = self.sources.of_flow(self.pair, name)
            text = entry.value.strip() if entry else known.default
            if text is not None and known.effect is not Effect.REFUSED:
                result[name] = text
        flow = f"{self.pair.name}."
        for key in sorted(self.sources.entries, key=lambda key: key.startswith(flow)):  # the flow's own win
            name = key.removeprefix(flow)
            if is_custom_key(name, top_level=key == name):
                result[name] = self.sources.entries[key].value.strip()
        return result

    def _check_classes(self, flow: Flow) -> None:
        """Make each custom class and call it once, so that loading the file reports a bad one."""
        for key, ask in _CLASS_CHECKS.items():
            entry = self.sources.of_flow(self.pair, key)
            if entry is not None and is_custom(str(self.value(key))):
                try:
                    ask(flow)
                except ConfigError as problem:
                    self.problems.add(str(problem), entry)

    def _start(self, source: Cluster) -> Literal["earliest", "latest"] | datetime:
        own: Literal["earliest", "latest"] | datetime | None = self.value("ferry.start")
        if own is not None:
            return own
        setting = next((setting for setting in source.of_role(ClientRole.CONSUMER) if setting.name == "auto.offset.reset"), None)
        if setting is None or (reset := setting.value.reveal().strip().lower()) == "earliest":
            return "earliest"
        if reset == "latest":
            return "latest"
        what = "must be earliest or latest. For a time write ferry.start=<ISO time>. Ferry never resets a lost position silently"
        self.problems.add(what, setting)
        return "earliest"


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
