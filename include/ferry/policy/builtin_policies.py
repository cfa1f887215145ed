"""MM2's own replication policies (DefaultReplicationPolicy and IdentityReplicationPolicy of Kafka 4.x), over names alone.

To the default policy any name with a separator in it looks remote: that weakness is MM2's, and kept for compatibility.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferry.policy.replication_policy import HEARTBEATS, ReplicationPolicy


@dataclass(frozen=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """`<source alias><separator><topic>`. `internal_separator` is the one in the names of checkpoints and offset-syncs topics."""

    separator: str = "."
    internal_separator: str = "."

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

    def offset_syncs_topic(self, alias: str) -> str:
        """MM2's offset-syncs topic for the alias of the other cluster."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """MM2's checkpoints topic for a source alias."""
        return f"{alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether the name ends as those of checkpoints topics do."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether the topic is one of MM2's own."""
        return (topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")) or self.is_checkpoints_topic(topic)


@dataclass(frozen=True)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Names stay as they are, except those that end with `heartbeats`, which follow the default rules.

    KIP-382's LegacyReplicationPolicy is this one. `source_alias` None: not known, as for MM2's clients.
    """

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
