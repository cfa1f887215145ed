"""The lag of a run's history, of the look that its limits go by."""

from __future__ import annotations

import pytest

from ferry.cli.status_text import status_document
from ferry.ledger.run_summary import RunLag
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus

pytestmark = pytest.mark.unit


def behind(topic: str, records: int, seconds: float, headroom: float | None = None) -> PartitionStatus:
    return PartitionStatus(topic, 0, f"A.{topic}", 0, records, records, -1, seconds, headroom, None, 0, heartbeats=topic == "heartbeats")


@pytest.mark.parametrize(
    ("partitions", "lag"),
    [
        ((), RunLag(0, 0.0, None)),
        ((behind("orders", 0, 0.0),), RunLag(0, 0.0, None)),
        ((behind("orders", 5, 60.0, 40.0), behind("clicks", 7, 90.0), behind("idle", 0, 0.0)), RunLag(12, 90.0, 40.0)),
        ((behind("orders", 5, -1.0), behind("idle", 0, 0.0)), RunLag(5, -1.0, None)),
        ((behind("heartbeats", 9, 1e6, -5.0), behind("orders", 5, 60.0)), RunLag(5, 60.0, None)),
    ],
)
def test_sums_without_heartbeats(partitions: tuple[PartitionStatus, ...], lag: RunLag) -> None:
    status = FlowHealth("A->B", partitions)
    assert status.lag.of_run == lag
    totals = status_document(status, 0.0)["totals"]
    assert (totals["lag_records"], totals["lag_seconds"]) == (lag.records, lag.seconds)
    assert totals["lag_bytes"] == (-1 if lag.records else 0)
