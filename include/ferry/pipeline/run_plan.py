"""The plan of one run: what it would copy, which remote topics it would make, and what is in its way. Writes nothing."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ferry import clock
from ferry.clusters.admin.broker_defaults import broker_defaults
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.groups.coordination import ask_positions
from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import ClientRole, Flow
from ferry.copying.last_stable_lag import last_stable_lags, overdue
from ferry.copying.partition_plan import PartitionPlan, plan_partitions, stopped_without_topic
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, rules_of, take_snapshot
from ferry.errors import ConfigError, FerryError, PositionDisagrees, SourceTruncated, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.ledger.runs_topic import since_last_run
from ferry.ledger.topics import own_topics
from ferry.pipeline.few_replicas import FewReplicas, few_replicas, wanted_on_target
from ferry.pipeline.wrong_topics import WrongTopic, names_on, wrong_topics
from ferry.syncs.config_differences import CLEANUP, COMPARED, ConfigDifference, config_differences, told, tombstones_kept, tombstones_lost
from ferry.syncs.topics import TopicPlan, lasting, left_alone, plan_topics, without_refused

PLAN_VERSION = 1
KEYLESS = "set cleanup.policy=delete on the remote topic until they are copied, or leave them out: ferry.abort.on.send.failure=false"
# For a look at the first record of new compacted topics: a leader that hangs must not hold up the plan.
LOOK_SECONDS = 5.0
_SEEMS_SO_WHILE_A_RUN_COMMITS = frozenset({PositionDisagrees.__name__, SourceTruncated.__name__})
# Longer than a commit takes.
SECOND_LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class RunPlan:
    """What a run would do, decided without waiting for open transactions, from what `seen` says of both clusters."""

    flow: str
    request: RunRequest
    topics: TopicPlan
    partitions: tuple[PartitionPlan, ...]
    skipped: tuple[Skipped, ...]
    failed: tuple[PartitionFailure, ...]
    seen: FlowSnapshot = field(repr=False, compare=False)
    heartbeats: frozenset[str] = frozenset()
    last_stable_lags: tuple[LastStableLag, ...] = ()
    internal_topics_missing: bool = False
    follows: bool = False
    spark_offsets: int = 0
    few_replicas: tuple[FewReplicas, ...] = ()
    wrong_topics: tuple[WrongTopic, ...] = ()
    differences: tuple[ConfigDifference, ...] = ()
    keyless: tuple[str, ...] = ()
    tombstones: str = ""

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for people before the first write, about things that stop nothing."""
        left = [facts.start - facts.log_start for facts in (plan.facts for plan in self.partitions if plan.seed) if facts.head is None]
        out = f"{count_of(sum(left), 'offset')} in {count_of(sum(map(bool, left)), 'partition')}"
        start = (
            f"the start of the flow (ferry.start or auto.offset.reset) leaves out {out}: ferry backfill copies them" if sum(left) else ""
        )
        assumed = tuple(filter(None, (self.seen.alike, self.topics.assumed, start, self.tombstones)))
        few = (f"{entry}: ferry doctor prints the command that adds the missing ones" for entry in self.few_replicas)
        wrong = (f"{entry}; {entry.fix}" for entry in self.wrong_topics)
        refused = "its first record to copy has no key, or an empty one: the target takes none without a key"
        keyless = (f"topic {topic} is compacted, and {refused}; {KEYLESS}" for topic in self.keyless)
        return (*assumed, *wrong, *keyless, *told(entry for entry in self.differences if not entry.refused), *few)

    @property
    def needs_copy(self) -> bool:
        """Whether there are records to copy beyond heartbeats. If not, Spark is not started.

        Every run leaves a heartbeat at the source for the next one; the lanes take such a handful along in the driver's process. A run that
        follows waits for records, and for topics if there are none yet.
        """
        return self.follows or any(plan.segments for plan in self._copied())

    @property
    def is_small(self) -> bool:
        """Whether a command copies this in its own process by default: few offsets, in a run that does not follow."""
        return not self.follows and sum(plan.offsets for plan in self._copied()) < self.spark_offsets

    def _copied(self) -> Iterator[PartitionPlan]:
        return (plan for plan in self.partitions if plan.failure is None and plan.facts.topic not in self.heartbeats)

    @property
    def needs_preparation(self) -> bool:
        """Whether topics must be created or grown before the copy, or starts recorded and heartbeats copied instead of it."""
        alone = not self.needs_copy and (self.seen.begins or any(plan.has_work for plan in self.partitions))
        return alone or bool(self.topics.create or self.topics.grow) or (self.needs_copy and self.internal_topics_missing)

    def document(self) -> dict[str, Any]:
        return {
            "version": PLAN_VERSION,
            "flow": self.flow,
            "run_id": self.request.run_id,
            "bound": self.request.bound,
            "needs_copy": self.needs_copy,
            "is_small": self.is_small,
            "topics": self.topics.document(),
            "partitions": [_planned(plan) for plan in self.partitions if plan.failure is None],
            "skipped": [vars(skipped) for skipped in self.skipped],
            "failed": [vars(failure) for failure in self.failed],
            "open_transactions": [entry.document() for entry in self.last_stable_lags],
            "few_replicas": [{"topic": few.topic, "key": few.key, "has": few.has, "wanted": few.wanted} for few in self.few_replicas],
            "wrong_topics": [wrong.problem for wrong in self.wrong_topics],
            "differences": [vars(difference) for difference in self.differences],
            "tombstones": self.tombstones,
        }


