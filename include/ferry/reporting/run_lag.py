"""How far behind a flow is at the end of a run, in three numbers, for the history: of the same look that limits and metrics go by (pure).

Heartbeats do not count: every run leaves some for the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.policy.naming import policy_for
from ferry.reporting.run_summary import RunLag

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.reporting.status import FlowStatus


def lag_of(flow: Flow, status: FlowStatus) -> RunLag:
    """Records are a sum; seconds the oldest (-1: not known of any that lags), headroom the least."""
    policy = policy_for(flow)
    behind = [entry for entry in status.partitions if entry.lag_records and not policy.is_heartbeats_topic(entry.topic)]
    if not behind:
        return RunLag(0, 0.0, None)
    headrooms = [entry.headroom_seconds for entry in behind if entry.headroom_seconds is not None]
    return RunLag(
        records=sum(entry.lag_records for entry in behind),
        seconds=round(max(entry.lag_seconds for entry in behind), 3),
        headroom_seconds=round(min(headrooms), 3) if headrooms else None,
    )
