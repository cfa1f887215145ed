"""The status of a flow: lag, headroom, losses, open transactions, stopped partitions. Reads only."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.api_versions import Lack
from ferry.clusters.describe import ConfigValue
from ferry.config import Flow
from ferry.copying.last_stable_lag import LastStableLag, last_stable_lags
from ferry.copying.plan import PartitionFacts
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.ledger.losses import read_losses, unacknowledged
from ferry.ledger.receipts import Receipt
from ferry.ledger.run_report import LossReport, PartitionFailure, RunReport, loss_report
from ferry.ledger.stages import Stage
from ferry.monitoring.lag import Lag, PartitionStatus, counted, lag_of
from ferry.monitoring.limits import BrokenLimit, broken_limits
from ferry.monitoring.missed_schedule import overdue_run
from ferry.monitoring.record_ages import first_ages
from ferry.monitoring.stopped_partitions import stopped_partitions
from ferry.pipeline.plan import RunPlan
from ferry.wire.ranges import end_of_range_at, within
from ferry.wire.ranges import size as held

STATUS_VERSION = 1


@dataclass(frozen=True)
class FlowStatus:
    """A whole flow.

    `broken`: the limits of `ferry.alert.*` that it exceeds. `lacking`: what the releases of its clusters cannot do.
    `stopped`: partitions (-1: whole topics) that the next run will not copy.
    `stage`: a ferry.ledger.stages.Stage; `stage_since` (ms): when groups began to move, 0 while the flow replicates.
    """

    flow: str
    partitions: tuple[PartitionStatus, ...]
    losses: tuple[LossReport, ...]
    last_stable_lags: tuple[LastStableLag, ...] = ()
    broken: tuple[BrokenLimit, ...] = ()
    lacking: tuple[Lack, ...] = ()
    stage: str = Stage.REPLICATING.value
    stage_since: int = 0
    stopped: tuple[PartitionFailure, ...] = ()

    @property
    def counted(self) -> tuple[PartitionStatus, ...]:
        """The partitions whose lag counts: all but those of heartbeats."""
        return counted(self.partitions)

    @property
    def lag(self) -> Lag:
        """Of all partitions whose lag counts."""
        return lag_of(self.counted)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        fields = asdict(self)
        del fields["last_stable_lags"], fields["broken"]
        fields["lacking"] = [lack._asdict() for lack in self.lacking]
        lag = self.lag
        totals = {"lag_records": lag.records, "lag_bytes": lag.known_bytes, "lag_seconds": lag.seconds}
        lists = {
            "open_transactions": [entry.document() for entry in self.last_stable_lags],
            "limits_broken": [entry.document() for entry in self.broken],
        }
        return {"version": STATUS_VERSION, **fields, **lists, "totals": totals}


@dataclass(frozen=True)
class FlowReading:
    """A status and what it was made from: the snapshot, and every loss in the ledger."""

    status: FlowStatus
    snapshot: FlowSnapshot
    losses: tuple[Receipt, ...]


def flow_status(flow: Flow) -> FlowStatus:
    """The status by both clusters and by the losses in the ledger. A missed schedule counts as a broken limit."""
    status = read_flow(flow).status
    missed = overdue_run(flow)
    return status if missed is None else replace(status, broken=(missed, *status.broken))


def read_flow(flow: Flow) -> FlowReading:
    """The status without the missed schedule, with what it was made from."""
    seen, partitions, behind = _seen(flow, for_a_run=False)
    lost = read_losses(flow, seen.state.flow.losses if seen.state.flow else None).losses
    losses = tuple(loss_report(loss) for loss in unacknowledged(lost, seen.state))
    return FlowReading(_status(flow, seen, partitions, losses, behind), seen, lost)


def status_after_run(flow: Flow, report: RunReport | None = None, idle: RunPlan | None = None) -> FlowStatus:
    """The status at the end of a run. Reads no more than a plan does: not the ledger, and only the ends of partitions without lag.

    The losses are those of the run's `report`. `idle`: the plan of a run that had nothing to do. A plan of the whole flow still holds
    then, and the clusters are not asked again.
    """
    known = idle if idle is not None and not idle.request.topics and idle.request.until is None else None
    seen, partitions, behind = _seen(flow, known, for_a_run=True)
    losses = report.losses if report is not None else ()
    return _status(flow, seen, partitions, losses, behind)


def _status(
    flow: Flow,
    seen: FlowSnapshot,
    partitions: tuple[PartitionStatus, ...],
    losses: tuple[LossReport, ...],
    behind: tuple[LastStableLag, ...],
) -> FlowStatus:
    return FlowStatus(
        flow.name,
        partitions,
        losses,
        behind,
        broken_limits(flow.alerts, partitions),
        seen.lacking,
        *_stage(seen),
        stopped_partitions(flow, seen),
    )


def _stage(seen: FlowSnapshot) -> tuple[str, int]:
    record = seen.state.recovery
    return (Stage.REPLICATING.value, 0) if record is None or record.stage == Stage.REPLICATING else (record.stage, record.since)


def _seen(
    flow: Flow, known: RunPlan | None = None, *, for_a_run: bool
) -> tuple[FlowSnapshot, tuple[PartitionStatus, ...], tuple[LastStableLag, ...]]:
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        if known is not None:
            seen, behind = known.seen, known.last_stable_lags
        else:
            seen = take_snapshot(flow, RunRequest(flow.name, "status"), source, target, settled=False, for_a_run=for_a_run)
            behind = last_stable_lags(flow, seen, source, target)
        lagging = [facts for facts in seen.facts if first_uncopied(facts) < facts.stable_end]
        configs = _configs(flow, source, {facts.topic for facts in (lagging if for_a_run else seen.facts)}, for_a_run=for_a_run)
    ages = first_ages(flow, {(facts.topic, facts.partition): first_uncopied(facts) for facts in lagging})
    policy = flow.policy
    open_at = {(entry.topic, entry.partition): entry.stable_end for entry in behind if entry.cluster == flow.source.alias}
    partitions = tuple(
        partition_status(
            facts,
            open_at=open_at.get((facts.topic, facts.partition)),
            age=ages.get((facts.topic, facts.partition), 0.0),
            retention=retention_seconds(configs.get(facts.topic, {})),
            heartbeats=policy.is_heartbeats_topic(facts.topic),
        )
        for facts in seen.facts
    )
    return seen, partitions, behind


def _configs(flow: Flow, source: ClusterAdmin, topics: set[str], *, for_a_run: bool) -> Mapping[str, Mapping[str, ConfigValue]]:
    """Configs of the source's topics. A run needs the right to see them only if the config limits the headroom."""
    if for_a_run and flow.alerts.headroom_seconds is None:
        return source.visible_configs(topics)[0]
    return source.topic_configs(topics)


