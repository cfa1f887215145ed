"""Which configs a remote topic gets (pure): MirrorSourceConnector's rules, at creation and at every later sync.

Ferry leaves these source entries alone: read-only, sensitive and excluded ones, and those from the file of a source broker. An entry that
has Kafka's default at the source is removed from the remote topic, or set there with `use.defaults.from=source`. Every other entry is set,
also one that comes from a dynamic broker default. So an entry that only the remote topic sets is removed, unless it is excluded.

Three rules are Ferry's own. Ferry copies batches as they are, so the remote topic accepts batches as large as the source's. Ferry keeps
timestamps, so a new remote topic does not replace them, even if the target's brokers do so by default. And a target without remote storage
would refuse topics that want it (KIP-405), so Ferry leaves those entries alone there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ferry.clusters.admin.broker_defaults import BrokerDefaults
from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue
from ferry.policy.filters import ConfigPropertyRule

Entries = Mapping[str, ConfigValue]

BATCH_LIMIT = "max.message.bytes"
TIMESTAMP_TYPE, STAMPS = "message.timestamp.type", "LogAppendTime"
# The entries about remote storage (KIP-405, KIP-1241).
REMOTE_STORAGE = frozenset(
    {"remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable", "local.retention.ms", "local.retention.bytes"}
    | {"remote.copy.lag.ms", "remote.copy.lag.bytes"}
)
# Without these a remote topic would lose other records than its source. Ferry leaves out all others if the target refuses them.
NEEDED = frozenset({"cleanup.policy"})
EMPTY = "(empty)"  # cleanup.policy of a topic that keeps all records, since Kafka 4.1 (KIP-1161)
_REPLACES_TIMESTAMPS = "a remote topic that replaces timestamps is not copied to"


@dataclass(frozen=True)
class ConfigRules:
    """The flow's filter, and the defaults of the target's brokers."""

    filter: ConfigPropertyRule
    target: BrokerDefaults = field(default_factory=BrokerDefaults)


@dataclass(frozen=True)
class Alteration:
    """One entry of a remote topic to set, or to remove (`value` None); `before` as people read it."""

    name: str
    value: str | None
    before: str
    reason: str

    @property
    def detail(self) -> str:
        return f"{self.name}: {self.before} -> {'default' if self.value is None else self.value or EMPTY}"


@dataclass(frozen=True)
class ConfigPlan:
    """What to alter on one remote topic, and (name, reason) of differences that stay."""

    alterations: tuple[Alteration, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Wish:
    """What the remote topic should set for an entry; `value` None: nothing. `refused`: why the entry is left alone."""

    value: str | None = None
    reason: str = ""
    refused: str = ""


def creation_config(source: Entries, rules: ConfigRules) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """The config of a new remote topic; and (name, reason) of entries that the source sets and the remote topic does not get."""
    config, left = {}, []
    for name, entry in sorted(source.items()):
        wish = _wish(name, entry, rules)
        if wish.value is not None:
            config[name] = wish.value
        elif wish.refused and entry.origin is ConfigOrigin.TOPIC:
            left.append((name, f"{wish.refused}: {_shown(entry)} at the source"))
    if rules.target.topics.get(TIMESTAMP_TYPE) == STAMPS:
        config[TIMESTAMP_TYPE] = "CreateTime"
    return config, tuple(left)


def plan_configs(source: Entries, target: Entries, rules: ConfigRules) -> ConfigPlan:
    """What differs between a source topic and its remote topic, by what the remote topic itself sets."""
    alterations: list[Alteration] = []
    left: list[tuple[str, str]] = []
    limit = target.get(BATCH_LIMIT)
    if limit is not None and limit.value and limit.origin is not ConfigOrigin.TOPIC:  # then this value comes from the brokers
        rules = replace(rules, target=replace(rules.target, batch_limit=int(limit.value), hidden=""))
    for name, entry in sorted(source.items()):
        found = target.get(name)
        wish = _wish(name, entry, rules)
        own = found.value if found is not None and found.origin is ConfigOrigin.TOPIC else None
        if wish.refused:
            if found is not None and entry.value != found.value:
                left.append((name, f"{wish.refused}: {_shown(entry)} at the source, {_shown(found)} on the remote topic"))
        elif found is None:
            if wish.value is not None:
                left.append((name, f"the target's brokers do not know it: {_shown(entry)} at the source"))
        elif wish.value is None and own is not None and (unknown := _why_default_is_unknown(name, rules)):
            left.append((name, f"{unknown}, so the topic keeps {own}"))
        elif wish.value != own:
            alterations.append(Alteration(name, wish.value, _shown(found), wish.reason))
    return ConfigPlan(tuple(alterations), tuple(left))


def _why_default_is_unknown(name: str, rules: ConfigRules) -> str:
    """Why Ferry cannot know what holds for a remote topic that does not set an entry; empty if it can, or if it does not matter."""
    if name == TIMESTAMP_TYPE:
        return f"{_REPLACES_TIMESTAMPS}, and Ferry cannot know the brokers' default"
    return rules.target.hidden if name == BATCH_LIMIT else ""


def depends_on_brokers(source: Entries, target: Entries) -> bool:
    """Whether the plan depends on the target's brokers: on their remote storage, or on their default of max.message.bytes.

    That default counts if the remote topic sets the limit, and the source does not.
    """
    here, there = source.get(BATCH_LIMIT), target.get(BATCH_LIMIT)
    limit = here is not None and here.origin is not ConfigOrigin.TOPIC and there is not None and there.origin is ConfigOrigin.TOPIC
    return limit or any(name in source and source[name].origin is not ConfigOrigin.DEFAULT for name in REMOTE_STORAGE)


def _wish(name: str, entry: ConfigValue, rules: ConfigRules) -> _Wish:
    refused = _refused(name, entry, rules)
    if refused:
        return _Wish(refused=refused)
    if name == BATCH_LIMIT and entry.origin is not ConfigOrigin.TOPIC and _larger(entry, rules.target.batch_limit):
        return _Wish(entry.value, f"batches as large as at the source must get in; the target's default is {rules.target.batch_limit}")
    if entry.origin is ConfigOrigin.BROKER_FILE:
        return _Wish(refused="in the file of a source broker only")
    if entry.origin is ConfigOrigin.DEFAULT and not rules.filter.should_replicate_source_default(name):
        return _Wish(reason="set on the remote topic only: the source has its default")
    if entry.origin is ConfigOrigin.DEFAULT:
        return _Wish(entry.value, "the source's default, by use.defaults.from=source")
    return _Wish(entry.value, f"{entry.origin.value} at the source")


def _refused(name: str, entry: ConfigValue, rules: ConfigRules) -> str:
    if entry.read_only:
        return "read-only"
    if entry.sensitive or (entry.value is None and entry.origin is not ConfigOrigin.DEFAULT):
        return "its value is hidden"
    if name in REMOTE_STORAGE and entry.origin is not ConfigOrigin.DEFAULT and not rules.target.remote_storage:
        return rules.target.hidden or "the target's brokers have no remote storage"
    excluded = rules.filter.why_not(name)
    if name == TIMESTAMP_TYPE and entry.value == STAMPS and not excluded:
        return _REPLACES_TIMESTAMPS
    return excluded or ""


def _larger(entry: ConfigValue, limit: int) -> bool:
    return entry.value is not None and entry.value.isdecimal() and int(entry.value) > limit


def _shown(entry: ConfigValue) -> str:
    value = "(hidden)" if entry.value is None else entry.value or EMPTY
    return value if entry.origin is ConfigOrigin.TOPIC else f"{value} ({entry.origin.value})"
