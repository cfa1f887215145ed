"""When a lane that follows looks again, commits and ends."""

from __future__ import annotations

from typing import Any

import pytest
from tests.copying.cursors import COPIED, task

from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.following import (
    AT_THE_END_SECONDS,
    BEHIND_SECONDS,
    CPU_SHARE,
    FIRST_SECONDS,
    GATHERING,
    IDLE_SECONDS,
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    Following,
)
from ferry.copying.lane_messages import Segment
from ferry.copying.transaction import TransactionState
from ferry.errors import PartitionUnavailable

pytestmark = pytest.mark.unit

READY, OPEN = TransactionState.READY, TransactionState.OPEN
NOW, COMMIT_SECONDS = 1_000.0, 0.1


def cursor(*, behind: bool = False, troubled: bool = False) -> PartitionCursor:
    made = PartitionCursor(task(Segment(COPIED, 0, 10)))
    made.is_behind, made.troubled_since = behind, NOW * troubled
    return made


def following(left: float | None = 600.0, *, due: float = 0.0, beat: float = 0.0) -> Following:
    """`due`: seconds from now to the moment at which the transaction is due; `beat`: to the next beat."""
    return Following(None if left is None else NOW + left, COMMIT_SECONDS, NOW + beat, NOW + due)


def pause(state: TransactionState, of: Following, *, waits: bool = False, **how: bool) -> float:
    return of.pause(state, NOW, CursorGroups([cursor(**how)]), waits=waits)


def is_due(of: Following, now: float, cursors: CursorGroups, waits: str = "") -> bool:
    return of.is_due(now, cursors, asking=waits == "asking", sending=waits == "sending")


def test_at_the_end_of_all_partitions_a_lane_pauses_until_something_arrives() -> None:
    assert pause(READY, following()) == AT_THE_END_SECONDS
    assert pause(READY, following(0.2)) == pytest.approx(0.2)


def test_a_lane_that_rests_pauses_until_the_next_beat() -> None:
    assert pause(READY, following(beat=0.08)) == pytest.approx(0.08)
    assert pause(OPEN, following(beat=0.03, due=0.04)) == pytest.approx(0.03)


def test_a_lane_with_a_transaction_pauses_until_it_is_due() -> None:
    assert pause(OPEN, following(due=0.02)) == pytest.approx(0.02)
    assert pause(OPEN, following(due=-0.01)) == pytest.approx(COMMIT_SECONDS * GATHERING - 0.01), "for fetches that are not answered"
    assert pause(OPEN, following(due=0.2, beat=0.2)) == IDLE_SECONDS


@pytest.mark.parametrize("state", [READY, OPEN])
@pytest.mark.parametrize("due", [0.01, 0.0, -5.0])
@pytest.mark.parametrize("how", [{"waits": True}, {"behind": True}, {"troubled": True}])
def test_what_waits_is_looked_at_soon_and_not_at_once(state: TransactionState, due: float, how: dict[str, Any]) -> None:
    """Batches may wait for a leader, or until a pause is over: of a quota, or of a rate limit."""
    assert pause(state, following(due=due), **how) == IDLE_SECONDS


def test_a_lane_that_does_not_follow_looks_soon() -> None:
    assert pause(OPEN, following(None, due=0.01)) == IDLE_SECONDS


def test_a_transaction_that_is_due_and_has_nothing_to_commit_yet_does_not_keep_the_lane_busy() -> None:
    assert pause(OPEN, following(due=-COMMIT_SECONDS)) == IDLE_SECONDS
    assert pause(OPEN, following(due=-5.0)) == IDLE_SECONDS


@pytest.mark.parametrize(
    ("due", "beat", "waits", "cursors", "expected"),
    [
        (0.0, 0.05, "", [cursor()], True),
        (0.01, 0.05, "", [cursor()], False),
        (0.0, 0.05, "", [cursor(), cursor(behind=True)], False),
        (0.0, 0.05, "", [cursor(behind=True, troubled=True)], False),
        (-COMMIT_SECONDS * GATHERING, 0.05, "", [cursor(behind=True, troubled=True)], True),
        (0.0, 0.05, "asking", [cursor()], False),
        (-COMMIT_SECONDS * GATHERING, 0.05, "asking", [cursor()], True),
        (0.0, 0.0, "", [cursor()], True),
        (-5.0, 0.05, "sending", [cursor()], False),
    ],
    ids=[
        "all",
        "early",
        "one is behind",
        "one cannot be read",
        "but not for long",
        "answers to come",
        "late answers",
        "the first after a silence",
        "batches to send",
    ],
)
def test_a_transaction_is_due_when_nothing_more_is_at_hand(
    due: float, beat: float, waits: str, cursors: list[PartitionCursor], expected: bool
) -> None:
    assert is_due(following(due=due, beat=beat), NOW, CursorGroups(cursors), waits) == expected
    assert not is_due(following(None, due=due, beat=beat), NOW, CursorGroups(cursors), waits)


def test_a_transaction_that_is_due_takes_in_what_waits_and_nothing_more() -> None:
    at_the_end, made = CursorGroups([cursor()]), following(due=0.01)
    assert not made.drains(OPEN, NOW, at_the_end, sending=True)
    assert made.drains(OPEN, NOW + 0.01, at_the_end, sending=True)
    assert not made.drains(OPEN, NOW + 0.01, at_the_end, sending=False)
    assert not made.drains(TransactionState.CLOSING, NOW + 0.01, at_the_end, sending=True), "what is fetched meanwhile is for the next one"
    assert not made.drains(OPEN, NOW + 0.01, CursorGroups([cursor(behind=True)]), sending=True)
    assert not following(None).drains(OPEN, NOW, at_the_end, sending=True)


