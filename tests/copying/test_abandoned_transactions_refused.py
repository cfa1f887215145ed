"""Positions that the target refuses stop their partitions by name; the lane's others go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.clusters.groups.coordination import OutcomeUnknown, PositionsRefused
from ferry.copying.abandoned_transactions import stop_refused
from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Failure, PartitionTask, Segment
from ferry.errors import NotAuthorized
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit

TARGET: Any = SimpleNamespace(
    granting=lambda right: f"grant {right}", denied=lambda doing, right: NotAuthorized(f"{doing}: not allowed, grant {right}")
)


def cursors() -> dict[tuple[str, int], PartitionCursor]:
    tasks = [PartitionTask("t", n, UUID(int=1), "A.t", UUID(int=2), 5, (Segment(ReceiptKind.COPIED, 5, 9),)) for n in range(3)]
    return {task.remote: PartitionCursor(task) for task in tasks}


def test_the_refused_partitions_stop_and_the_others_do_not() -> None:
    lane = cursors()
    problem = PositionsRefused((("A.t", 0), ("A.t", 2)), "Write")
    with pytest.raises(OutcomeUnknown) as raised:
        stop_refused(problem, lane, TARGET)
    assert (str(raised.value), raised.value.__cause__) == (str(problem), problem)
    refused = Failure("BatchRefused", "remote topic A.t, source offset 5: not allowed: grant Write on topic A.t", passing=False)
    assert [cursor.failure for cursor in lane.values()] == [refused, None, refused]


def test_a_remote_topic_that_is_gone_was_deleted() -> None:
    lane = cursors()
    with pytest.raises(OutcomeUnknown):
        stop_refused(PositionsRefused((("A.t", 1),)), lane, TARGET)
    assert lane["A.t", 1].failure == Failure("TargetRecreated", "remote topic A.t was deleted", passing=False)


def test_without_a_right_on_the_ledger_no_partition_can_go_on() -> None:
    problem = PositionsRefused((("ledger", 3),), "Write")
    with pytest.raises(NotAuthorized, match="writing to ledger: not allowed, grant Write on topic ledger") as raised:
        stop_refused(problem, cursors(), TARGET)
    assert raised.value.__cause__ is problem
