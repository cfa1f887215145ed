"""Reads the overview of a flow: the status of every partition, losses, and what would stop the next run."""

from collections import Counter
from dataclasses import asdict, astuple
from typing import Any

from ferry.config import Flow
from ferry.ledger.losses import acknowledgement
from ferry.ledger.run_report import loss_report
from ferry.monitoring.status import FlowReading, read_flow

# So many entries of each list are sent; totals count all.
LOSSES_NAMED = 500
STOPPED_NAMED = 100
OPEN_NAMED = 100


def read_overview(flow: Flow) -> dict[str, Any]:
    """What overview.overview_from takes. ClusterUnreachable, AuthenticationFailed and the like when a cluster cannot be read."""
    found = read_flow(flow)
    losses = _losses(found)
    stopped = found.status.stopped
    unseen = [loss for loss in losses if not loss["acknowledged"]]
    return {
        "rows": [list(astuple(entry)) for entry in found.status.partitions],
        "losses": sorted(losses, key=lambda loss: loss["acknowledged"])[:LOSSES_NAMED],
        "losses_total": len(losses),
        "losses_open": len(unseen),
        "stopped": [asdict(failure) for failure in stopped[:STOPPED_NAMED]],
        "stopped_total": len(stopped),
        "open_transactions": [
            entry.document() for entry in sorted(found.status.last_stable_lags, key=lambda held: not held.overdue)[:OPEN_NAMED]
        ],
        "losses_by_topic": dict(Counter(loss["topic"] for loss in unseen)),
    }


def _losses(found: FlowReading) -> list[dict[str, Any]]:
    lost = sorted(found.losses, key=lambda loss: -loss.max_timestamp)
    known = found.snapshot.state.acknowledged
    return [{**asdict(loss_report(loss)), "run_id": loss.run_id, "acknowledged": acknowledgement(loss) in known} for loss in lost]
