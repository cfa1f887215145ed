"""Names of remote and internal topics: replication policies, and the names of Ferry's own topics and groups (pure).

The interface of a policy is MM2's ReplicationPolicy (KIP-382, KIP-690), method for method. Records, topic configs, ACLs, checkpoints and
group offsets all take their names from the one policy of their flow (`Flow.policy`). What a policy does not override follows MM2's
defaults, with dots in the names of internal topics.

MM2's own policies are those of Kafka 4.x. To the default policy every name with a separator in it looks remote: Ferry keeps this weakness
of MM2 for compatibility.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ferry.errors import ConfigError
from ferry.policy.custom_classes import CustomObject, is_custom

# As of org.apache.kafka.common.internals.Topic.
TOPIC_CHARACTERS, LONGEST_TOPIC = r"[a-zA-Z0-9._-]", 249
# An alias becomes a part of topic names, together with Ferry's own words.
LONGEST_ALIAS = 200
ALIAS = re.compile(f"{TOPIC_CHARACTERS}{{1,{LONGEST_ALIAS}}}")
ALIAS_WANTS = f"letters, digits, dots, dashes and underscores, at most {LONGEST_ALIAS}"
HEARTBEATS = "heartbeats"
# Each hop takes at least one character from a name, and a name has at most 249: a custom policy that never ends must not hang a run.
MOST_HOPS = 250
FERRY_PREFIX = "mm2-ferry-"
FERRY_GROUPS = "__ferry-"
STATE_PREFIX, STATE_SUFFIX = f"{FERRY_PREFIX}state.", ".internal"
# Offset syncs, and topics of MM2's Connect workers. These names have dots, also if the policy has another separator.
MM2_PREFIXES = ("mm2-offset-syncs", "mm2-offsets", "mm2-configs", "mm2-status")


class ReplicationPolicy(ABC):
    """How topics are named on the other side. A custom policy is a subclass; it needs the three abstract methods.

    `internal_separator` is the one in the names of checkpoints and offset-syncs topics.
    """

    internal_separator = "."

    def configure(self, properties: Mapping[str, str]) -> None:  # noqa: B027 - nothing to configure is usual
        """Called once, before any other method, with the flow's properties by their names, defaults included, as texts.

        Among them are `source.cluster.alias`, `target.cluster.alias`, and everything that begins with `replication.policy.`.
        """

    @property
    def renames(self) -> bool:
        """Whether remote names differ from the source's, so that a name says where a topic came from."""
        return True

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The remote topic's name."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that a remote topic came from; None for a name that is not a remote topic's."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """The name one hop upstream; None for a name that is not a remote topic's."""

    def original_topic(self, topic: str) -> str:
        """The name at the very first cluster; the name itself if it is not a remote topic's."""
        for _ in range(MOST_HOPS):
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                break
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are written to."""
        return HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """MM2's offset-syncs topic for the alias of the other cluster."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """MM2's checkpoints topic for a source alias."""
        return f"{alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether the topic holds heartbeats, of this cluster or (over any number of hops) of another one."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether the topic holds checkpoints."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether the topic is one of MM2's own (as since Kafka 4.0, KIP-1074)."""
        return (topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Whether the topic is one of Kafka's or MM2's own, which are never copied."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


@dataclass(frozen=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """`<source alias><separator><topic>`."""

    separator: str = "."
    internal_separator: str = "."

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        pieces = topic.split(self.separator)
        while pieces and not pieces[-1]:  # Java's split drops trailing empty pieces
            pieces.pop()
        return pieces[0] if len(pieces) >= 2 else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Names stay as they are, except those that end with `heartbeats`, which follow the default policy.

    KIP-382's LegacyReplicationPolicy is this one. `source_alias` None: not known, as for MM2's clients.
    """

    source_alias: str | None = None

    @property
    def renames(self) -> bool:
        return False

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if topic.endswith(HEARTBEATS) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if topic.endswith(HEARTBEATS) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if topic.endswith(HEARTBEATS) else topic


def _asked(method: str, *wants: type) -> Callable[..., Any]:
    """A method of CustomReplicationPolicy that asks the user's object by the same method, and wants a result of one of these types."""
    return lambda self, *arguments: self._custom.ask(method, *arguments, wants=wants)


class CustomReplicationPolicy(ReplicationPolicy):
    """Asks an object of the class at `path`. Any error in it is a ConfigError with path, method and topic."""

    def __init__(self, path: str, properties: Mapping[str, str]) -> None:
        required = tuple(sorted(ReplicationPolicy.__abstractmethods__))
        self._custom = CustomObject(path, required, properties, ReplicationPolicy)

    @property
    def renames(self) -> bool:
        return bool(self._custom.made.renames)

    topic_source = _asked("topic_source", str, type(None))
    upstream_topic = _asked("upstream_topic", str, type(None))
    original_topic = _asked("original_topic", str)
    heartbeats_topic = _asked("heartbeats_topic", str)
    offset_syncs_topic = _asked("offset_syncs_topic", str)
    checkpoints_topic = _asked("checkpoints_topic", str)
    is_heartbeats_topic = _asked("is_heartbeats_topic", bool)
    is_checkpoints_topic = _asked("is_checkpoints_topic", bool)
    is_mm2_internal_topic = _asked("is_mm2_internal_topic", bool)
    is_internal_topic = _asked("is_internal_topic", bool)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        name = self._custom.ask("format_remote_topic", source_alias, topic, wants=(str,))
        if not name:
            raise ConfigError(f"{self._custom.path}: format_remote_topic({source_alias!r}, {topic!r}) gave an empty name")
        return name


def replication_policy(
    name: str, source_alias: str, separator: str, *, internal_separator: bool, properties: Mapping[str, str]
) -> ReplicationPolicy:
    """The replication policy of class `name`. ConfigError for a class that Ferry does not know, or a custom one that cannot be made.

    `internal_separator`: whether internal topics have the separator too (KIP-949). `properties` configure a custom class.
    """
    if is_custom(name):
        return CustomReplicationPolicy(name, properties)
    internal = separator if internal_separator else "."
    match name.rpartition(".")[2]:
        case "DefaultReplicationPolicy":
            return DefaultReplicationPolicy(separator, internal)
        case "IdentityReplicationPolicy":
            return IdentityReplicationPolicy(separator, internal, source_alias)
    raise ConfigError(
        f"replication.policy.class {name} is not known: use MM2's DefaultReplicationPolicy or IdentityReplicationPolicy, or write it in "
        "Python: package.module:Class"
    )


def origins(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """The aliases of the clusters that a topic came over, the last one first; at most MOST_HOPS."""
    for _ in range(MOST_HOPS):
        origin = policy.topic_source(topic)
        if origin is None:
            return
        yield origin
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return
        topic = upstream


def is_heartbeats(policy: ReplicationPolicy, aliases: Collection[str], separator: str, topic: str) -> bool:
    """Whether `topic` holds heartbeats. MM2's rule alone (`is_heartbeats_topic`) also says so of `x.heartbeats` of an application.

    So each cluster that the topic came over must be one of `aliases`, which may themselves hold the separator.
    """
    if not policy.is_heartbeats_topic(topic):
        return False
    came_over = list(origins(policy, topic))
    one, between = "|".join(map(re.escape, aliases)), re.escape(separator)
    return not came_over or re.fullmatch(f"(?:{one})(?:{between}(?:{one}))*", separator.join(came_over)) is not None


def ledger_topic(source_alias: str) -> str:
    """Ferry's ledger of the flow from `source_alias`; a topic on the target."""
    return f"{FERRY_PREFIX}ledger.{source_alias}.internal"


def state_topic(source_alias: str) -> str:
    """Heads, claims and the flow record; a topic on the target."""
    return f"{STATE_PREFIX}{source_alias}{STATE_SUFFIX}"


def is_state_topic(topic: str) -> bool:
    return topic.startswith(STATE_PREFIX) and topic.endswith(STATE_SUFFIX)


def runs_topic(source_alias: str) -> str:
    """Run reports; a topic on the target."""
    return f"{FERRY_PREFIX}runs.{source_alias}.internal"


def position_group(source_alias: str) -> str:
    """The group that holds the flow's positions on the target (KIP-656)."""
    return f"{FERRY_GROUPS}{source_alias}"


def is_ferry_group(group: str) -> bool:
    """Whether `group` is one of Ferry's own. No sync touches these, even if its filters match them."""
    return group.startswith(FERRY_GROUPS)


def is_machinery(topic: str) -> bool:
    """Whether `topic` is one that Kafka, MirrorMaker 2 or Ferry makes for itself, by its name."""
    kafkas = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"}
    return topic in kafkas or (not topic.startswith("__") and is_never_copied(topic, "."))


def is_ferry_topic(topic: str) -> bool:
    """Whether `topic` is one of Ferry's own. No flow copies these, even if its filters match them."""
    return topic.startswith(FERRY_PREFIX)


def is_never_copied(topic: str, separator: str) -> bool:
    """Whether `topic` is internal by its name: no policy and no filter changes this.

    MM2's policy requires its separator before `internal`. So with `_` it treats `mm2-offsets.A.internal` as a user's topic, and only
    `topics.exclude` prevents a copy. Here every such name is internal, with dots or with the flow's separator, and known names with any.
    """
    known = topic.startswith(MM2_PREFIXES) and topic.endswith("internal")
    policies = [DefaultReplicationPolicy(internal_separator=mark) for mark in (".", separator)]
    return known or topic.startswith("__") or any(policy.is_mm2_internal_topic(topic) for policy in policies)
