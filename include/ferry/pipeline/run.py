"""The steps of one run, as the CLI and Airflow's tasks call them: plan, prepare topics, copy, report.

Each step stands alone: it reads what it needs from the clusters, so steps may run in different processes and be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.replication import broker_default
from ferry.copying.driver import CopyDriver, rules_of
from ferry.copying.lane_runner import InlineLaneRunner, LaneRunner
from ferry.copying.last_stable_lag import HeldBack, held_back, overdue
from ferry.copying.plan import PartitionPlan, plan_partitions, stopped_without_topic
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.ledger.run_report import PartitionFailure, RunReport, Skipped
from ferry.ledger.runs_topic import read_run_records
from ferry.ledger.topics import ensure_internal_topics, internal_topics
from ferry.pipeline.report import assemble_report
from ferry.syncs.few_replicas import FewReplicas, few_replicas, wanted_on_target
from ferry.syncs.topic_plan import TopicPlan
from ferry.syncs.topics import TopicChanges, apply_topics, plan_topics, why_missing

if TYPE_CHECKING:
    from ferry.config import Flow

PLAN_VERSION = 1


@dataclass(frozen=True)
class RunPlan:
    """What a run would do, from a look that waits for nobody. `heartbeats` are the source's topics that hold heartbeats."""

    flow: str
    request: RunRequest
    topics: TopicPlan
    partitions: tuple[PartitionPlan, ...]
    skipped: tuple[Skipped, ...]
    failed: tuple[PartitionFailure, ...]
    heartbeats: frozenset[str] = frozenset()
    held_back: tuple[HeldBack, ...] = ()
    internal_topics_missing: bool = False
    few_replicas: tuple[FewReplicas, ...] = ()

    @property
    def needs_copy(self) -> bool:
        """Whether there are records to copy beyond heartbeats: else Spark is not started.

        Every run leaves a heartbeat at the source for the next one; the lanes take such a handful along in the driver's process.
        """
        return any(plan.segments for plan in self.partitions if plan.failure is None and plan.facts.topic not in self.heartbeats)

    @property
    def needs_preparation(self) -> bool:
        """Whether topics must be created or grown before the copy, or starts recorded and heartbeats copied instead of it."""
        alone = not self.needs_copy and any(plan.has_work for plan in self.partitions)
        return alone or bool(self.topics.create or self.topics.grow) or (self.needs_copy and self.internal_topics_missing)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "version": PLAN_VERSION,
            "flow": self.flow,
            "run_id": self.request.run_id,
            "bound": self.request.bound,
            "needs_copy": self.needs_copy,
            "topics": self.topics.document(),
            "partitions": [_planned(plan) for plan in self.partitions if plan.failure is None],
            "skipped": [vars(skipped) for skipped in self.skipped],
            "failed": [vars(failure) for failure in self.failed],
            "open_transactions": [entry.document() for entry in self.held_back],
            "few_replicas": [{"topic": few.topic, "key": few.key, "has": few.has, "wanted": few.wanted} for few in self.few_replicas],
        }


def plan_run(flow: Flow, request: RunRequest) -> RunPlan:
    """What a run would do now, and which open transactions are in its way. Writes nothing."""
    return _planned_run(flow, request, whole=True)


