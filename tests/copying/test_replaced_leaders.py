"""What a leader shows that was replaced without knowing it stops nothing, and a backfill writes to the ledger before it reads it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.opened import not_opened

from ferry.clusters.logs.held_back import OpenTransaction
from ferry.clusters.net.leaders import Leader
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import load_config
from ferry.copying import abandoned_transactions
from ferry.copying.abandoned_transactions import stop_hanging
from ferry.copying.cursor import PartitionCursor
from ferry.copying.driver import CopyDriver
from ferry.copying.fencing import RunLease
from ferry.copying.lane_messages import PartitionTask, Segment
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit

CONFIG = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A.security.protocol = PLAINTEXT
B.security.protocol = PLAINTEXT
A->B.enabled = true
A->B.topics = t
"""
KEY = TopicPartition("A.t", 0)
DAY = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = OpenTransaction(producer_id=7, epoch=1, start_offset=40, last_timestamp=1_000)


class Changing:
    """Leaders of which another broker knows newer ones."""

    def __init__(self, later: Leader) -> None:
        self._now, self._later, self.asked = Leader(1, 4), later, list[set[str]]()

    def of(self, *_: object) -> Leader:
        return self._now

    async def ask_two(self, topics: set[str]) -> None:
        self.asked.append(topics)
        self._now = self._later


@pytest.mark.parametrize(
    ("shown", "later", "error", "left", "asked"),
    [
        (OPEN, Leader(1, 4), "TransactionHangs", set(), [{"A.t"}]),
        (OPEN, Leader(2, 5), None, {KEY}, [{"A.t"}]),
        (None, Leader(2, 5), None, set(), []),
    ],
    ids=["it leads", "it was replaced", "none is open"],
)
def test_only_the_leader_knows_that_a_transaction_hangs(
    shown: OpenTransaction | None,
    later: Leader,
    error: str | None,
    left: set[TopicPartition],
    asked: list[set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def told(*_: object) -> dict[TopicPartition, OpenTransaction | None]:
        return {KEY: shown}

    monkeypatch.setattr(abandoned_transactions, "open_of", told)
    cursor = PartitionCursor(PartitionTask("t", 0, UUID(int=1), KEY.topic, UUID(int=2), 5, (Segment(ReceiptKind.COPIED, 5, 9),)))
    leaders, target, proven = Changing(later), SimpleNamespace(alias="B"), list[bool]()

    async def prove() -> None:
        assert cursor.failure is None, "nothing is stopped before"
        proven.append(True)

    assert asyncio.run(stop_hanging(target, leaders, {KEY: cursor}, {7}, prove)) == left  # type: ignore[arg-type] - as far as it is asked
    assert (cursor.failure.error if cursor.failure else None, leaders.asked, bool(proven)) == (error, asked, error is not None)


@pytest.fixture
def flow(tmp_path: Path) -> Any:
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    return load_config(config).flow("A->B")


def test_a_mark_of_the_ledger_removes_a_key_that_no_receipt_has_from_each_partition(flow: Any) -> None:
    opened: Any = SimpleNamespace(flow=flow, target=SimpleNamespace(reader=lambda: SimpleNamespace(partitions=lambda _: (0, 1))))
    lease, written = RunLease(opened), list[Any]()
    lease.write = written.append  # type: ignore[method-assign,assignment] - what it would write
    lease.mark_ledger()
    assert written == [{TopicPartition(flow.ledger_topic, number): [(b"mark", None)] for number in (0, 1)}]


@pytest.mark.parametrize("backfill", [True, False])
def test_only_a_backfill_marks_the_ledger_before_it_plans(backfill: bool, flow: Any) -> None:
    done: list[str] = []
    lease = SimpleNamespace(
        take_lanes=dict,
        write_record=lambda **_: done.append("record"),
        mark_ledger=lambda: done.append("mark"),
        last_record=lambda: SimpleNamespace(lanes=0),
        take_more_lanes=lambda _: {},
    )
    request = RunRequest("A->B", "run", **({"backfill": True, "since": DAY, "until": DAY + timedelta(days=1)} if backfill else {}))
    CopyDriver(not_opened(flow), request, InlineLaneRunner(), lambda _: None)._take_over(lease)  # type: ignore[arg-type] - as far as it is asked
    assert done == (["record", "mark"] if backfill else ["record"])


def test_a_broker_that_does_not_know_the_ledger_is_asked_again_later(flow: Any) -> None:
    made = CopyDriver(not_opened(flow), RunRequest("A->B", "run"), InlineLaneRunner(), lambda _: None)
    with pytest.raises(ClusterUnreachable, match=f"cluster B: the broker that was asked does not know {flow.ledger_topic}"):
        made._job(SimpleNamespace(target_topics={}), {})  # type: ignore[arg-type] - as far as it is asked
