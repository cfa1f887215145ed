"""The interface of replication policies: how topics are named on the other side, and which of them are internal.

MM2's ReplicationPolicy (KIP-382, KIP-690), method for method. Records, topic configs, ACLs, checkpoints and group offsets all take their
names from the one policy of their flow. What is not overridden follows MM2's defaults, with dots in the names of internal topics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

HEARTBEATS = "heartbeats"
# A name loses a character a hop at least, and has at most 249: a policy of a user's own may go round, and must not hang a run.
MOST_HOPS = 250


class ReplicationPolicy(ABC):
    """How topics are named on the other side. A policy of one's own is a subclass; it needs the three abstract methods."""

    def configure(self, properties: Mapping[str, str]) -> None:  # noqa: B027 - nothing to configure is usual
        """Called once, before any other method, with the flow's properties by their names, defaults included, as texts.

        Among them are `source.cluster.alias`, `target.cluster.alias`, and everything that begins with `replication.policy.`.
        """

    @property
    def renames(self) -> bool:
        """Whether remote names differ from the source's, so that a name tells where a topic came from."""
        return True

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The remote topic's name."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that a remote topic came from; None for what is no remote topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """The name one hop upstream; None for what is no remote topic."""

    def original_topic(self, topic: str) -> str:
        """The name at the very first cluster; the name itself for what is no remote topic."""
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
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """MM2's checkpoints topic for a source alias."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether the topic holds heartbeats, of this cluster or (over any number of hops) of another one."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether the topic holds checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether the topic is one of MM2's own (as since Kafka 4.0, KIP-1074)."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Kafka's and MM2's own topics, which are never copied."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))
