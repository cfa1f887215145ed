"""What the flow's record says when groups begin to move, and where the way back begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import RecoveryStopped
from ferry.ledger.recovery_record import Event, begun, done_groups, ended, has_ended, not_home
from ferry.ledger.state import CutEnds, FlowState, GroupTaken, RecoveryRecord
from ferry.recovery.reverse import start_of

pytestmark = pytest.mark.unit

NEW = RecoveryRecord("A->B", "", "", "replicating", "", 0, 0)


def moved(record: RecoveryRecord, *events: tuple[Event, str]) -> RecoveryRecord:
    for event, name in events:
        begins = event.value.endswith("begins")
        record = begun(FlowState(), record, event, name, 7) if begins else ended(record, event, "done", 9)
    return record


def test_a_failover_has_one_name_and_its_failback_another() -> None:
    there = moved(NEW, (Event.FAILOVER_BEGINS, "failover 1"))
    assert (there.recovery, there.phase, there.stage) == ("failover 1", "failover 1", "failing-over")
    again = moved(there, (Event.FAILOVER_BEGINS, "failover 2"), (Event.FAILOVER_ENDS, ""), (Event.FAILOVER_BEGINS, "failover 3"))
    assert (again.recovery, again.phase, again.since) == ("failover 1", "failover 1", there.since)
    back = moved(again, (Event.FAILOVER_ENDS, ""), (Event.FAILBACK_BEGINS, "failback 4"), (Event.FAILBACK_BEGINS, "failback 5"))
    assert (back.recovery, back.phase, back.stage) == ("failover 1", "failback 4", "failing-back")


def test_a_run_knows_that_it_has_ended_the_movement() -> None:
    """A task that was killed behind its last record is tried again, and finds it."""
    there = moved(replace(NEW, run_id="1"), (Event.FAILOVER_BEGINS, "failover 1"), (Event.FAILOVER_ENDS, ""))
    back = moved(replace(there, run_id="2"), (Event.FAILBACK_BEGINS, "failback 2"))
    home = moved(back, (Event.FAILBACK_ENDS, ""))
    assert [has_ended(record, Event.FAILBACK_ENDS) for record in (there, back, home)] == [False, False, True]
    assert not has_ended(home, Event.CUTOVER_ENDS)
    abandoned = ended(back, Event.FAILBACK_ABANDONED, "abandoned", 9)
    assert not has_ended(abandoned, Event.FAILBACK_ENDS)
    assert has_ended(abandoned, Event.FAILBACK_ABANDONED, "abandoned")


def test_after_an_abandoned_failback_groups_of_the_failover_count_as_done() -> None:
    failed_over = moved(NEW, (Event.FAILOVER_BEGINS, "failover 1"), (Event.FAILOVER_ENDS, ""))
    abandoned = moved(failed_over, (Event.FAILBACK_BEGINS, "failback 2"), (Event.FAILBACK_ABANDONED, ""))
    taken = {"a": GroupTaken("a", "failover 1", done=True), "b": GroupTaken("b", "failback 2", done=True)}
    assert done_groups(FlowState(taken=taken), abandoned) == {"a"}
    assert done_groups(FlowState(taken=taken), moved(abandoned, (Event.FAILOVER_BEGINS, "failover 3"))) == {"a"}
    assert moved(abandoned, (Event.FAILBACK_BEGINS, "failback 4")).phase == "failback 4"


def test_groups_that_were_moved_have_to_move_back() -> None:
    """Some may be moved before the others; a group that is not there any more, or was never moved, is not waited for."""
    there = moved(NEW, (Event.CUTOVER_BEGINS, "cutover 1"), (Event.CUTOVER_ENDS, ""), (Event.CUTOVER_BEGINS, "cutover 2"))
    went = {name: GroupTaken(name, "cutover 1", done=True) for name in ("a", "b", "gone")}
    older = {"older": GroupTaken("older", "cutover 0", done=True)}
    assert done_groups(FlowState(taken=went | older), there) == {"a", "b", "gone"}
    back = moved(there, (Event.CUTOVER_ENDS, ""), (Event.FAILBACK_BEGINS, "failback 3"))
    state = FlowState(taken=went | older | {"a": GroupTaken("a", "failback 3", done=True)})
    assert not_home(state, back, ["a", "b", "older", "new"]) == ["b"]
    assert not_home(state, there, ["a", "b"]) == []


@pytest.mark.parametrize(
    "events",
    [
        ((Event.FAILOVER_BEGINS, "run 1"), (Event.FAILOVER_ABANDONED, "")),
        ((Event.FAILOVER_BEGINS, "run 1"), (Event.FAILOVER_ENDS, ""), (Event.FAILBACK_BEGINS, "back"), (Event.FAILBACK_ENDS, "")),
    ],
)
def test_a_confirmation_counts_once(events: tuple[tuple[Event, str], ...]) -> None:
    """A task of Airflow that is cleared later comes with the run id of then: its groups have moved on since."""
    record = moved(NEW, *events)
    with pytest.raises(RecoveryStopped, match="run 1 was abandoned, or has ended"):
        begun(FlowState(), record, Event.FAILOVER_BEGINS, "run 1", 8)
    assert begun(FlowState(), record, Event.FAILOVER_BEGINS, "run 2", 8).phase == "run 2"


def test_an_abandoned_failback_cannot_be_continued() -> None:
    failed_over = moved(NEW, (Event.FAILOVER_BEGINS, "failover 1"), (Event.FAILOVER_ENDS, ""))
    first = moved(failed_over, (Event.FAILBACK_BEGINS, "run 1"), (Event.FAILBACK_ABANDONED, ""))
    second = moved(first, (Event.FAILBACK_BEGINS, "run 2"), (Event.FAILBACK_ABANDONED, ""))
    state = FlowState(taken={"g": GroupTaken("g", "run 1", done=True), "h": GroupTaken("h", "run 2")})
    for name in ("run 1", "run 2"):
        with pytest.raises(RecoveryStopped, match="begin a new one"):
            begun(state, second, Event.FAILBACK_BEGINS, name, 8)


@pytest.mark.parametrize(
    ("cut", "topic_id", "partition", "start"),
    [
        (CutEnds("t", "r", (4, 9), "x"), "x", 1, 9),
        (CutEnds("t", "r", (4, 9), "x"), "x", 2, 0),  # a partition of after the failover
        (CutEnds("t", "r", (4, 9), "x"), "y", 1, 0),  # deleted and created again
        (CutEnds("t", "r", (4, 9)), None, 1, 9),  # a cluster without topic ids
        (None, "x", 0, 0),
    ],
)
def test_where_the_flow_in_the_other_direction_begins(cut: CutEnds | None, topic_id: str | None, partition: int, start: int) -> None:
    assert start_of(cut, topic_id, partition) == start
