"""What people read about a run: short, however many partitions it copied, and the same on the command line and in Airflow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.counters import Counters
from ferry.ledger.run_report import LossReport, PartitionFailure, PartitionReport, RepeatedReport, RunReport, Skipped
from ferry.ledger.sync_outcome import Change, SyncOutcome
from ferry.pipeline.tables import LISTED_PARTITIONS, Table, left_out_lines, report_parts, sum_line, sync_line

pytestmark = pytest.mark.unit


def report(partitions: int) -> RunReport:
    found = [PartitionReport("t", number, "A.t", 0, 1, Counters(records=1, bytes=number)) for number in range(partitions)]
    return RunReport("A->B", "run", "", "", "", partitions=tuple(found))


@pytest.mark.parametrize(("partitions", "left_out"), [(1, 0), (LISTED_PARTITIONS, 0), (LISTED_PARTITIONS + 2_000, 2_000)])
def test_the_partitions_with_most_bytes_are_listed_in_order(partitions: int, left_out: int) -> None:
    table, *lines = report_parts(report(partitions))
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == list(range(left_out, partitions))
    assert [line for line in lines if "2,000 partitions with fewer bytes" in line] == lines[:-1]
    assert len(lines) == 1 + bool(left_out)
    assert str(lines[-1]).startswith(f"{partitions:,} record")


@pytest.mark.parametrize(("taken_over", "line"), [("newer", "run newer took the flow over"), ("", "another command took the flow over")])
def test_who_took_the_flow_over(taken_over: str, line: str) -> None:
    assert line in list(report_parts(replace(report(1), taken_over=taken_over)))
    assert line in list(report_parts(replace(report(0), taken_over=taken_over))), "also of a run that had copied nothing yet"


def test_a_run_in_one_line() -> None:
    copied = replace(report(3), seconds=0.5, cpu_seconds=0.2, partitions=report(1_500_001).partitions[-2:])
    assert sum_line(copied) == "2 records, 2,999,999 bytes in 0.5 s (6.0 MB/s, CPU 0.2 s), 2 partitions"
    assert sum_line(report(0)) == "0 records, 0 bytes in 0.0 s (CPU 0.0 s), 0 partitions"
    failed = (PartitionFailure("orders", 3, "TopicMissing", "gone"), *(PartitionFailure(f"t{number}", -1, "E", "p") for number in range(6)))
    ill = replace(report(1), failed=failed, losses=(LossReport("t", 0, 5, 9, "deleted"),))
    told = "failed: orders-3, topic t0, topic t1, topic t2, topic t3 and 2 more; lost: t-0 offsets 5 to 8"
    assert sum_line(ill) == f"1 record, 0 bytes in 0.0 s (CPU 0.0 s), 1 partition; {told}"
    assert list(report_parts(copied))[-1] == sum_line(copied)


def test_what_the_target_may_have_twice() -> None:
    repeated = (RepeatedReport("t", 0, "A.t", 5, 9), RepeatedReport("t", 1, "A.t", 3, 4))
    told = [line for line in report_parts(replace(report(1), repeated=repeated)) if "twice" in str(line)]
    assert told == ["copied once more, so the target may have these records twice: A.t-0 offsets 5 to 8; A.t-1 offset 3"]


def test_a_cell_of_none_is_empty_and_a_truth_is_no_number() -> None:
    table = Table("t", ("a", "b", "c", "d"), [(None, True, 1_000, 0.5)])
    assert table.texts == [["", "True", "1,000", "0.5"]]


def test_a_sync_in_one_line() -> None:
    done = SyncOutcome((Change("topic t", "set"),) * 2, (Skipped("topic u", "excluded"),), sync="configs")
    assert sync_line(done.document()) == "configs: 2 changed, 1 left alone; the first left alone: topic u: excluded"
    assert sync_line(SyncOutcome(sync="acls").document()) == "acls: 0 changed"


def test_topics_that_are_left_out() -> None:
    skipped = [
        *(Skipped(name, "not in the property topics", False) for name in "abcde"),
        Skipped("__x", "internal topic", False),
        *(
            Skipped(name, "internal topic", False)
            for name in ("__consumer_offsets", "mm2-ferry-state.B.internal", "B.checkpoints.internal")
        ),
        Skipped("y", "in the property topics.exclude, though topics names it", True),
        Skipped("z", "not in the property topics, but it was copied before", True),
        Skipped("w", "ours, though topics names it", False),
        Skipped("topic heartbeats", "the cluster does not show it"),
    ]
    assert list(left_out_lines(skipped)) == [
        "topic y is not copied: in the property topics.exclude, though topics names it",
        "topic z is not copied: not in the property topics, but it was copied before",
        (
            "left out: 7 topics of the source: a, b, c and 2 more (not in the property topics); "
            "__x (internal topic); w (ours, though topics names it)"
        ),
    ]
    assert not list(left_out_lines(skipped[6:9]))
