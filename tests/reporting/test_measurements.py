"""MM2's metric names and tags, of a run."""

from __future__ import annotations

import pytest

from ferry.copying.spread import Spread
from ferry.reporting.measurements import Measurement, measurements
from ferry.reporting.run_report import PartitionReport, RunReport

pytestmark = pytest.mark.unit

TAGS = {"source": "A", "target": "B", "topic": "A.t", "partition": "3"}


def test_one_set_for_each_remote_partition() -> None:
    partition = PartitionReport(
        "t", 3, "A.t", 0, 10, records=10, bytes=500, record_age_ms=Spread(1, 2, 4, 10), replication_latency_ms=Spread(5, 6.25, 9, 10)
    )
    idle = PartitionReport("t", 4, "A.t", 0, 10)
    found = measurements(RunReport("A->B", "r", "", "", "latest", (partition, idle), seconds=4.0), "A", "B")
    assert found == [
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
    report = RunReport("A->B", "r", "", "", "latest", (PartitionReport("t", 0, "A.t", 0, 1, records=1),))
    assert {one.name for one in measurements(report, "A", "B")} == {"record-count", "byte-count", "record-bytes-avg"}