def _planned_run(flow: Flow, request: RunRequest, *, whole: bool) -> RunPlan:
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        seen = take_snapshot(flow, request, source, target, settled=False, for_a_run=True)
        topics = _plan_topics(flow, seen, source, target)
        refused = why_missing(flow, topics, target) if topics.create or topics.unread else {}
        behind = held_back(flow, seen, source, target) if whole else ()
        few = _few_replicas(flow, seen, target) if whole else ()
    plans = stopped_without_topic(plan_partitions(seen.facts, rules_of(flow, request)), refused)
    failed = [
        PartitionFailure(plan.facts.topic, plan.facts.partition, type(plan.failure).__name__, plan.failure.problem)
        for plan in plans
        if plan.failure is not None and not _will_be_grown(plan, topics)
    ]
    failed += [*seen.denied, *overdue(behind)]
    failed += [PartitionFailure(topic, number, "PartitionUnavailable", why) for (topic, number), why in seen.partition_problems.items()]
    skipped = tuple(Skipped(what, reason) for what, reason in (*seen.selection.skipped, *seen.lacking))
    heartbeats = frozenset(topic for topic in seen.source_topics if flow.policy.is_heartbeats_topic(topic))
    missing = not internal_topics(flow) <= set(seen.target_topics)
    return RunPlan(flow.name, request, topics, tuple(plans), skipped, tuple(failed), heartbeats, behind, missing, few)


def prepare_topics(flow: Flow, request: RunRequest, *, spark_follows: bool | None = None) -> TopicChanges:
    """Create and grow remote topics, and Ferry's own; where Spark is not needed, record starts of new partitions and copy heartbeats.

    `spark_follows`: whether a copy by Spark comes next, where the caller knows it; else the run is planned again.
    """
    changes = _create_and_grow(flow, request)
    if not (_planned_run(flow, request, whole=False).needs_copy if spark_follows is None else spark_follows):
        copy_ranges(flow, request, InlineLaneRunner(), lambda _: None)
    return changes


def prepare_remote_topics(flow: Flow, request: RunRequest) -> FlowSnapshot:
    """Create and grow topics, and say what both clusters look like then."""
    _create_and_grow(flow, request)
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        return take_snapshot(flow, request, source, target, settled=False)


def copy_ranges(flow: Flow, request: RunRequest, runner: LaneRunner, log: Callable[[str], None]) -> None:
    """The whole copy of one try; its outcome stands in the runs topic. FerryError when it could not be carried out."""
    CopyDriver(flow, request, runner, log).run()


def read_report(flow: Flow, request: RunRequest) -> RunReport:
    """What the run with this id did so far, over all its tries."""
    return assemble_report(flow, request)


def idle_report(flow: Flow, plan: RunPlan) -> RunReport:
    """The report of a run that had nothing to copy: what it left out, what could not go on, what its syncs did."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    request = plan.request
    syncs = read_run_records(flow, request.run_id).syncs
    return RunReport(plan.flow, request.run_id, now, now, request.bound, skipped=plan.skipped, failed=plan.failed, syncs=syncs)


def _create_and_grow(flow: Flow, request: RunRequest) -> TopicChanges:
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        ensure_internal_topics(flow, target)
        seen = take_snapshot(flow, request, source, target, settled=False)
        return apply_topics(flow, _plan_topics(flow, seen, source, target), target)


def _plan_topics(flow: Flow, seen: FlowSnapshot, source: ClusterAdmin, target: ClusterAdmin) -> TopicPlan:
    """Remote topics that heads still speak of are not created again unless the flow says so."""
    lost = {
        facts.topic
        for facts in seen.facts
        if facts.head is not None and facts.remote_topic_id is None and flow.on_target_recreate != "restart"
    }
    selected = tuple(pair for pair in seen.selection.selected if pair[0] not in lost)
    return plan_topics(flow, selected, seen.source_topics, seen.target_topics, source=source, target=target)


def _few_replicas(flow: Flow, seen: FlowSnapshot, target: ClusterAdmin) -> tuple[FewReplicas, ...]:
    wanted = wanted_on_target(flow, (remote for _, remote in seen.selection.selected))
    default = broker_default(target) if any(one.factor < 0 for one in wanted.values()) else 1
    return few_replicas(wanted, seen.target_topics, target.brokers(), default)


def _will_be_grown(plan: PartitionPlan, topics: TopicPlan) -> bool:
    return type(plan.failure).__name__ == "TargetTooNarrow" and topics.grows(plan.facts.remote_topic)


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
