"""A run in a few hundred bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferry.errors import NewerFormat, UnreadableRecord
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.run_report import LossReport, PartitionFailure, PartitionReport, RunReport
from ferry.ledger.run_summary import RunLag, RunSummary, decode_run_part, encode_run_part, state_of, summary_of

pytestmark = pytest.mark.unit

BEGIN, END = "2026-11-21T10:00:00.000+00:00", "2026-11-21T10:01:00.000+00:00"
SYNC = {
    "sync": "acls",
    "changes": [{}] * 3,
    "skipped": [],
    "failed": [],
    "left_out": "",
    "counts": {"changes": 9, "skipped": 2, "failed": 0},
}


def report(**more: Any) -> RunReport:
    return RunReport("A->B", "r", BEGIN, END, "latest", **more)


def copied(topic: str, records: int, partition: int = 0) -> PartitionReport:
    return PartitionReport(topic, partition, f"A.{topic}", 0, records, Counters(records, records * 10))


def test_a_summary_survives_its_record_unchanged() -> None:
    found = summary_of(
        report(
            partitions=(copied("a", 5), copied("b", 9), copied("a", 6, 1)),
            losses=(LossReport("a", 0, 5, 9, "gone"),),
            failed=(PartitionFailure("b", 0, "BatchRefused", "too large"),),
            syncs={"acls": SYNC},
            seconds=2.5,
            cpu_seconds=1.5,
        ),
        RunLag(4, 2.5, 60.0),
    )
    key, value = encode_run_part("r", found)
    assert key == b"summary:r"
    assert decode_run_part(RunSummary, value, "here") == found
    assert found.topics == (("a", 11, 110), ("b", 9, 90))
    assert found.syncs == {"acls": {"changes": 9, "skipped": 2, "failed": 0, "left_out": ""}}
    assert (found.records, found.bytes, found.state, found.lag.records) == (20, 200, "data lost", 4)


def test_a_summary_tells_how_old_records_were_when_they_were_copied() -> None:
    old = Counters(3, 30, replication_latency_ms=MinMeanMax(1_000, 4_000.0, 9_000, 3))
    young = Counters(1, 10, replication_latency_ms=MinMeanMax(0, 0.0, 0, 1))
    partitions = tuple(PartitionReport("a", number, "A.a", 0, 4, one) for number, one in enumerate((old, young, Counters(5, 50))))
    assert summary_of(report(partitions=partitions), RunLag()).delay_seconds == 3.0
    found = summary_of(report(partitions=(copied("a", 5),)), RunLag())
    assert found.delay_seconds is None
    _, value = encode_run_part("r", found)
    before = {name: value for name, value in json.loads(value).items() if name != "delay_seconds"}  # as an older Ferry wrote it
    assert decode_run_part(RunSummary, json.dumps(before).encode(), "here") == found


def test_a_summary_is_small_whatever_the_run_was() -> None:
    many = range(10_000)
    found = summary_of(
        report(
            partitions=tuple(copied(f"a-rather-long-name-of-a-topic-{number:05d}", number) for number in many),
            losses=tuple(LossReport("t", number, 0, 1, "reason " * 1000) for number in many),
            failed=tuple(PartitionFailure("t", number, "BatchRefused", "problem " * 1000) for number in many),
        ),
        RunLag(),
    )
    assert len(encode_run_part("r", found)[1]) < 25_000
    assert (found.topics_total, found.losses_total, found.failed_total) == (10_000, 10_000, 10_000)
    assert found.topics[0][0] == "a-rather-long-name-of-a-topic-09999"
    assert found.records == sum(many)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (report(), "nothing new"),
        (report(partitions=(copied("a", 5),)), "done"),
        (report(partitions=(copied("a", 5),), failed=(PartitionFailure("b", 0, "BatchRefused", ""),)), "partly failed"),
        (report(syncs={"acls": {**SYNC, "failed": [{"what": "x", "problem": "y"}]}}), "partly failed"),
        (report(losses=(LossReport("a", 0, 5, 9, "gone"),), failed=(PartitionFailure("b", 0, "BatchRefused", ""),)), "data lost"),
        (report(failed=(PartitionFailure("", -1, "ClusterUnreachable", ""),), losses=(LossReport("a", 0, 5, 9, ""),)), "failed"),
        (report(superseded="s took over", failed=(PartitionFailure("", -1, "Superseded", ""),)), "superseded"),
    ],
)
def test_the_state_of_a_run_is_its_worst_outcome(found: RunReport, state: str) -> None:
    assert state_of(found) == state


def test_what_is_no_summary_is_refused() -> None:
    value = json.loads(encode_run_part("r", summary_of(report(), RunLag()))[1])
    assert decode_run_part(RunSummary, json.dumps({**value, "of_tomorrow": 1}).encode(), "here").run_id == "r"
    with pytest.raises(NewerFormat):
        decode_run_part(RunSummary, json.dumps({**value, "version": 2}).encode(), "here")
    for damage in ({"records": "many"}, {"lag": None}, {"topics": [["a"]]}, {"syncs": []}, {"seconds": None}):
        with pytest.raises(UnreadableRecord):
            decode_run_part(RunSummary, json.dumps({**value, **damage}).encode(), "here")