def waited_for_second_look(opened: OpenFlow, failures: Iterable[PartitionFailure]) -> bool:
    """Whether these may only seem so while a run commits: then the head, the group and the end of a partition differ for a moment.

    Or while a broker that the others have lost goes on as leader of Ferry's own topics: then its state is old. If so, this function waits
    longer than a commit takes, and until each transaction of now has its markers in the state topic and in the group. It asks two brokers
    for the leaders, and `opened` forgets what it has read.
    """
    if not any(failure.error in _SEEMS_SO_WHILE_A_RUN_COMMITS for failure in failures):
        return False
    clock.sleep(SECOND_LOOK_SECONDS)
    opened.target.ask(_ask_two, (opened.flow.state_topic, opened.flow.ledger_topic), role=ClientRole.CONSUMER)
    with suppress(FerryError):  # the second look shows what is known
        state, positions = opened.ask_anew(stable=True), ask_positions(opened.target, opened.flow.position_group, stable=True)
        state.answer()
        positions.answer()
    opened.anew()
    return True


async def _ask_two(connection: ClusterConnection, topics: Iterable[str]) -> None:
    with suppress(RequestNotSent, RequestLost):
        await connection.leaders.ask_two(topics)


def plan_run(opened: OpenFlow, request: RunRequest) -> RunPlan:
    """What a run would do now, and which open transactions hold it back. ConfigError if the ledger or state topic is not compacted."""
    plan = _plan(opened, request)
    return _plan(opened, request) if waited_for_second_look(opened, plan.failed) else plan


def _plan(opened: OpenFlow, request: RunRequest) -> RunPlan:
    flow = opened.flow
    seen = take_snapshot(opened, request, stable=False, for_a_run=True, beside=names_on(flow, flow.target))
    topics = plan_remote_topics(opened, seen)
    topics, failures = without_refused(opened, topics) if topics.create or topics.unread else (topics, ())
    behind = last_stable_lags(opened, seen)
    few, wrong = _few_replicas(flow, seen, opened.target.admin), _wrong_topics(flow, seen)
    differences, tombstones = _differences(opened, seen)
    grown = {growth.remote_topic: growth.partitions for growth in topics.grow}
    facts = [replace(entry, remote_partitions=grown.get(entry.remote_topic, entry.remote_partitions)) for entry in seen.facts]
    plans = stopped_without_topic(plan_partitions(facts, rules_of(flow, request)), lasting(failures))
    failed = [plan.failure for plan in plans if plan.failure is not None]
    failed += [*seen.denied, *overdue(behind), *seen.unavailable]
    return RunPlan(
        flow=flow.name,
        request=request,
        topics=topics,
        partitions=tuple(plans),
        skipped=seen.skipped,
        failed=tuple(failed),
        seen=seen,
        heartbeats=frozenset(filter(flow.is_heartbeats, seen.source_topics)),
        last_stable_lags=behind,
        internal_topics_missing=not own_topics(flow).keys() <= seen.target_topics.keys(),
        follows=request.follow_until is not None and flow.copies,
        spark_offsets=flow.spark_offsets,
        few_replicas=few,
        wrong_topics=wrong,
        differences=(*topics.differences, *differences),
        tombstones=tombstones,
        keyless=_without_keys(opened.source, topics, plans),
    )


