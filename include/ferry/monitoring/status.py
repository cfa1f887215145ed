"""The status of a flow: lag, headroom, losses, open transactions, stopped partitions. Reads only.

A partition counts as stopped if the plan of a snapshot says that the next run will not copy it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import starmap

from ferry import clock
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import ConfigValue
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow
from ferry.config.settings import DEADLINE_SECONDS
from ferry.copying.committed import RATE_SECONDS, Committed, Progress
from ferry.copying.last_stable_lag import last_stable_lags
from ferry.copying.partition_plan import PartitionFacts, PartitionPlan, plan_partitions
from ferry.copying.request import LATEST, RunRequest
from ferry.copying.run_liveness import RunProof
from ferry.copying.snapshot import FlowSnapshot, rules_of, take_snapshot
from ferry.errors import AuthenticationFailed, ClusterUnreachable, TargetTooNarrow
from ferry.ledger.formats import place_of
from ferry.ledger.losses import read_losses, unacknowledged
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import Receipt, decode_receipt, run_of
from ferry.ledger.recovery_record import Stage
from ferry.ledger.run_report import PartitionFailure, RunReport, Skipped, loss_report
from ferry.ledger.run_summary import DAYS_KEPT
from ferry.ledger.runs_topic import last_end
from ferry.ledger.state import RecoveryRecord
from ferry.ledger.topic_ids import id_of
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit, broken_limits
from ferry.monitoring.missing_reading import read_missing
from ferry.monitoring.runs import copy_speed, last_ended, last_seed, newest_run
from ferry.monitoring.runs_reading import read_recent
from ferry.monitoring.schedule import last_due, longest_pause, next_due
from ferry.pipeline.run_plan import RunPlan, waited_for_second_look
from ferry.wire.ranges import NO_END, end_of_range_at, within
from ferry.wire.ranges import size as held

# No reason to stop: a run adds partitions to the remote topic before it copies.
_MENDED_BY_A_RUN = TargetTooNarrow.__name__
# For the first uncopied records: a slow broker must not hang the command.
READ_SECONDS = 15.0


def flow_status(opened: OpenFlow) -> FlowHealth:
    """As of whole_status, for a person who waits: it says soon that a cluster is away."""
    opened.first_contact()
    return whole_status(opened)


def whole_status(opened: OpenFlow) -> FlowHealth:
    """The status by both clusters, by the ledger and by the runs topic. A missed schedule counts as a broken limit."""
    flow = opened.flow
    recent = read_recent(opened)
    run = recent.following
    follows = None if run is None else {"run_id": run.run_id, "since": run.started, "until": run.follow_until}
    proof = None if run is None else RunProof(opened)
    status, _, _ = read_flow(opened)
    gone = proof is not None and not proof.comes()
    known = (recent.without_proof() if gone else recent).document
    missed = overdue_run(opened, recent.ended)
    copying = recent.copying
    whole = copying is not None and copying.bound == LATEST and not copying.topics
    return replace(
        status,
        following=None if gone else follows,
        gone=follows if gone else None,
        last_run=last_ended(known["runs"]),
        newest_run=newest_run(known["runs"]),
        commits=None if copying is None else commits_of(opened, copying.run_id),
        commits_left=status.lag.records if whole else 0,
        seeded=last_seed(known["runs"]),
        next_due=next_due(flow.schedule, clock.time()),
        on_arrival=flow.copies and bool(flow.watch_seconds),
        last_verify=next(iter(known["verifies"]), None),
        held_groups=known["held"],
        records_per_second=copy_speed(known["runs"]),
        interval_seconds=longest_pause(flow.schedule),
        broken=status.broken if missed is None else (missed, *status.broken),
    )


def commits_of(opened: OpenFlow, run_id: str) -> Progress:
    """What the run committed in the last minute, by the ledger."""
    topic, now, committed = opened.flow.ledger_topic, clock.time(), Committed()
    reader, own = opened.target.reader(), json.dumps(run_id).encode()
    for record in reader.read(topic, reader.offsets_at(topic, round((now - RATE_SECONDS) * 1000)), complete=False):
        if record.value and run_of(record.value) == own:
            committed.add(decode_receipt(record.key, record.value, place_of(opened.flow.target, topic)), record.timestamp / 1000)
    return committed.progress(now)


def overdue_run(opened: OpenFlow, last_ended: int) -> BrokenLimit | None:
    """The deadline as a broken limit if no run has ended since one was due. None without a schedule or a deadline.

    Airflow itself cannot say so while its scheduler is down or the DAG is paused. Every run counts whose summary is younger, also one that
    a person started. `last_ended`: when the last run of RUN_DAYS ended, in ms; -1: none did.
    """
    flow = opened.flow
    deadline = flow.alerts.deadline_seconds
    if deadline is None or flow.schedule is None:
        return None
    moment = datetime.fromtimestamp(clock.time(), UTC)
    due = last_due(flow.schedule, deadline, moment)
    newest = last_ended if last_ended >= 0 else last_end(opened, DAYS_KEPT)
    if newest >= round(due.timestamp() * 1000):
        return None
    return BrokenLimit(DEADLINE_SECONDS, "", round((moment - due).total_seconds(), 3), deadline)


def read_flow(opened: OpenFlow) -> tuple[FlowHealth, FlowSnapshot, tuple[Receipt, ...]]:
    """The status without the runs, with what it was made from: the snapshot, and every loss in the ledger."""
    seen, status = _seen(opened, for_a_run=False)
    found = read_losses(opened, seen.state.flow.losses if seen.state.flow else None)
    losses = tuple(loss_report(loss) for loss in unacknowledged(found.losses, seen.state))
    kept = {TopicPartition(entry.topic, entry.partition): entry.retention_seconds for entry in status.partitions}
    missing, left_out_records = read_missing(opened, seen.facts, found.gaps, kept), _left_out_records(opened.source.admin, seen)
    return replace(status, losses=losses, missing=missing, left_out_records=left_out_records), seen, found.losses


def status_after_run(opened: OpenFlow, report: RunReport | None = None, idle: RunPlan | None = None) -> FlowHealth:
    """The status at the end of a run. Reads no more than a plan does: not the ledger, and only the ends of partitions without lag.

    The losses are those of the run's `report`. `idle`: the plan of a run that copied at most heartbeats. A plan of the whole flow still
    holds then, and the clusters are not asked again.
    """
    known = idle if idle is not None and not idle.request.topics and idle.request.until is None else None
    _, status = _seen(opened, known, for_a_run=True)
    return status if report is None else replace(status, losses=report.losses)


def _seen(opened: OpenFlow, known: RunPlan | None = None, *, for_a_run: bool) -> tuple[FlowSnapshot, FlowHealth]:
    """The snapshot, and the status by it, without losses."""
    flow = opened.flow
    is_heartbeats = flow.is_heartbeats  # made anew each time that it is asked for
    if known is not None:
        seen, behind = known.seen, known.last_stable_lags
    else:
        seen = take_snapshot(opened, RunRequest(flow.name, "status"), stable=False, for_a_run=for_a_run)
        behind = last_stable_lags(opened, seen)
    counted = [facts for facts in seen.facts if not (for_a_run and is_heartbeats(facts.topic))]
    lagging = [facts for facts in counted if first_uncopied(facts) < facts.stable_end]
    among = {facts.topic for facts in (lagging if for_a_run else seen.facts)}
    configs = _configs(flow, opened.source.admin, among, for_a_run=for_a_run)
    ages = first_ages(opened.source, {facts.key: first_uncopied(facts) for facts in lagging})
    open_at = {(entry.topic, entry.partition): entry.stable_end for entry in behind if entry.cluster == flow.source.alias}
    partitions = tuple(
        partition_status(
            facts,
            open_at=open_at.get(facts.key),
            age=ages.get(facts.key, 0.0),
            retention=retention_seconds(configs.get(facts.topic, {})),
            heartbeats=is_heartbeats(facts.topic),
        )
        for facts in seen.facts
    )
    plans = _plans(flow, seen)
    stage, since = _stage(seen.state.recovery)
    return seen, FlowHealth(
        flow.name,
        partitions,
        behind,
        lacking=tuple(starmap(Skipped, seen.lacking)),
        stage=stage,
        stage_since=since,
        left_out=seen.skipped,
        expired=tuple(filter(None, (plan.expired for plan in plans))),
        stopped=_stopped(opened, seen, plans),
        broken=broken_limits(flow.alerts, partitions),
        config=str(flow.source.path),
        ran=known is not None or seen.state.flow is not None or not flow.copies,
    )


def _left_out_records(source: ClusterAdmin, seen: FlowSnapshot) -> int | None:
    """As of FlowHealth. Asks the source only if there are such topics. What another topic of the same name had does not count."""
    found = {entry.topic: seen.source_topics.get(entry.topic) for entry in seen.selection.skipped if entry.expected}
    keys = {TopicPartition(name, number): id_of(topic) for name, topic in found.items() if topic for number in range(topic.partitions)}
    if not keys:
        return None
    (ends, problems), (starts, more) = source.end_offsets(keys), source.earliest_offsets(keys)
    heads = {key: seen.state.heads[key] for key in keys & seen.state.heads.keys()}
    done = {key: head.position for key, head in heads.items() if head.source_topic_id == keys[key]}
    return None if problems or more else sum(max(0, ends[key] - max(starts[key], done.get(key, 0))) for key in keys)


def _stage(record: RecoveryRecord | None) -> tuple[str, int]:
    """The stage of the flow's recovery, and since when."""
    return (Stage.REPLICATING.value, 0) if record is None or record.stage == Stage.REPLICATING else (record.stage, record.since)


