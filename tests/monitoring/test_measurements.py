"""MM2's metric names and tags, of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.run_report import PartitionReport, RunReport
from ferry.ledger.sync_outcome import Measurement
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.measurements import run_measurements, status_measurements

pytestmark = pytest.mark.unit

TAGS = {"source": "A", "target": "B", "topic": "A.t", "partition": "3"}


def of_partitions(*partitions: PartitionReport, seconds: float = 0.0) -> list[Measurement]:
    report = RunReport("A->B", "r", "", "2026-01-05T00:00:00+00:00", "latest", partitions, seconds=seconds)
    return [one for one in run_measurements(report, "A", "B") if "topic" in one.tags]


def test_each_remote_partition_has_one_set_of_metrics() -> None:
    partition = PartitionReport(
        "t",
        3,
        "A.t",
        0,
        10,
        counters=Counters(records=10, bytes=500, record_age_ms=MinMeanMax(1, 2, 4, 10), replication_latency_ms=MinMeanMax(5, 6.25, 9, 10)),
    )
    idle = PartitionReport("t", 4, "A.t", 0, 10)
    assert of_partitions(partition, idle, seconds=4.0) == [
        Measurement("record-count", 10, TAGS, counter=True),
        Measurement("byte-count", 500, TAGS, counter=True),
        Measurement("record-bytes-avg", 50.0, TAGS),
        Measurement("record-rate", 2.5, TAGS),
        Measurement("byte-rate", 125.0, TAGS),
        Measurement("record-age-ms-min", 1, TAGS),
        Measurement("record-age-ms-max", 4, TAGS),
        Measurement("record-age-ms-avg", 2, TAGS),
        Measurement("replication-latency-ms-min", 5, TAGS),
        Measurement("replication-latency-ms-max", 9, TAGS),
        Measurement("replication-latency-ms-avg", 6.2, TAGS),
    ]


def test_records_without_timestamps_have_no_age() -> None:
    partition = PartitionReport("t", 0, "A.t", 0, 1, counters=Counters(records=1))
    assert {one.name for one in of_partitions(partition)} == {"record-count", "byte-count", "record-bytes-avg"}


def test_headroom_is_the_whole_retention_again_once_nothing_is_uncopied() -> None:
    """A gauge keeps its last value: nobody would see that it is no longer short."""
    behind = PartitionStatus("t", 0, "A.t", 0, 9, 9, -1, 90.0, 10.0, None, 0, retention_seconds=100.0)
    copied = replace(behind, position=9, lag_records=0, lag_seconds=0.0, headroom_seconds=None)
    endless, unread = replace(copied, retention_seconds=None), replace(behind, lag_seconds=-1.0, headroom_seconds=None)

    def told(partition: PartitionStatus) -> list[float]:
        found = status_measurements(FlowHealth("A->B", (partition,)), "A", "B")
        return [one.value for one in found if one.name == "headroom-seconds"]

    assert [told(partition) for partition in (behind, copied, endless, unread)] == [[10.0], [100.0], [], []]
