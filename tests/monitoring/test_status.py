"""Lag and headroom of one partition."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.page import made_up_reads as made_up

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.partition_plan import PartitionFacts
from ferry.ledger.receipts import encode_receipt
from ferry.ledger.state import Head
from ferry.monitoring.status import commits_of, first_uncopied, partition_status

pytestmark = pytest.mark.unit


def facts(position: int, log_start: int, end: int, record_bytes: int = 0) -> PartitionFacts:
    head = Head("t", 0, position, str(UUID(int=1)), "A.t", "r", record_bytes=record_bytes)
    return PartitionFacts("t", 0, UUID(int=1), "A.t", UUID(int=2), 1, 0, log_start, end, end, log_start, head=head)


def test_lag_counts_only_records_that_the_source_still_has() -> None:
    status = partition_status(facts(10, 40, 100, record_bytes=50), open_at=None, age=30.0, retention=100.0)
    assert (status.lag_records, status.lag_bytes, status.lag_seconds, status.headroom_seconds) == (60, 3000, 30.0, 70.0)
    assert status.open_transaction_at is None


def test_nothing_to_copy_has_no_lag() -> None:
    status = partition_status(facts(100, 0, 100), open_at=None, age=0.0, retention=100.0)
    assert (status.lag_records, status.lag_bytes, status.lag_seconds, status.headroom_seconds) == (0, 0, 0.0, None)


def test_records_that_came_from_the_target_are_no_lag() -> None:
    """Its records may be as old as they like: the first of this side's own counts."""
    returning = replace(facts(0, 0, 100), guard=PartitionGuard(excluded=((0, 90), (95, 99))))
    assert first_uncopied(returning) == 90
    status = partition_status(returning, open_at=None, age=3.0, retention=10.0)
    assert (status.lag_records, status.lag_seconds, status.headroom_seconds) == (6, 3.0, 7.0)


def test_everything_in_a_topic_that_was_created_again_is_behind() -> None:
    """Its position counts the records of the topic before it."""
    again = replace(facts(50, 0, 20), topic_id=UUID(int=3))
    status = partition_status(again, open_at=None, age=3.0, retention=None)
    assert (status.position, status.lag_records, status.lag_seconds) == (0, 20, 3.0)


def test_an_open_source_transaction_is_named() -> None:
    status = partition_status(facts(100, 0, 100), open_at=100, age=0.0, retention=None)
    assert status.open_transaction_at == 100


def test_unknown_sizes_are_said_to_be_unknown() -> None:
    status = partition_status(facts(0, 0, 10), open_at=None, age=-1.0, retention=50.0)
    assert (status.lag_bytes, status.headroom_seconds) == (-1, None)


def test_the_commits_of_the_run_in_the_last_minute_give_its_speed() -> None:
    ago = {"r1": (20, 10), "other": (5,)}
    commits = [(run, seconds) for run, moments in ago.items() for seconds in moments]
    receipts = [replace(made_up.receipt("orders", 0, 100 * at, 100 * at + 100), run_id=run) for at, (run, _) in enumerate(commits)]
    times = [round((time.time() - seconds) * 1000) for _, seconds in commits]
    records = [InternalRecord(0, at, times[at], *encode_receipt(receipt)) for at, receipt in enumerate(receipts)]
    reader = SimpleNamespace(offsets_at=lambda *_: {0: 0}, read=lambda *_, **__: records)
    flow = SimpleNamespace(ledger_topic="ledger", target=SimpleNamespace(alias="B"))
    opened: Any = SimpleNamespace(flow=flow, target=SimpleNamespace(reader=lambda: reader))
    found = commits_of(opened, "r1")
    assert (found.records, found.rate) == (200, 10.0), "100 records in the 10 s after the first commit"
    assert commits_of(opened, "r2").since is None, "it committed nothing"