def _configs(flow: Flow, source: ClusterAdmin, topics: set[str], *, for_a_run: bool) -> Mapping[str, Mapping[str, ConfigValue]]:
    """Configs of the source's topics. A run needs the right to see them only if the config limits the headroom."""
    if for_a_run and flow.alerts.headroom_seconds is None:
        return source.visible_configs(topics)[0]
    return source.topic_configs(topics)


def first_ages(source: OpenCluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """Age in s of the first record at or after each partition's offset; -1: it has no time, or none could be read within READ_SECONDS."""
    ages = dict.fromkeys(wanted, -1.0)
    try:
        firsts = source.reader().first_records({key: (offset, NO_END) for key, offset in wanted.items()}, READ_SECONDS)
    except (AuthenticationFailed, ClusterUnreachable):
        return ages
    times = {key: first.timestamp for key, first in firsts.items() if isinstance(first, InternalRecord) and first.timestamp >= 0}
    # The age of a time in the future is 0.
    return ages | {key: max(0.0, clock.time() - moment / 1000) for key, moment in times.items()}


def partition_status(
    facts: PartitionFacts, *, open_at: int | None, age: float, retention: float | None, heartbeats: bool = False
) -> PartitionStatus:
    """One partition's status (pure). `age` of the first uncopied record, and `retention`, in seconds."""
    first = first_uncopied(facts)
    lag = max(0, facts.stable_end - first - held(within(facts.guard.excluded, first, facts.stable_end)))
    average = facts.head.record_bytes if facts.head else 0
    size = 0 if not lag else lag * average if average else -1
    headroom = None if retention is None or not lag or age < 0 else retention - age
    return PartitionStatus(
        topic=facts.topic,
        partition=facts.partition,
        remote_topic=facts.remote_topic,
        position=facts.position,
        end=facts.stable_end,
        lag_records=lag,
        lag_bytes=size,
        lag_seconds=age if lag else 0.0,
        headroom_seconds=headroom,
        open_transaction_at=open_at,
        log_start=facts.log_start,
        series=facts.head.series if facts.head else "",
        retention_seconds=retention,
        heartbeats=heartbeats,
    )


def first_uncopied(facts: PartitionFacts) -> int:
    """The first upstream offset that is still to copy: behind what the source dropped, and behind what had come from the target."""
    return end_of_range_at(facts.guard.excluded, max(facts.position, facts.log_start))


def retention_seconds(config: Mapping[str, ConfigValue]) -> float | None:
    """How long a topic with this config keeps records; None: it drops none by time."""
    entry, policy = config.get("retention.ms"), config.get("cleanup.policy")
    # An empty policy deletes nothing (KIP-1161); one that Ferry may not see counts as `delete`.
    kept = policy is not None and policy.value is not None and "delete" not in policy.value
    if kept or entry is None or entry.value is None or int(entry.value) < 0:
        return None
    return int(entry.value) / 1000


def _plans(flow: Flow, seen: FlowSnapshot) -> list[PartitionPlan]:
    return plan_partitions(seen.facts, rules_of(flow, RunRequest(flow.name, "look")))


def _stopped(opened: OpenFlow, seen: FlowSnapshot, plans: Iterable[PartitionPlan]) -> tuple[PartitionFailure, ...]:
    """The stopped partitions of `seen`; only those that a second snapshot shows too, where a committing run may be the cause: while a run
    commits, the head and the group of a partition differ for a moment."""
    flow, found = opened.flow, _failures(seen, plans)
    if not waited_for_second_look(opened, found):
        return found
    later = take_snapshot(opened, RunRequest(flow.name, "look"), stable=False)
    # The text does not identify a failure: it may name the end of a log that grows.
    again = {(failure.topic, failure.partition, failure.error) for failure in _failures(later, _plans(flow, later))}
    return tuple(failure for failure in found if (failure.topic, failure.partition, failure.error) in again)


def _failures(seen: FlowSnapshot, plans: Iterable[PartitionPlan]) -> tuple[PartitionFailure, ...]:
    found = [plan.failure for plan in plans if plan.failure is not None and plan.failure.error != _MENDED_BY_A_RUN]
    return (*found, *seen.denied, *seen.unavailable)
