"""A run's report: totals, outcome, document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ferry.errors import ExitCode, PartitionsFailed, SourceDataLost, Superseded
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.run_report import LossReport, PartitionFailure, PartitionReport, RunReport

pytestmark = pytest.mark.unit

CLEAN = RunReport(
    "A->B",
    "run-1",
    "2026-01-01T00:00:00+00:00",
    "2026-01-01T00:00:09+00:00",
    "latest",
    partitions=(
        PartitionReport("t", 0, "A.t", 5, 25, counters=Counters(records=18, bytes=900)),
        PartitionReport("t", 1, "A.t", 0, 2, counters=Counters(records=2, bytes=100)),
    ),
    seconds=9.0,
)
LOSS = LossReport("t", 0, 0, 5, "expired at the source")
FAILURE = PartitionFailure("u", 3, "TargetRecreated", "remote topic A.u is gone")


def test_totals_are_sums_over_partitions() -> None:
    totals = CLEAN.document()["totals"]
    assert totals == {"records": 20, "bytes": 1000, "seconds": 9.0, "cpu_seconds": 0.0}


def test_the_document_names_every_counter_of_a_partition_in_one_order() -> None:
    """Readers of the JSON document, and whoever compares two as text, rely on it."""
    delays = MinMeanMax(1, 2.5, 4, 18), MinMeanMax(5, 6.5, 8, 18)
    report = replace(CLEAN, partitions=(PartitionReport("t", 0, "A.t", 5, 25, Counters(18, 900, 2, 3, 4, 5, 6, 7, 8, 9, *delays), 1, 5),))
    assert json.dumps(report.document()["partitions"]) == (
        '[{"topic": "t", "partition": 0, "remote_topic": "A.t", "upstream_start": 5, "upstream_end": 25, '
        '"last_record_age_ms": 1, "last_replication_latency_ms": 5, "records": 18, "bytes": 900, '
        '"transactions": 2, "forwarded": 3, "reframed": 4, "handled": 5, "dropped": 6, "added": 7, "from_target": 8, "rerouted": 9, '
        '"record_age_ms": {"least": 1, "mean": 2.5, "greatest": 4, "count": 18}, '
        '"replication_latency_ms": {"least": 5, "mean": 6.5, "greatest": 8, "count": 18}}]'
    )


def test_a_clean_run_raises_nothing() -> None:
    CLEAN.raise_for_outcome()
    assert CLEAN.exit_code is ExitCode.DONE


@pytest.mark.parametrize(
    ("changes", "code", "error"),
    [
        ({"losses": (LOSS,)}, ExitCode.DATA_LOST, SourceDataLost),
        ({"failed": (FAILURE,)}, ExitCode.PARTLY_FAILED, PartitionsFailed),
        ({"losses": (LOSS,), "failed": (FAILURE,)}, ExitCode.DATA_LOST, SourceDataLost),
        ({"losses": (LOSS,), "superseded": "a newer run took over"}, ExitCode.SUPERSEDED, Superseded),
    ],
)
def test_the_worst_outcome_is_raised(changes: dict[str, object], code: ExitCode, error: type[Exception]) -> None:
    report = replace(CLEAN, **changes)
    assert report.exit_code is code
    with pytest.raises(error):
        report.raise_for_outcome()


def test_messages_name_ranges_and_reasons() -> None:
    messages = [str(problem) for problem in replace(CLEAN, losses=(LOSS,), failed=(FAILURE,)).problems()]
    assert "t-0 offsets 0 to 4" in messages[0]
    assert "u-3: TargetRecreated: remote topic A.u is gone" in messages[1]
