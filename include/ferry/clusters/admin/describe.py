"""What a cluster says about its topics, as plain values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True)
class TopicDescription:
    """One topic. `topic_id` in the text form of uuids, None where topics have none (before 2.8); `led`: every partition has a leader.

    `replicas`: ids of the brokers that hold each partition, including brokers that are down; the preferred leader is first.
    """

    topic_id: str | None
    partitions: int
    replicas: tuple[tuple[int, ...], ...] = ()
    led: bool = True

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
    """A topic to create; a replication factor of -1 is the broker's default. `rights` takes its name and gives all rights to ask for when
    the user may not create it: more than Create, because Ferry also uses the topic. `optional`: configs that Ferry leaves out where the
    cluster refuses them (creation.py)."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)
    rights: Rights = lambda _: "Create"
    optional: Mapping[str, str] = field(default_factory=dict)


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