def plan_remote_topics(opened: OpenFlow, seen: FlowSnapshot) -> TopicPlan:
    """Which remote topics a run creates or grows. One that Ferry has copied to and that is gone: only if the flow restarts such topics."""
    flow, selected = opened.flow, seen.selection.selected
    gone = left_alone(flow, selected, {facts.topic for facts in seen.facts if facts.head is not None}, seen.target_topics)
    selected = tuple(pair for pair in selected if pair not in gone)
    return plan_topics(opened, selected, seen.source_topics, seen.target_topics)


def _differences(opened: OpenFlow, seen: FlowSnapshot) -> tuple[list[ConfigDifference], str]:
    """The differences of remote topics that exist, and the text of tombstones_lost.

    A source topic whose config the user may not describe is not compared; the config sync reports it.
    """
    flow, heartbeats = opened.flow, opened.flow.is_heartbeats
    pairs = [(topic, remote) for topic, remote in seen.selection.selected if remote in seen.configs and not heartbeats(topic)]
    configs, _ = opened.source.admin.visible_configs([topic for topic, _ in pairs], keys=COMPARED) if pairs else ({}, {})
    compared = ((topic, remote, configs[topic], seen.configs[remote]) for topic, remote in pairs if topic in configs)
    begun = {facts.topic for facts in seen.facts if facts.head is not None}
    kept = tombstones_kept(flow, {topic: entries for topic, entries in configs.items() if topic in begun})
    found = [difference for entry in compared for difference in config_differences(flow, *entry)]
    return found, tombstones_lost(kept, since_last_run(opened, kept)) if kept else ""


def _without_keys(source: OpenCluster, topics: TopicPlan, plans: Iterable[PartitionPlan]) -> tuple[str, ...]:
    """New compacted topics whose first record has no key: it is older than the compaction, and the cleaner has not come to it."""
    compacted = {new.topic for new in topics.create if "compact" in new.config.get(CLEANUP, "")}
    begun = [plan for plan in plans if plan.segments and plan.facts.topic in compacted]
    spans = {plan.facts.key: (plan.segments[0].start, plan.segments[0].end) for plan in begun}
    firsts: dict[TopicPartition, InternalRecord | FerryError | None] = {}
    if spans:
        with suppress(FerryError):
            firsts = source.reader().first_records(spans, LOOK_SECONDS)
    return tuple(sorted({key.topic for key, first in firsts.items() if isinstance(first, InternalRecord) and not first.key}))


def _few_replicas(flow: Flow, seen: FlowSnapshot, target: ClusterAdmin) -> tuple[FewReplicas, ...]:
    wanted = wanted_on_target(flow, (remote for _, remote in seen.selection.selected))
    default = broker_defaults(target).replication_factor if any(one.factor < 0 for one in wanted.values()) else 1
    return few_replicas(wanted, seen.target_topics, target.brokers(seen.target_topics), default)


def _wrong_topics(flow: Flow, seen: FlowSnapshot) -> tuple[WrongTopic, ...]:
    found = wrong_topics(flow, flow.target, seen.target_topics, seen.configs)
    for wrong in found:
        if wrong.stops:
            raise ConfigError(f"cluster {flow.target.alias}: {wrong}; {wrong.fix}")
    return found


def _planned(plan: PartitionPlan) -> dict[str, Any]:
    facts = plan.facts
    return {
        "topic": facts.topic,
        "partition": facts.partition,
        "remote_topic": facts.remote_topic,
        "position": plan.position,
        "end": facts.end,
        "offsets": plan.offsets,
        "from_target": plan.from_target,
        "ranges": [[segment.kind.value, segment.start, segment.end] for segment in plan.segments],
        "seed": plan.seed.reason if plan.seed else None,
        "notes": list(plan.notes),
    }
