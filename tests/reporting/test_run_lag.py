"""The lag of a run's history, of the look that its limits go by."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config import Flow, load_config
from ferry.reporting.run_lag import lag_of
from ferry.reporting.run_summary import RunLag
from ferry.reporting.status import FlowStatus, PartitionStatus

pytestmark = pytest.mark.unit


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n", encoding="latin-1")
    return load_config(path).flows[0]


def behind(topic: str, records: int, seconds: float, headroom: float | None = None) -> PartitionStatus:
    return PartitionStatus(topic, 0, f"A.{topic}", 0, records, records, -1, seconds, headroom, None, 0)


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
def test_sums_without_heartbeats(flow: Flow, partitions: tuple[PartitionStatus, ...], lag: RunLag) -> None:
    status = FlowStatus(flow.name, partitions, ())
    assert lag_of(flow, status) == lag
    whole = status.document()["totals"]["lag_seconds"]
    assert whole == max([entry.lag_seconds for entry in partitions if entry.lag_records] or [0.0])
