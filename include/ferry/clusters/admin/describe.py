"""What a cluster says about its topics, as plain values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True)
class TopicDescription:
    """One topic."""

    topic_id: str | None  # in the text form of uuids; None where topics have none (before 2.8)
    partitions: int
    replicas: tuple[tuple[int, ...], ...] = ()  # brokers that hold each partition, also if they are down; the preferred leader first
    led: bool = True  # every partition has a leader
    epochs: tuple[int, ...] = ()  # the leader epoch of each partition; -1: not known

    def epoch_of(self, partition: int) -> int:
        """Its leader epoch; -1: not known."""
        return self.epochs[partition] if partition < len(self.epochs) else -1

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the partition with the fewest; 0: not known."""
        return min(map(len, self.replicas), default=0)


class Brokers(NamedTuple):
    """Ids of brokers. `known`: those that are up, and those that hold replicas of a topic that the user sees."""

    up: frozenset[int]
    known: frozenset[int]


# All rights to ask for on a topic of this name, as a text.
Rights = Callable[[str], str]


@dataclass(frozen=True)
class WantedTopic:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int  # -1: the broker's default
    config: Mapping[str, str] = field(default_factory=dict)
    rights: Rights = lambda _: "Create"  # if the user may not create it: more than Create, because Ferry also uses the topic
    optional: Mapping[str, str] = field(default_factory=dict)  # what Ferry leaves out where the cluster refuses it (creation.py)


class ConfigOrigin(StrEnum):
    """Where an effective value comes from (DescribeConfigs' config source): strongest first, in the order of Kafka's codes."""

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
