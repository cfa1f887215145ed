"""Remote topics: which to create or to grow, and with which config.

Creation follows MirrorSourceConnector: as many partitions as the source, the source's non-default configs minus the excluded ones. On top
of that Ferry sees to it that the remote topic takes the source's batches as they are: no recompression, CreateTime, batches as large.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ferry.clusters.admin import ClusterAdmin
from ferry.errors import ClusterUnreachable, FerryError
from ferry.policy.filters import java_pattern

if TYPE_CHECKING:
    from ferry.clusters.describe import ConfigValue, TopicDescription
    from ferry.config import Flow

# A created topic is usable once its leaders are elected and every broker knows; usually milliseconds.
LEADERS_SECONDS = 30.0
PAUSE_SECONDS = 0.05
# Kafka's default of max.message.bytes.
DEFAULT_BATCH_LIMIT = 1_048_588
NEVER_COPIED = frozenset({"message.timestamp.type", "compression.type"})


@dataclass(frozen=True)
class NewTopicPlan:
    """A remote topic to create."""

    topic: str
    remote_topic: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GrowthPlan:
    """A remote topic with fewer partitions than its source."""

    topic: str
    remote_topic: str
    partitions: int
    now: int


@dataclass(frozen=True)
class TopicPlan:
    """What to create and to grow."""

    create: tuple[NewTopicPlan, ...] = ()
    grow: tuple[GrowthPlan, ...] = ()

    def grows(self, remote_topic: str) -> bool:
        """Whether the plan grows or creates this topic."""
        return remote_topic in {*(new.remote_topic for new in self.create), *(growth.remote_topic for growth in self.grow)}

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"create": [asdict(entry) for entry in self.create], "grow": [asdict(entry) for entry in self.grow]}


@dataclass(frozen=True)
class TopicChanges:
    """What was done: remote topics created and grown, and (source topic, remote topic, reason) of what failed."""

    created: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    failed: tuple[tuple[str, str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"created": list(self.created), "grown": list(self.grown), "failed": [list(entry) for entry in self.failed]}


def plan_topics(
    flow: Flow,
    selected: Iterable[tuple[str, str]],
    source_topics: Mapping[str, TopicDescription],
    target_topics: Mapping[str, TopicDescription],
    *,
    source: ClusterAdmin,
    target: ClusterAdmin,
) -> TopicPlan:
    """Compare both listings; the configs of topics to create are read from the source."""
    pairs = list(selected)
    missing = [(topic, remote) for topic, remote in pairs if remote not in target_topics]
    configs = source.topic_configs([topic for topic, _ in missing]) if missing else {}
    default_limit = int((target.broker_configs()["message.max.bytes"].value) or DEFAULT_BATCH_LIMIT) if missing else DEFAULT_BATCH_LIMIT
    brokers = target.brokers() if missing else 0
    create = tuple(
        NewTopicPlan(
            topic,
            remote,
            source_topics[topic].partitions,
            flow.replication_factor if flow.replication_factor < 0 else min(flow.replication_factor, brokers),
            creation_config(configs.get(topic, {}), flow.config_properties_exclude, flow.use_defaults_from, default_limit),
        )
        for topic, remote in missing
    )
    grow = tuple(
        GrowthPlan(topic, remote, source_topics[topic].partitions, target_topics[remote].partitions)
        for topic, remote in pairs
        if remote in target_topics and target_topics[remote].partitions < source_topics[topic].partitions
    )
    return TopicPlan(create, grow)


def creation_config(
    source: Mapping[str, ConfigValue], exclude: tuple[str, ...], use_defaults_from: str, default_limit: int = DEFAULT_BATCH_LIMIT
) -> dict[str, str]:
    """The config of a new remote topic (pure): the source's own entries, and what raw batches need."""
    excluded = java_pattern(exclude, "config.properties.exclude")
    config = {}
    for name, entry in source.items():
        wanted = entry.dynamic or use_defaults_from == "source"
        kept = name not in NEVER_COPIED and (excluded is None or not excluded.fullmatch(name))
        if wanted and kept and entry.value is not None and not entry.sensitive:
            config[name] = entry.value
    limit = source.get("max.message.bytes")
    if limit is not None and limit.value is not None and int(limit.value) > default_limit:
        config["max.message.bytes"] = limit.value
    return config


def apply_topics(plan: TopicPlan, target: ClusterAdmin) -> TopicChanges:
    """Create and grow; one topic's failure does not keep the others."""
    created, grown, failed = [], [], []
    for new in plan.create:
        try:
            target.create_topic(new.remote_topic, new.partitions, new.replication_factor, new.config)
            created.append(new.remote_topic)
        except ClusterUnreachable as problem:
            failed.append((new.topic, new.remote_topic, str(problem)))
    for growth in plan.grow:
        try:
            target.create_partitions(growth.remote_topic, growth.partitions)
            grown.append(growth.remote_topic)
        except FerryError as problem:
            failed.append((growth.topic, growth.remote_topic, str(problem)))
    widths = {new.remote_topic: new.partitions for new in plan.create if new.remote_topic in created}
    widths.update({growth.remote_topic: growth.partitions for growth in plan.grow if growth.remote_topic in grown})
    wait_for_leaders(target, widths)
    return TopicChanges(tuple(created), tuple(grown), tuple(failed))


def wait_for_leaders(target: ClusterAdmin, widths: Mapping[str, int]) -> None:
    """Return when all these topics have that many partitions with leaders. ClusterUnreachable when they do not get them in time."""
    deadline = time.monotonic() + LEADERS_SECONDS
    waiting = dict(widths)
    while waiting:
        topics = target.topics()
        waiting = {
            name: width for name, width in waiting.items() if name not in topics or topics[name].partitions < width or not topics[name].led
        }
        if waiting and time.monotonic() > deadline:
            raise ClusterUnreachable(f"cluster {target.alias}: no leaders within {LEADERS_SECONDS:.0f} s for {', '.join(sorted(waiting))}")
        if waiting:
            time.sleep(PAUSE_SECONDS)
