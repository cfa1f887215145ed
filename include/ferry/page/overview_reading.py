"""Reading a flow's landscape: the status of every partition, losses, and what would stop the next run. Reads only."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, astuple
from typing import TYPE_CHECKING, Any

from ferry.ledger.acknowledgements import acknowledgement
from ferry.ledger.run_report import loss_report
from ferry.monitoring.status import Look, look_at

if TYPE_CHECKING:
    from ferry.config import Flow

# Of each list; totals are whole.
LOSSES_NAMED = 500
STOPPED_NAMED = 100
OPEN_NAMED = 100


def read_landscape(flow: Flow) -> dict[str, Any]:
    """As of landscape.landscape_from. ClusterUnreachable and its kin when a cluster cannot be read."""
    look = look_at(flow)
    losses = _losses(look)
    stopped = look.status.stopped
    unseen = [loss for loss in losses if not loss["acknowledged"]]
    return {
        "rows": [list(astuple(entry)) for entry in look.status.partitions],
        "losses": sorted(losses, key=lambda loss: loss["acknowledged"])[:LOSSES_NAMED],
        "losses_total": len(losses),
        "losses_open": len(unseen),
        "stopped": [asdict(failure) for failure in stopped[:STOPPED_NAMED]],
        "stopped_total": len(stopped),
        "open_transactions": [entry.document() for entry in sorted(look.status.held_back, key=lambda held: not held.overdue)[:OPEN_NAMED]],
        "losses_by_topic": dict(Counter(loss["topic"] for loss in unseen)),
    }


def _losses(look: Look) -> list[dict[str, Any]]:
    lost = sorted(look.losses, key=lambda loss: -loss.max_timestamp)
    known = look.snapshot.state.acknowledged
    return [{**asdict(loss_report(loss)), "run_id": loss.run_id, "acknowledged": acknowledgement(loss) in known} for loss in lost]