def partition_status(
    facts: PartitionFacts,
    *,
    open_at: int | None,
    age: float,
    retention: float | None,
    heartbeats: bool = False,
) -> PartitionStatus:
    """One partition's status (pure). `age` of the first uncopied record, and `retention`, in seconds."""
    position = position_of(facts)
    first = first_uncopied(facts)
    lag = max(0, facts.stable_end - first - held(within(facts.guard.excluded, first, facts.stable_end)))
    average = facts.head.record_bytes if facts.head else 0
    size = 0 if not lag else lag * average if average else -1
    headroom = None if retention is None or not lag or age < 0 else retention - age
    return PartitionStatus(
        topic=facts.topic,
        partition=facts.partition,
        remote_topic=facts.remote_topic,
        position=position,
        end=facts.stable_end,
        lag_records=lag,
        lag_bytes=size,
        lag_seconds=age if lag else 0.0,
        headroom_seconds=headroom,
        open_transaction_at=open_at,
        log_start=facts.log_start,
        retention_seconds=retention,
        heartbeats=heartbeats,
    )


def position_of(facts: PartitionFacts) -> int:
    """The next upstream offset to copy."""
    return facts.head.position if facts.head else facts.committed if facts.committed is not None else facts.start


def first_uncopied(facts: PartitionFacts) -> int:
    """The first upstream offset that is still to copy: behind what the source dropped, and behind what had come from the target."""
    return end_of_range_at(facts.guard.excluded, max(position_of(facts), facts.log_start))


def retention_seconds(config: Mapping[str, ConfigValue]) -> float | None:
    """How long a topic with this config keeps records; None: it drops none by time."""
    entry, policy = config.get("retention.ms"), config.get("cleanup.policy")
    if entry is None or entry.value is None or int(entry.value) < 0 or (policy is not None and policy.value == "compact"):
        return None
    return int(entry.value) / 1000
