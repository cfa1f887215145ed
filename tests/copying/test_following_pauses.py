"""When a lane that follows looks again, commits and ends."""

from __future__ import annotations

from typing import Any

import pytest
from tests.copying.cursors import COPIED, task

from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.following import AT_THE_END_SECONDS, IDLE_SECONDS, Following
from ferry.copying.model import Segment
from ferry.copying.transaction import TransactionState
from ferry.errors import PartitionUnavailable

pytestmark = pytest.mark.unit

READY, OPEN = TransactionState.READY, TransactionState.OPEN
NOW, COMMIT_SECONDS = 1_000.0, 0.1


def cursor(*, behind: bool = False, troubled: bool = False) -> PartitionCursor:
    made = PartitionCursor(task(Segment(COPIED, 0, 10)))
    made.is_behind, made.troubled_since = behind, NOW * troubled
    return made


def pause(state: TransactionState, age: float = 0.0, *, waits: bool = False, left: float | None = 600.0, **how: bool) -> float:
    following = Following(None if left is None else NOW + left, COMMIT_SECONDS)
    return following.pause(state, NOW - age, NOW, CursorGroups([cursor(**how)]), waits=waits)


def test_at_the_end_of_all_partitions_a_lane_rests_until_something_arrives() -> None:
    assert pause(READY) == AT_THE_END_SECONDS
    assert pause(READY, left=0.2) == pytest.approx(0.2)
    assert pause(OPEN, COMMIT_SECONDS - 0.02) == pytest.approx(0.02), "until the transaction is old enough"
    assert pause(OPEN, COMMIT_SECONDS - IDLE_SECONDS - 0.02) == IDLE_SECONDS


@pytest.mark.parametrize("state", [READY, OPEN])
@pytest.mark.parametrize("age", [0.0, COMMIT_SECONDS - 0.01, COMMIT_SECONDS, 5.0])
@pytest.mark.parametrize("how", [{"waits": True}, {"behind": True}, {"troubled": True}, {"left": None}])
def test_what_waits_is_looked_at_soon_and_not_at_once(state: TransactionState, age: float, how: dict[str, Any]) -> None:
    """Batches may wait for a leader, or until a pause is over: of a quota, or of a rate limit."""
    assert pause(state, age, **how) == IDLE_SECONDS


def test_a_transaction_that_is_old_and_has_nothing_to_commit_yet_does_not_keep_the_lane_busy() -> None:
    assert pause(OPEN, COMMIT_SECONDS) == IDLE_SECONDS
    assert pause(OPEN, 5.0) == IDLE_SECONDS


@pytest.mark.parametrize(
    ("age", "cursors", "due"),
    [
        (COMMIT_SECONDS, [cursor()], True),
        (COMMIT_SECONDS - 0.01, [cursor()], False),
        (COMMIT_SECONDS, [cursor(), cursor(behind=True)], False),
        (COMMIT_SECONDS, [cursor(behind=True, troubled=True)], True),
    ],
)
def test_a_transaction_is_due_when_nothing_more_is_at_hand(age: float, cursors: list[PartitionCursor], due: bool) -> None:
    assert Following(NOW + 1, COMMIT_SECONDS).is_due(NOW - age, NOW, CursorGroups(cursors)) == due
    assert not Following(None, COMMIT_SECONDS).is_due(NOW - age, NOW, CursorGroups(cursors))


def test_a_partition_that_failed_is_not_waited_for() -> None:
    failed = cursor(behind=True)
    failed.stop(PartitionUnavailable, "gone")
    assert Following(NOW + 1, COMMIT_SECONDS).is_due(NOW - 1, NOW, CursorGroups([failed]))


def test_a_lane_ends_once() -> None:
    for now, failed in ((NOW + 1, False), (NOW - 1, True)):
        following = Following(NOW, COMMIT_SECONDS)
        assert not following.ends(NOW - 2, failed=False)
        assert following.ends(now, failed=failed)
        assert not following.goes_on
        assert not following.ends(now, failed=failed)
