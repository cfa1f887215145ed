"""Names of remote and internal topics: MirrorMaker 2's replication policies, and Ferry's own names.

Rules from DefaultReplicationPolicy and IdentityReplicationPolicy (Kafka 4.x). Any name with a separator in it looks remote to the default
policy: that weakness is MM2's, and kept for compatibility.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ferry.errors import ConfigError

if TYPE_CHECKING:
    from ferry.config import Flow

HEARTBEATS = "heartbeats"
FERRY_PREFIX = "mm2-ferry-"


class ReplicationPolicy(Protocol):
    """How topics are named on the other side."""

    @property
    def renames(self) -> bool: ...
    def format_remote_topic(self, source_alias: str, topic: str) -> str: ...
    def topic_source(self, topic: str) -> str | None: ...
    def upstream_topic(self, topic: str) -> str | None: ...
    def is_internal(self, topic: str) -> bool: ...


@dataclass(frozen=True)
class DefaultReplicationPolicy:
    """`<source alias><separator><topic>`."""

    separator: str = "."
    internal_separator: str = "."

    @property
    def renames(self) -> bool:
        """Whether remote names differ from the source's."""
        return True

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The remote topic's name."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The alias that a remote name begins with; None for names without one."""
        pieces = topic.split(self.separator)
        while pieces and not pieces[-1]:  # Java's split drops trailing empty pieces
            pieces.pop()
        return pieces[0] if len(pieces) >= 2 else None

    def upstream_topic(self, topic: str) -> str | None:
        """The name one hop upstream; None for names without a source."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def checkpoints_topic(self, alias: str) -> str:
        """MM2's checkpoints topic for a source alias."""
        return f"{alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def offset_syncs_topic(self, alias: str) -> str:
        """MM2's offset-syncs topic for the alias of the other cluster."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def is_internal(self, topic: str) -> bool:
        """Kafka's and MM2's own topics, which are never copied."""
        suffix = f"{self.internal_separator}internal"
        mm2 = (topic.startswith("mm2") and topic.endswith(suffix)) or topic.endswith(f"{self.internal_separator}checkpoints{suffix}")
        return mm2 or topic.startswith(("__", "."))


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Names stay as they are, except for heartbeats, which follow the default rules."""

    source_alias: str | None = None

    @property
    def renames(self) -> bool:
        """Whether remote names differ from the source's."""
        return False

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The same name, unless it ends with `heartbeats`."""
        return super().format_remote_topic(source_alias, topic) if topic.endswith(HEARTBEATS) else topic

    def topic_source(self, topic: str) -> str | None:
        """The configured source alias for everything but heartbeats."""
        return super().topic_source(topic) if topic.endswith(HEARTBEATS) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """The name itself, unless it ends with `heartbeats`."""
        return super().upstream_topic(topic) if topic.endswith(HEARTBEATS) else topic


DEFAULT_CLASSES = frozenset({"org.apache.kafka.connect.mirror.DefaultReplicationPolicy", "DefaultReplicationPolicy"})
IDENTITY_CLASSES = frozenset({"org.apache.kafka.connect.mirror.IdentityReplicationPolicy", "IdentityReplicationPolicy"})


def policy_for(flow: Flow) -> DefaultReplicationPolicy:
    """The flow's replication policy; ConfigError for a class that Ferry does not know."""
    internal = flow.separator if flow.internal_separator_enabled else "."
    if flow.replication_policy_class in DEFAULT_CLASSES:
        return DefaultReplicationPolicy(flow.separator, internal)
    if flow.replication_policy_class in IDENTITY_CLASSES:
        return IdentityReplicationPolicy(flow.separator, internal, flow.source.alias)
    raise ConfigError(
        f"flow {flow.name}: replication.policy.class {flow.replication_policy_class} is not supported; "
        "use MirrorMaker 2's DefaultReplicationPolicy or IdentityReplicationPolicy"
    )


def original_topic(policy: ReplicationPolicy, topic: str) -> str:
    """The name at the very first cluster."""
    upstream = policy.upstream_topic(topic)
    while upstream is not None and upstream != topic:
        topic, upstream = upstream, policy.upstream_topic(upstream)
    return topic


def ledger_topic(source_alias: str) -> str:
    """Ferry's ledger of what was copied from `source_alias`; lies on the target."""
    return f"{FERRY_PREFIX}ledger.{source_alias}.internal"


def state_topic(source_alias: str) -> str:
    """Heads, claims and the flow record; lies on the target."""
    return f"{FERRY_PREFIX}state.{source_alias}.internal"


def runs_topic(source_alias: str) -> str:
    """Run reports; lies on the target."""
    return f"{FERRY_PREFIX}runs.{source_alias}.internal"


def position_group(source_alias: str) -> str:
    """The group that holds the flow's positions on the target (KIP-656)."""
    return f"__ferry-{source_alias}"


def is_ferry_topic(topic: str) -> bool:
    """Ferry's own topics, which no flow copies whatever its filters say."""
    return topic.startswith(FERRY_PREFIX)
