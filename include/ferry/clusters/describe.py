"""What a cluster says about its topics, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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
class WantedTopic:
    """A topic to create; a replication factor of -1 is the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)


class ConfigOrigin(StrEnum):
    """Where an effective value comes from (DescribeConfigs' config source), strongest first."""

    TOPIC = "set on the topic"
    BROKER = "set on one broker"
    ALL_BROKERS = "set for all brokers"
    BROKER_FILE = "in the broker's file"
    DEFAULT = "Kafka's default"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ConfigValue:
    """One entry of a topic's or broker's config; `value` is None where it is sensitive."""

    value: str | None
    origin: ConfigOrigin
    sensitive: bool = False
    read_only: bool = False
