"""Creates and grows remote topics, before a run copies or as a sync of its own, by MirrorSourceConnector's rules.

A new remote topic gets the source's number of partitions and configs (config_plan.py), without those that the target refuses (creation.py).
A remote topic with fewer partitions than its source grows. One with more stays as it is, and is named. Nothing is ever deleted.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from ferry.clusters.admin.broker_defaults import BrokerDefaults, broker_defaults
from ferry.clusters.admin.cluster_admin import EXIST
from ferry.clusters.admin.creation import Creation, create_topics
from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue, WantedTopic
from ferry.clusters.admin.replication import replicas_for, wait_for_leaders, with_key
from ferry.config import Flow
from ferry.config.settings import REMOTE_TOPICS
from ferry.errors import ClusterUnreachable, FerryError, count_of, some_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.permissions.required import rights_on_topic
from ferry.syncs.config_differences import ConfigDifference, config_differences, told
from ferry.syncs.config_plan import NEEDED, ConfigRules, Entries, creation_config
from ferry.syncs.sync_scope import GONE, Topics, sync_scope


@dataclass(frozen=True)
class NewTopicPlan:
    """A remote topic to create."""

    topic: str
    remote_topic: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)
    left: tuple[tuple[str, str], ...] = ()  # (name, reason) of configs that the source sets and the remote topic does not get
    refused: tuple[tuple[str, str], ...] = ()  # likewise, because the target refuses them

    def without(self, refused: Mapping[str, str]) -> "NewTopicPlan":
        """The plan without configs that the target refuses. `refused`: the target's reasons by config."""
        kept = {name: value for name, value in self.config.items() if name not in refused}
        return replace(self, config=kept, refused=(*self.refused, *sorted(refused.items())))


@dataclass(frozen=True)
class GrowthPlan:
    """A remote topic with another number of partitions than its source: `now`."""

    topic: str
    remote_topic: str
    partitions: int
    now: int


@dataclass(frozen=True)
class TopicPlan:
    """What to create and to grow."""

    create: tuple[NewTopicPlan, ...] = ()
    grow: tuple[GrowthPlan, ...] = ()
    wider: tuple[GrowthPlan, ...] = ()  # remote topics that have more partitions than their source, and stay as they are
    # Pairs whose remote topics are not created, because the configs of the source topics cannot be described.
    unread: Mapping[tuple[str, str], FerryError] = field(default_factory=dict)
    # What Ferry assumes of the target's brokers if they do not say it, and what they did although Ferry only asked; empty if nothing.
    assumed: str = ""
    differences: tuple[ConfigDifference, ...] = ()  # how the topics to create will treat records differently

    def document(self) -> dict[str, Any]:
        return {"create": [asdict(entry) for entry in self.create], "grow": [asdict(entry) for entry in self.grow]}

    def without(self, refused: Mapping[str, Mapping[str, str]]) -> "TopicPlan":
        """The plan without configs that the target refuses. `refused`: its reasons by remote topic and config."""
        return replace(self, create=tuple(new.without(refused.get(new.remote_topic, {})) for new in self.create))

    @property
    def refused(self) -> tuple[Skipped, ...]:
        """The configs of topics to create that the target refuses."""
        return tuple(Skipped(f"topic {new.remote_topic} {name}", reason) for new in self.create for name, reason in new.refused)


class TopicFailure(NamedTuple):
    """A remote topic that could not be created or grown; `error` is a class name of ferry.errors."""

    topic: str
    remote_topic: str
    problem: str
    error: str


@dataclass(frozen=True)
class TopicChanges:
    """Topics that were created and grown, failures, and the configs that new topics lack because the target refuses them."""

    created: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    failed: tuple[TopicFailure, ...] = ()
    refused: tuple[Skipped, ...] = ()

    def document(self) -> dict[str, Any]:
        failed = [[failure.topic, failure.remote_topic, failure.problem] for failure in self.failed]
        refused = [[skipped.what, skipped.reason] for skipped in self.refused]
        return {"created": list(self.created), "grown": list(self.grown), "failed": failed, "refused": refused}


