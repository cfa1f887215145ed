"""What a cluster says about its topics, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TopicDescription:
    """One topic. `topic_id` in the text form of uuids, None on clusters older than 2.8; `led`: every partition has a leader."""

    name: str
    topic_id: str | None
    partitions: int
    replication_factor: int
    internal: bool = False
    led: bool = True


@dataclass(frozen=True)
class ConfigValue:
    """One entry of a topic's or broker's config; `dynamic` when it was set for this topic itself."""

    value: str | None
    dynamic: bool
    sensitive: bool = False
