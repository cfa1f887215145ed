"""Reads a flow as a whole: its overview, and by dry runs how topics, schemas, configs and ACLs differ between both sides."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, astuple, replace
from typing import Any

from ferry.config import Flow
from ferry.errors import error_named
from ferry.ledger.losses import acknowledgement
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import loss_report
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.status import read_flow
from ferry.pipeline.syncs import Syncs
from ferry.pipeline.tables import left_out_lines
from ferry.syncs.names import SyncName

# At most this many entries of each list are sent; totals count all.
LOSSES_NAMED = 500
STOPPED_NAMED = 100
OPEN_NAMED = 100
MISSING_NAMED = 2_000
LEFT_OUT_NAMED = 100
DRIFT_NAMED = 500
COMPARED = (SyncName.TOPICS, SyncName.SCHEMAS, SyncName.CONFIGS, SyncName.ACLS)


def read_overview(flow: Flow) -> dict[str, Any]:
    """What overview.overview_from takes. ClusterUnreachable, AuthenticationFailed and the like when a cluster cannot be read."""
    with open_flow(flow) as opened:
        opened.first_contact()  # so that a problem says which cluster answers
        status, snapshot, every_loss = read_flow(opened)
    lost, known = sorted(every_loss, key=lambda loss: -loss.max_timestamp), snapshot.state.acknowledged
    losses = [{**asdict(loss_report(loss)), "run_id": loss.run_id, "acknowledged": acknowledgement(loss) in known} for loss in lost]
    return {
        "rows": [list(astuple(entry)) for entry in status.partitions],
        "losses": sorted(losses, key=lambda loss: loss["acknowledged"])[:LOSSES_NAMED],
        "losses_total": len(losses),
        "health": asdict(_cut(status)),
        "left_out": list(left_out_lines(entry for entry in status.left_out if not entry.expected)),
        "losses_by_topic": dict(Counter(loss["topic"] for loss in losses if not loss["acknowledged"])),
    }


def _cut(health: FlowHealth) -> FlowHealth:
    """With short lists, and without those that an overview has in another form."""
    more, left_out = health.losses[LOSSES_NAMED:], tuple(entry for entry in health.left_out if entry.expected)
    return replace(
        health,
        partitions=(),
        left_out=left_out[:LEFT_OUT_NAMED],
        left_out_cut=len(left_out[LEFT_OUT_NAMED:]),
        last_stable_lags=tuple(sorted(health.last_stable_lags, key=lambda held: not held.overdue)[:OPEN_NAMED]),
        losses=health.losses[:LOSSES_NAMED],
        losses_cut=len(more),
        lost_records_cut=sum(loss.records for loss in more),
        stopped=health.stopped[:STOPPED_NAMED],
        stopped_cut=len(health.stopped[STOPPED_NAMED:]),
        missing=health.missing[:MISSING_NAMED],
    )


def read_drift(flow: Flow) -> dict[str, Any]:
    """What each sync would change now, what it would leave alone and why, and which syncs are off."""
    with open_flow(flow) as opened:
        syncs = Syncs(opened, dry_run=True)
        return drift_of({name.value: syncs.carry_out(name, on_request=True, unless_disabled=True) for name in COMPARED})


def drift_of(outcomes: Mapping[str, SyncOutcome]) -> dict[str, Any]:
    """The outcomes of dry runs as one document (pure)."""
    left = [{**asdict(entry), "sync": name} for name, outcome in outcomes.items() for entry in outcome.skipped]
    failed = [
        {**asdict(entry), "sync": name, "next_step": error_named(entry.error).next_step}
        for name, outcome in outcomes.items()
        for entry in outcome.failed
    ]
    return {
        **{name: [asdict(change) for change in outcome.changes[:DRIFT_NAMED]] for name, outcome in outcomes.items()},
        "totals": {name: len(outcome.changes) for name, outcome in outcomes.items()},
        "left_alone": left[:DRIFT_NAMED],
        "left_alone_total": len(left),
        "failed": failed[:DRIFT_NAMED],
        "failed_total": len(failed),
        "notices": [notice for outcome in outcomes.values() for notice in outcome.notices][:DRIFT_NAMED],
        "off": {name: outcome.left_out for name, outcome in outcomes.items() if outcome.left_out},
    }