def sync_topics(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Create remote topics that are missing, grow those that are too narrow. ClusterUnreachable or ConfigError when it can do nothing."""
    flow = opened.flow
    scope = sync_scope(opened)
    gone = left_alone(flow, scope.pairs, scope.copied, scope.target_topics)
    pairs = [pair for pair in scope.pairs if pair not in gone]
    plan = plan_topics(opened, pairs, scope.source_topics, scope.target_topics)
    plan, failures = without_refused(opened, plan)
    done = TopicChanges(failed=failures) if dry_run else apply_topics(opened, plan)
    refused = {failure.remote_topic for failure in done.failed}
    changes = [_creation(new, flow) for new in plan.create if new.remote_topic not in refused]
    for growth in (one for one in plan.grow if one.remote_topic not in refused):
        reason = f"topic {growth.topic} has {growth.partitions} at the source"
        changes.append(Change(f"topic {growth.remote_topic}", "grow", f"partitions: {growth.now} -> {growth.partitions}", reason))
    skipped = [Skipped(f"topic {remote}", f"{GONE}; ferry.on.target.recreate=restart creates it again") for _, remote in sorted(gone)]
    skipped += [Skipped(f"topic {new.remote_topic} {name}", reason) for new in plan.create for name, reason in new.left]
    skipped += plan.refused
    failed = (SyncFailure(f"topic {failure.remote_topic}", failure.error, failure.problem) for failure in done.failed)
    notices = (*((plan.assumed,) if plan.assumed else ()), *told(plan.differences), *map(_wider, plan.wider))
    counts = {"topics": len(scope.pairs), "created": len(plan.create), "grown": len(plan.grow), "wider": len(plan.wider)}
    return SyncOutcome(tuple(changes), (*scope.skipped, *scope.claimed, *skipped), (*scope.failed, *failed), notices, counts)


def left_alone(
    flow: Flow, pairs: Iterable[tuple[str, str]], copied: Collection[str], target_topics: Collection[str]
) -> frozenset[tuple[str, str]]:
    """The (source topic, remote topic) pairs whose remote topic was copied to and is gone; none if the flow creates such topics again."""
    if flow.on_target_recreate == "restart":
        return frozenset()
    return frozenset((topic, remote) for topic, remote in pairs if topic in copied and remote not in target_topics)


def plan_topics(opened: OpenFlow, selected: Iterable[tuple[str, str]], source_topics: Topics, target_topics: Topics) -> TopicPlan:
    """Compare both listings of (source topic, remote topic) pairs; the configs of topics to create are read from the source."""
    flow, target, pairs = opened.flow, opened.target.admin, list(selected)
    missing = [topic for topic, remote in pairs if remote not in target_topics]
    configs, unread = opened.source.admin.visible_configs(missing) if missing else ({}, {})
    # Without its configs a new remote topic would behave differently from its source.
    left = {pair: unread[pair[0]] for pair in pairs if pair[0] in unread}
    pairs = [pair for pair in pairs if pair not in left]
    defaults = broker_defaults(target) if missing else BrokerDefaults()
    replicas = replicas_for(flow.wanted_replicas(REMOTE_TOPICS), target, [remote for _, remote in pairs if remote not in target_topics])
    rules = ConfigRules(flow.config_property_filter, defaults)
    create, widths = [], []
    for topic, remote in pairs:
        partitions = source_topics[topic].partitions
        if remote in target_topics:
            widths.append(GrowthPlan(topic, remote, partitions, target_topics[remote].partitions))
        else:
            create.append(NewTopicPlan(topic, remote, partitions, replicas, *creation_config(configs.get(topic, {}), rules)))
    grow, wider = _unequal(widths)
    differences = [found for new in create for found in _differences(flow, new, configs.get(new.topic, {}), defaults)]
    return TopicPlan(tuple(create), grow, wider, left, defaults.assumed if create else "", tuple(differences))


def _unequal(widths: Sequence[GrowthPlan]) -> tuple[tuple[GrowthPlan, ...], tuple[GrowthPlan, ...]]:
    """Remote topics with fewer partitions than their source topics, and those with more."""
    return tuple(one for one in widths if one.now < one.partitions), tuple(one for one in widths if one.now > one.partitions)


def _differences(flow: Flow, new: NewTopicPlan, source: Entries, defaults: BrokerDefaults) -> list[ConfigDifference]:
    there = {name: ConfigValue(value, ConfigOrigin.ALL_BROKERS) for name, value in defaults.topics.items()}
    there |= {name: ConfigValue(value, ConfigOrigin.TOPIC) for name, value in new.config.items()}
    return config_differences(flow, new.topic, new.remote_topic, source, there)


def lasting(failures: Iterable[TopicFailure]) -> dict[str, str]:
    """By source topic, why its remote topic cannot be created; without reasons that may pass."""
    return {failure.topic: failure.problem for failure in failures if failure.error != ClusterUnreachable.__name__}


def without_refused(opened: OpenFlow, plan: TopicPlan) -> tuple[TopicPlan, tuple[TopicFailure, ...]]:
    """The plan without configs that the target refuses, and the remote topics that it would refuse to create. Creates nothing.

    Some brokers create topics all the same: then the plan says so.
    """
    target, creation = opened.target.admin, _created(opened, plan, dry_run=True)
    made = target.topics_that(EXIST, (new.remote_topic for new in plan.create)) if plan.create else ()
    if made:
        told = f"cluster {target.alias} now has {some_of(sorted(made))}, though Ferry only asked what it would create"
        told += ": it ignores validate_only, or somebody else creates topics; a run uses them as they are"
        plan = replace(plan, assumed="; ".join(filter(None, (plan.assumed, told))))
    return plan.without(creation.left_out), _failures(plan, creation.problems)


def _created(opened: OpenFlow, plan: TopicPlan, *, dry_run: bool = False) -> Creation:
    flow, target = opened.flow, opened.target.admin
    rights = partial(rights_on_topic, flow)
    topics = []
    for new in plan.create:
        needed = {name: value for name, value in new.config.items() if name in NEEDED}
        optional = {name: value for name, value in new.config.items() if name not in NEEDED}
        topics.append(WantedTopic(new.remote_topic, new.partitions, new.replication_factor, needed, rights, optional))
    creation, wanted = create_topics(target, topics, dry_run=dry_run), flow.wanted_replicas(REMOTE_TOPICS)
    return creation._replace(problems={name: with_key(problem, wanted, target) for name, problem in creation.problems.items()})


def apply_topics(opened: OpenFlow, plan: TopicPlan) -> TopicChanges:
    """Create and grow. A topic that fails does not stop the others."""
    target, creation = opened.target.admin, _created(opened, plan)
    problems = creation.problems | target.create_partitions({growth.remote_topic: growth.partitions for growth in plan.grow})
    created = {new.remote_topic: new.partitions for new in plan.create if new.remote_topic not in problems}
    grown = {growth.remote_topic: growth.partitions for growth in plan.grow if growth.remote_topic not in problems}
    wait_for_leaders(target, created | grown, partial(rights_on_topic, opened.flow))
    return TopicChanges(tuple(created), tuple(grown), _failures(plan, problems), plan.without(creation.left_out).refused)


def _failures(plan: TopicPlan, problems: Mapping[str, FerryError]) -> tuple[TopicFailure, ...]:
    """The `problems` by remote topic, and those of topics whose configs could not be read."""
    changes: list[NewTopicPlan | GrowthPlan] = [*plan.create, *plan.grow]
    upstream = {change.remote_topic: change.topic for change in changes}
    pairs = {(upstream[name], name): problem for name, problem in problems.items()} | dict(plan.unread)
    return tuple(TopicFailure(*pair, str(problem), type(problem).__name__) for pair, problem in pairs.items())


def _creation(new: NewTopicPlan, flow: Flow) -> Change:
    config = "".join(f", {name}={value}" for name, value in new.config.items())
    reason = f"{flow.source.alias} has topic {new.topic}"
    if 0 < new.replication_factor < flow.replication_factor:
        brokers = count_of(new.replication_factor, "broker")
        reason += f"; {flow.target.alias} has {brokers}, or replication.factor would be {flow.replication_factor}"
    replicas = "the brokers' default of replicas" if new.replication_factor < 0 else count_of(new.replication_factor, "replica")
    return Change(f"topic {new.remote_topic}", "create", f"{count_of(new.partitions, 'partition')}, {replicas}{config}", reason)


def _wider(growth: GrowthPlan) -> str:
    """A notice about a topic that is wider than its source. MM2 says nothing about it."""
    has = f"topic {growth.remote_topic} has {count_of(growth.now, 'partition')}, topic {growth.topic} at the source {growth.partitions}"
    return f"{has}: nothing is copied to the others"