@pytest.mark.parametrize("how", [{"behind": True}, {"troubled": True}])
def test_a_lane_that_is_behind_or_cannot_read_does_not_rest(how: dict[str, Any]) -> None:
    """A beat may be longer than Ferry tries to read a partition."""
    assert following(beat=0.05).rests(NOW, CursorGroups([cursor()]))
    assert not following(beat=0.05).rests(NOW, CursorGroups([cursor(), cursor(**how)]))


def test_a_partition_that_failed_is_not_waited_for() -> None:
    failed = cursor(behind=True)
    failed.stop(PartitionUnavailable, "gone")
    assert is_due(following(beat=0.05), NOW, CursorGroups([failed]))


def test_a_lane_has_one_transaction_a_beat() -> None:
    """However many brokers answer at moments of their own."""
    at_the_end, made = CursorGroups([cursor()]), following(due=-5.0)
    made.fetches(NOW)
    made.opens(NOW)
    assert is_due(made, NOW, at_the_end)
    made.opens(NOW + 0.03)
    assert not is_due(made, NOW + 0.09, at_the_end)
    assert not is_due(made, NOW + 0.1, at_the_end), "a beat begins"
    made.fetches(NOW + 0.1)
    assert is_due(made, NOW + 0.101, at_the_end)
    made.opens(NOW + 5)
    made.fetches(NOW + 5)
    assert is_due(made, NOW + 5, at_the_end), "after a silence at once"


def test_transactions_that_were_full_early_delay_no_later_one() -> None:
    """A lane that catches up may commit many in a beat."""
    at_the_end, made = CursorGroups([cursor()]), following(due=-5.0)
    for _ in range(100):
        made.opens(NOW)
    made.fetches(NOW + 0.1)
    assert is_due(made, NOW + 0.101, at_the_end)


def test_a_lane_ends_once() -> None:
    well, failed = CursorGroups([cursor()]), CursorGroups([cursor(), cursor()])
    failed.all[0].stop(PartitionUnavailable, "away")
    for now, cursors in ((NOW + 1, well), (NOW - 1, failed)):
        made = following(0.0)
        assert not made.ends(NOW - 2, 600.0, well)
        assert made.ends(now, 600.0, cursors)
        assert made.early == (cursors is failed)
        assert not made.goes_on
        assert not made.ends(now, 600.0, cursors)


@pytest.mark.parametrize("grows", [True, False])
def test_a_lane_that_is_behind_for_long_ends_if_it_may_grow(grows: bool) -> None:
    made, behind, kept_up = following(), CursorGroups([cursor(behind=True), cursor()]), CursorGroups([cursor()])
    made.grows = grows
    assert not made.ends(NOW, 600.0, behind)
    assert not made.ends(NOW + BEHIND_SECONDS - 0.1, 600.0, kept_up)
    assert not made.ends(NOW + BEHIND_SECONDS + 1, 600.0, behind)
    assert made.ends(NOW + 2 * BEHIND_SECONDS, 600.0, behind) == grows
    assert made.fell_behind == made.early == grows


def test_a_wall_clock_that_is_late_lets_a_lane_follow_no_longer() -> None:
    made = following(hours := 3_600.0)  # it was late when the lane began,
    at_the_end = CursorGroups([cursor()])
    assert not made.ends(NOW, 5.0, at_the_end)  # and is right again
    assert not made.ends(NOW + 1, hours, at_the_end)  # and late again
    assert made.ends(NOW + 5.1, hours, at_the_end)


def beat_after(beats: int, cpu_seconds: float, took: float, given: int | None = None, round_trip: float = 0.0) -> float:
    """The length of a beat after some, each of which cost so much CPU time, and whose commit took so long."""
    made, now, cpu, at_the_end = Following.of(NOW + 600, given, grows=False), NOW, 0.0, CursorGroups([cursor()])
    for _ in range(beats):
        now += made.commit_seconds
        made.fetches(now)
        made.opens(now)
        assert is_due(made, now + 0.001, at_the_end)
        cpu += cpu_seconds
        made.commits(now + 0.001 + took, cpu, round_trip)
    return made.commit_seconds


def test_a_beat_that_nobody_has_set_is_as_short_as_its_share_of_a_core() -> None:
    assert beat_after(1, 0.0, 0.0) < FIRST_SECONDS
    assert beat_after(200, 0.001, 0.0) == SHORTEST_SECONDS
    assert beat_after(200, CPU_SHARE * 0.1, 0.0) == pytest.approx(0.1, rel=0.3)
    assert beat_after(200, 1.0, 0.0) == LONGEST_SECONDS


def test_a_beat_is_longer_while_the_target_is_busy_and_not_because_it_is_far() -> None:
    assert beat_after(200, 0.0, 0.1) > 0.15
    assert beat_after(200, 0.0, 0.1, round_trip=0.05) == SHORTEST_SECONDS


@pytest.mark.parametrize("cpu_seconds", [0.0, 1.0])
def test_a_beat_that_is_set_stays(cpu_seconds: float) -> None:
    assert beat_after(50, cpu_seconds, 0.0, given=250) == 0.25
