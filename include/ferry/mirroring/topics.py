"""Remote topics are created and grown as topic_plan.py says: by a run before it copies, or by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.describe import WantedTopic
from ferry.errors import ClusterUnreachable
from ferry.mirroring.config_plan import DEFAULT_BATCH_LIMIT, ConfigRules
from ferry.mirroring.outcome import Change, SyncFailure, SyncOutcome
from ferry.mirroring.scope import SyncScope, sync_scope
from ferry.mirroring.topic_plan import GrowthPlan, NewTopicPlan, Replicas, TopicPlan, plan_from
from ferry.policy.filters import config_property_filter
from ferry.reporting.run_report import Skipped

if TYPE_CHECKING:
    from ferry.clusters.describe import TopicDescription
    from ferry.config import Flow

# A created topic is usable once its leaders are elected and every broker knows; usually milliseconds, but a broker that makes thousands of
# partitions needs minutes: it must only go on for so long.
LEADERS_SECONDS = 120.0
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
NAMED_TOPICS = 20


class TopicFailure(NamedTuple):
    """A remote topic that could not be created or grown; `error` is a class name of ferry.errors."""

    topic: str
    remote_topic: str
    problem: str
    error: str


@dataclass(frozen=True)
class TopicChanges:
    """What was done: remote topics created and grown, and what failed."""

    created: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    failed: tuple[TopicFailure, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        failed = [[failure.topic, failure.remote_topic, failure.problem] for failure in self.failed]
        return {"created": list(self.created), "grown": list(self.grown), "failed": failed}


def sync_topics(flow: Flow, dry_run: bool) -> SyncOutcome:
    """Create remote topics that are missing, grow those that are too narrow. ClusterUnreachable or ConfigError when it can do nothing."""
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        scope = sync_scope(flow, source, target)
        gone = frozenset() if flow.on_target_recreate == "restart" else scope.lost
        pairs = [pair for pair in scope.pairs if pair not in gone]
        plan = plan_topics(flow, pairs, scope.source_topics, scope.target_topics, source=source, target=target)
        done = TopicChanges() if dry_run else apply_topics(plan, target)
    refused = {failure.remote_topic for failure in done.failed}
    failures = _unread(plan) if dry_run else done.failed
    changes = [_creation(new, flow) for new in plan.create if new.remote_topic not in refused]
    changes += [_growth(growth) for growth in plan.grow if growth.remote_topic not in refused]
    skipped = [
        Skipped(f"topic {remote}", "it was deleted after it was copied to; ferry.on.target.recreate=restart creates it again")
        for _, remote in sorted(gone)
    ]
    skipped += [Skipped(f"topic {new.remote_topic} {name}", reason) for new in plan.create for name, reason in new.left]
    return SyncOutcome(
        "topics",
        tuple(changes),
        (*scope.skipped, *scope.claimed, *skipped),
        (*scope.failed, *(SyncFailure(f"topic {failure.remote_topic}", failure.error, failure.problem) for failure in failures)),
        notices=tuple(_wider(growth) for growth in plan.wider),
        counts=_counts(scope, plan),
    )


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
    missing = [topic for topic, remote in pairs if remote not in target_topics]
    configs, unread = source.visible_configs(missing) if missing else ({}, {})
    # A topic that was made without them would be another one.
    left = {pair: unread[pair[0]] for pair in pairs if pair[0] in unread}
    pairs = [pair for pair in pairs if pair not in left]
    limit = batch_limit(target) if missing else DEFAULT_BATCH_LIMIT
    replicas = Replicas(flow.replication_factor, target.brokers() if missing else 0)
    rules = ConfigRules(config_property_filter(flow), limit)
    return replace(plan_from(pairs, source_topics, target_topics, configs=configs, rules=rules, replicas=replicas), unread=left)


def batch_limit(cluster: ClusterAdmin) -> int:
    """What max.message.bytes is there for topics that do not set it."""
    return int(cluster.broker_configs()["message.max.bytes"].value or DEFAULT_BATCH_LIMIT)


def apply_topics(plan: TopicPlan, target: ClusterAdmin) -> TopicChanges:
    """Create and grow; one topic's failure does not keep the others."""
    problems = target.create_topics(
        WantedTopic(new.remote_topic, new.partitions, new.replication_factor, new.config) for new in plan.create
    )
    problems |= target.create_partitions({growth.remote_topic: growth.partitions for growth in plan.grow})
    created = {new.remote_topic: new.partitions for new in plan.create if new.remote_topic not in problems}
    grown = {growth.remote_topic: growth.partitions for growth in plan.grow if growth.remote_topic not in problems}
    wait_for_leaders(target, created | grown)
    entries: tuple[NewTopicPlan | GrowthPlan, ...] = (*plan.create, *plan.grow)
    upstream = {entry.remote_topic: entry.topic for entry in entries}
    failed = [TopicFailure(upstream[name], name, str(problem), type(problem).__name__) for name, problem in problems.items()]
    return TopicChanges(tuple(created), tuple(grown), (*failed, *_unread(plan)))


