"""Reading a flow's landscape: the status of every partition, losses, and what would stop the next run. Reads only."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ferry.clusters.admin import ClusterAdmin
from ferry.copying.driver import rules_of
from ferry.copying.plan import plan_partitions
from ferry.copying.receipts import is_loss
from ferry.copying.request import RunRequest
from ferry.copying.survey import Survey, survey
from ferry.page.landscape import ROW_FIELDS
from ferry.recovery.losses import acknowledgement
from ferry.reporting.assemble import loss_report
from ferry.reporting.run_report import PartitionFailure
from ferry.reporting.status import Look, look_at

if TYPE_CHECKING:
    from ferry.config import Flow

# Of each list; totals are whole.
LOSSES_NAMED = 500
STOPPED_NAMED = 100
OPEN_NAMED = 100
# A run grows the remote topic before it copies: this is no reason to stop.
_MENDED_BY_A_RUN = "TargetTooNarrow"
_SEEMS_SO_WHILE_A_RUN_COMMITS = frozenset({"PositionDisagrees", "SourceTruncated"})
# Longer than a commit takes.
SECOND_LOOK_SECONDS = 2.0


def read_landscape(flow: Flow) -> dict[str, Any]:
    """As of landscape.landscape_from. ClusterUnreachable and its kin when a cluster cannot be read."""
    look = look_at(flow)
    cells = attrgetter(*ROW_FIELDS)
    losses = _losses(look)
    stopped = _stopped(flow, look)
    unseen = [loss for loss in losses if not loss["acknowledged"]]
    return {
        "rows": [list(cells(entry)) for entry in look.status.partitions],
        "losses": sorted(losses, key=lambda loss: loss["acknowledged"])[:LOSSES_NAMED],
        "losses_total": len(losses),
        "losses_open": len(unseen),
        "stopped": [asdict(failure) for failure in stopped[:STOPPED_NAMED]],
        "stopped_total": len(stopped),
        "open_transactions": [entry.document() for entry in sorted(look.status.held_back, key=lambda held: not held.overdue)[:OPEN_NAMED]],
        "losses_by_topic": dict(Counter(loss["topic"] for loss in unseen)),
        "heartbeats": sorted({entry.topic for entry in look.status.partitions if entry.heartbeats}),
    }


def _losses(look: Look) -> list[dict[str, Any]]:
    lost = sorted((receipt for receipt in look.receipts if is_loss(receipt)), key=lambda loss: -loss.max_timestamp)
    known = look.survey.state.acknowledged
    return [{**asdict(loss_report(loss)), "run_id": loss.run_id, "acknowledged": acknowledgement(loss) in known} for loss in lost]


def _stopped(flow: Flow, look: Look) -> list[PartitionFailure]:
    """What both of two looks find: while a run commits, head and group of a partition differ for a moment."""
    found = _failures(flow, look.survey)
    if not any(failure.error in _SEEMS_SO_WHILE_A_RUN_COMMITS for failure in found):
        return found
    time.sleep(SECOND_LOOK_SECONDS)
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        again = set(_failures(flow, survey(flow, RunRequest(flow.name, "page"), source, target, settled=False)))
    return [failure for failure in found if failure in again]


def _failures(flow: Flow, seen: Survey) -> list[PartitionFailure]:
    plans = plan_partitions(seen.facts, rules_of(flow, RunRequest(flow.name, "page")))
    found = [
        PartitionFailure(plan.facts.topic, plan.facts.partition, type(plan.failure).__name__, plan.failure.problem)
        for plan in plans
        if plan.failure is not None and type(plan.failure).__name__ != _MENDED_BY_A_RUN
    ]
    missing = seen.partition_problems.items()
    return [*found, *seen.denied, *(PartitionFailure(topic, number, "PartitionUnavailable", why) for (topic, number), why in missing)]
