"""One enabled flow with everything that its runs need."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from ferry.config.cluster import Cluster
from ferry.config.settings import (
    REWRITE,
    AclSettings,
    AlertSettings,
    HandlingSettings,
    MirroringSettings,
    SchemaSettings,
    WantedReplicas,
    properties_of,
    read_from,
)
from ferry.errors import ConfigError
from ferry.policy.custom_classes import is_custom
from ferry.policy.filters import ConfigPropertyRule, CustomFilter, DefaultConfigPropertyFilter, IncludeExclude, NameRule
from ferry.policy.java_patterns import java_pattern
from ferry.policy.naming import ReplicationPolicy, is_heartbeats, ledger_topic, position_group, replication_policy, runs_topic, state_topic
from ferry.policy.selection import TopicRules, named

# The environment variable that names the config file, or several as PATH does.
CONFIG_VARIABLE = "FERRY_CONFIG"


def named_configs() -> tuple[Path, ...]:
    """The config files that FERRY_CONFIG names."""
    return tuple(Path(name).absolute() for name in os.environ.get(CONFIG_VARIABLE, "").split(os.pathsep) if name)


# Commands that need only the config and the flow. A text may name them without these.
_BARE = re.compile(r"\bferry (ack-loss|acls|ledger|plan|run|status|verify)\b")


def flow_command(name: str, flow: str, config: Path | str) -> str:
    """The command line of command `name` of a flow, for a person to paste. `config`: the path of the file that defines the flow."""
    return f"ferry {name} {quote(str(config))} --flow '{flow}'"


def with_commands(text: str, flow: str, config: Path | str) -> str:
    """The text, with each command that it only names as a command line."""
    return _BARE.sub(lambda found: flow_command(found[1], flow, config), text)


@dataclass(frozen=True)
class Flow:
    """A flow `A->B`. Sizes in bytes, times in seconds if no other unit is named. A replication factor may be -1, the broker's default."""

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
    # None: it is not set.
    tasks_max: int | None = read_from("tasks.max")
    # False: the flow copies no records, only what belongs to them. A connector's file may say so.
    copies: bool = True
    exactly_once: bool = read_from("transaction.producer")
    # Where the flow's first run begins. A time has a time zone.
    start: Literal["earliest", "latest"] | datetime = "earliest"
    lanes: int | None = read_from("ferry.lanes")
    on_recreate: Literal["fail", "restart"] = read_from("ferry.on.recreate")
    on_target_recreate: Literal["fail", "restart"] = read_from("ferry.on.target.recreate")
    on_unexplained: Literal["fail", "local"] = read_from("ferry.on.unexplained")
    on_unclear: Literal["fail", "local"] = read_from("ferry.on.unclear")
    schedule: str | None = read_from("ferry.schedule")
    watch_seconds: int = read_from("ferry.watch.seconds")
    spark_connection: str = read_from("ferry.spark.connection")
    spark_offsets: int = read_from("ferry.spark.offsets")
    compression_type: str = read_from("ferry.compression.type")
    transaction_bytes: int = read_from("ferry.transaction.mb")
    transaction_seconds: int = read_from("ferry.transaction.seconds")
    follow_seconds: int = read_from("ferry.follow.seconds")
    follow_commit_ms: int | None = read_from("ferry.follow.commit.ms")
    open_transaction_warn_ms: int = read_from("ferry.open.transaction.warn.ms")
    memory_bytes: int = read_from("ferry.memory.mb")
    max_bytes_per_second: float | None = read_from("ferry.max.rate.mb")
    ledger_partitions: int = read_from("ferry.ledger.partitions")
    internal_topics_replication_factor: int = read_from("ferry.internal.topics.replication.factor")
    connect_offsets_topic: str | None = read_from("offsets.storage.topic")
    mirroring: MirroringSettings = field(default_factory=MirroringSettings)
    acls: AclSettings = field(default_factory=AclSettings)
    schemas: SchemaSettings = field(default_factory=SchemaSettings)
    # Whether MM2 would write heartbeats of the opposite direction to the source, although that direction is no flow. `asked`: the pair's
    # own key in the file asks for them. `default`: nobody switched them off.
    reverse_heartbeat: Literal["off", "default", "asked"] = "off"
    handling: HandlingSettings = field(default_factory=HandlingSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    # The keys of the replication factors that the file sets.
    replicas_given: frozenset[str] = frozenset()
    # They configure custom policies and filters.
    class_properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    # The aliases of all clusters of the file.
    aliases: frozenset[str] = frozenset()

    def opposite(self) -> Flow:
        """The same flow with source and target exchanged, whether such a flow is configured or not."""
        return replace(self, source=self.target, target=self.source)

    def command(self, name: str) -> str:
        """The command line of a command of this flow, for a person to paste."""
        return flow_command(name, self.name, self.source.path)

    @property
    def reverse_name(self) -> str:
        """The name of the flow in the other direction."""
        return f"{self.target.alias}->{self.source.alias}"

    @property
    def policy(self) -> ReplicationPolicy:
        """Gives names to remote topics. ConfigError for an unknown class, or a custom class that cannot be made."""
        try:
            name, own = self.replication_policy_class, self.internal_separator_enabled
            return replication_policy(name, self.source.alias, self.separator, internal_separator=own, properties=self.class_properties)
        except ConfigError as problem:
            raise ConfigError(f"flow {self.name}: {problem}") from None

    @property
    def is_heartbeats(self) -> Callable[[str], bool]:
        """A function that returns whether a topic holds heartbeats. They count as no lag, loss or gap. Each read makes a new `policy`."""
        return partial(is_heartbeats, self.policy, {*self.aliases, self.source.alias, self.target.alias}, self.separator)

    @property
    def topic_filter(self) -> NameRule:
        """Decides which topics are copied. ConfigError for a custom class that cannot be made."""
        custom = self._custom_filter(self.mirroring.topic_filter_class, "should_replicate_topic")
        return custom or IncludeExclude("topics", self.topics, self.topics_exclude)

    @property
    def group_filter(self) -> NameRule:
        """Decides which groups are synced. ConfigError as in `topic_filter`."""
        custom = self._custom_filter(self.mirroring.group_filter_class, "should_replicate_group")
        return custom or IncludeExclude("groups", self.mirroring.groups, self.mirroring.groups_exclude)

    @property
    def subject_filter(self) -> NameRule:
        """Decides which subjects of the schema registry are copied."""
        return IncludeExclude("sync.schemas.subjects", self.schemas.subjects, self.schemas.subjects_exclude)

    @property
    def rewriting(self) -> NameRule | None:
        """Decides in which topics ids of schemas are rewritten; None: in no topic, and the target's registry keeps the source's ids."""
        return IncludeExclude(REWRITE, self.schemas.rewrite_topics, ()) if self.schemas.rewrite_topics else None

    @property
    def groups_latest(self) -> re.Pattern[str]:
        """Groups that keep their own auto.offset.reset where they have no offset."""
        return java_pattern(self.mirroring.groups_latest, "ferry.groups.latest")

    @property
    def config_property_filter(self) -> ConfigPropertyRule:
        """Decides which topic configs are synced. ConfigError as in `topic_filter`."""
        methods = "should_replicate_config_property", "should_replicate_source_default"
        custom = self._custom_filter(self.mirroring.config_property_filter_class, *methods)
        return custom or DefaultConfigPropertyFilter(self.config_properties_exclude, self.use_defaults_from)

    def _custom_filter(self, path: str, *methods: str) -> CustomFilter | None:
        return CustomFilter(path, self.class_properties, *methods) if is_custom(path) else None

    @property
    def topic_rules(self) -> TopicRules:
        heartbeats, policy_class = self.mirroring.heartbeats_replication_enabled, self.replication_policy_class
        return TopicRules(self.source.alias, self.target.alias, self.policy, self.topic_filter, heartbeats, self.separator, policy_class)

    @property
    def named_topics(self) -> frozenset[str]:
        """The topics that `topics` names one by one, not by an expression."""
        return named(() if is_custom(self.mirroring.topic_filter_class) else self.topics)

    @property
    def ledger_topic(self) -> str:
        return ledger_topic(self.source.alias)

    @property
    def state_topic(self) -> str:
        return state_topic(self.source.alias)

    @property
    def runs_topic(self) -> str:
        return runs_topic(self.source.alias)

    @property
    def position_group(self) -> str:
        return position_group(self.source.alias)

    def transactional_id(self, holder: int | str) -> str:
        """The stable transactional id of a lane (its number), a run, a recovery or the ledger's compaction. Empty: what all begin with."""
        return f"ferry-{self.name}-{holder}"

    def setting(self, key: str, default: Any = None) -> Any:
        """The value of the field that is read from property `key`; `default` if there is no such field."""
        parts = (self, self.mirroring, self.acls, self.schemas, self.handling, self.alerts)
        return next((getattr(part, name) for part in parts for name, known in properties_of(part).items() if known == key), default)

    def wanted_replicas(self, key: str) -> WantedReplicas:
        return WantedReplicas(key, self.setting(key), key in self.replicas_given)
