"""Which remote topics to create and which to grow (pure), by MirrorSourceConnector's rules.

A new remote topic gets the source's number of partitions and configs (config_plan.py). A remote topic with fewer partitions than its source
grows. One with more stays as it is, and is named. Nothing is ever deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ferry.clusters.describe import TopicDescription
from ferry.errors import FerryError
from ferry.syncs.config_plan import ConfigRules, Entries, creation_config


@dataclass(frozen=True)
class NewTopicPlan:
    """A remote topic to create. `left`: (name, reason) of configs that the source sets and the remote topic does not get."""

    topic: str
    remote_topic: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class GrowthPlan:
    """A remote topic with fewer partitions than its source."""

    topic: str
    remote_topic: str
    partitions: int
    now: int


@dataclass(frozen=True)
class TopicPlan:
    """What to create and to grow. `wider`: remote topics that have more partitions than their source, and stay as they are.

    `unread`: pairs whose remote topics are not created, because the configs of the source topics cannot be described.
    """

    create: tuple[NewTopicPlan, ...] = ()
    grow: tuple[GrowthPlan, ...] = ()
    wider: tuple[GrowthPlan, ...] = ()
    unread: Mapping[tuple[str, str], FerryError] = field(default_factory=dict)

    def grows(self, remote_topic: str) -> bool:
        """Whether the plan grows or creates this topic."""
        return remote_topic in {*(new.remote_topic for new in self.create), *(growth.remote_topic for growth in self.grow)}

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"create": [asdict(entry) for entry in self.create], "grow": [asdict(entry) for entry in self.grow]}


def plan_from(
    pairs: Iterable[tuple[str, str]],
    source_topics: Mapping[str, TopicDescription],
    target_topics: Mapping[str, TopicDescription],
    *,
    configs: Mapping[str, Entries],
    rules: ConfigRules,
    replicas: int,
) -> TopicPlan:
    """Compare both listings of (source topic, remote topic) pairs; `configs` are those of source topics without a remote one,
    `replicas` how many a new topic gets (-1: the broker's default).
    """
    create, grow, wider = [], [], []
    for topic, remote in pairs:
        partitions = source_topics[topic].partitions
        if remote not in target_topics:
            config, left = creation_config(configs.get(topic, {}), rules)
            create.append(NewTopicPlan(topic, remote, partitions, replicas, config, left))
            continue
        growth = GrowthPlan(topic, remote, partitions, target_topics[remote].partitions)
        if growth.now < growth.partitions:
            grow.append(growth)
        elif growth.now > growth.partitions:
            wider.append(growth)
    return TopicPlan(tuple(create), tuple(grow), tuple(wider))