def _unread(plan: TopicPlan) -> tuple[TopicFailure, ...]:
    return tuple(TopicFailure(topic, remote, str(problem), type(problem).__name__) for (topic, remote), problem in plan.unread.items())


def wait_for_leaders(target: ClusterAdmin, widths: Mapping[str, int]) -> None:
    """Return when all these topics have that many partitions with leaders.

    ClusterUnreachable when for a while no more of them get some; NotAuthorized for one that exists and is hidden from the user.
    """
    deadline, pause = time.monotonic() + LEADERS_SECONDS, PAUSE_SECONDS
    waiting = dict(widths)
    while waiting:
        topics = target.topics(waiting)
        left = {
            name: width for name, width in waiting.items() if name not in topics or topics[name].partitions < width or not topics[name].led
        }
        if len(left) < len(waiting):
            deadline = time.monotonic() + LEADERS_SECONDS
        waiting = left
        if waiting and time.monotonic() > deadline:
            named = ", ".join(sorted(waiting)[:NAMED_TOPICS])
            more = f" and {len(waiting) - NAMED_TOPICS:,} more" if len(waiting) > NAMED_TOPICS else ""
            raise ClusterUnreachable(f"cluster {target.alias}: no leaders within {LEADERS_SECONDS:.0f} s for {named}{more}")
        if waiting:
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def _creation(new: NewTopicPlan, flow: Flow) -> Change:
    replicas = "the brokers' default of" if new.replication_factor < 0 else str(new.replication_factor)
    config = "".join(f", {name}={value}" for name, value in new.config.items())
    reason = f"{flow.source.alias} has topic {new.topic}"
    if 0 < new.replication_factor < flow.replication_factor:
        reason += f"; replication.factor={flow.replication_factor}, but {flow.target.alias} has {new.replication_factor} brokers"
    return Change(f"topic {new.remote_topic}", "create", f"{new.partitions} partitions, {replicas} replicas{config}", reason)


def _growth(growth: GrowthPlan) -> Change:
    detail = f"partitions: {growth.now} -> {growth.partitions}"
    return Change(f"topic {growth.remote_topic}", "grow", detail, f"topic {growth.topic} has {growth.partitions} at the source")


def _wider(growth: GrowthPlan) -> str:
    """MM2 leaves it so, silently."""
    has = f"topic {growth.remote_topic} has {growth.now} partitions, topic {growth.topic} at the source {growth.partitions}"
    return f"{has}: nothing is copied to the others"


def _counts(scope: SyncScope, plan: TopicPlan) -> dict[str, int]:
    return {"topics": len(scope.pairs), "created": len(plan.create), "grown": len(plan.grow), "wider": len(plan.wider)}
