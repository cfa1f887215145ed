"""How far behind a flow is at the end of a run, in three numbers for the history: of the look that limits and metrics go by (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.ledger.run_summary import RunLag

if TYPE_CHECKING:
    from ferry.monitoring.status import FlowStatus


def lag_of(status: FlowStatus) -> RunLag:
    """Records are a sum; seconds the oldest (-1: not known of any that lags), headroom the least."""
    behind = [entry for entry in status.judged if entry.lag_records]
    if not behind:
        return RunLag(0, 0.0, None)
    headrooms = [entry.headroom_seconds for entry in behind if entry.headroom_seconds is not None]
    return RunLag(
        records=sum(entry.lag_records for entry in behind),
        seconds=round(max(entry.lag_seconds for entry in behind), 3),
        headroom_seconds=round(min(headrooms), 3) if headrooms else None,
    )
