"""What is out, what was lost, and when a lane is given up."""

from __future__ import annotations

from uuid import UUID

import pytest

from ferry.clusters.groups.coordination import NO_IDENTITY
from ferry.copying import lane_attempts
from ferry.copying.lane_attempts import LANE_ATTEMPTS, MORE_PARTITIONS, WORKER_DIED, LanesOut
from ferry.copying.lane_messages import LaneTask, PartitionTask, Segment
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit


def task(lane: int, start: int = 0) -> LaneTask:
    segments = (Segment(ReceiptKind.COPIED, start, 100),)
    part = PartitionTask("t", lane, UUID(int=1), "A.t", UUID(int=2), start, segments)
    return LaneTask(lane, f"lane-{lane}", NO_IDENTITY, (part,))


def test_what_came_back_is_not_lost_with_the_rest() -> None:
    out = LanesOut()
    out.give([task(0), task(1), task(2)])
    out.take(0, None)
    out.take(1, "it was fenced")
    assert (out.lost, sorted(out.tasks)) == ({1: "it was fenced"}, [1, 2])
    out.lose_the_rest()
    assert out.lost == {1: "it was fenced", 2: WORKER_DIED}


def test_only_lost_lanes_are_given_again_and_others_stay_out() -> None:
    out = LanesOut()
    out.give([task(0), task(1), task(2)])
    out.take(1, "lost")
    out.take(2, "lost")
    assert out.give_again([task(1)]) == ([task(1)], []), "nothing is left to do in the other one"
    assert (out.lost, sorted(out.tasks)) == ({}, [0, 1])


def test_a_lane_without_headway_is_given_up_and_headway_begins_anew() -> None:
    out, start = LanesOut(), 0
    out.give([task(0)])
    for _ in range(3):  # far more attempts in all than are allowed in a row
        for attempt in range(LANE_ATTEMPTS - 1):
            out.take(0, "lost")
            assert out.failures == attempt
            assert out.give_again([task(0, start)]) == ([task(0, start)], [])
        start += 10
        out.take(0, "lost")
        assert out.give_again([task(0, start)]) == ([task(0, start)], [])
    for _ in range(LANE_ATTEMPTS - 1):
        out.take(0, "lost")
        out.give_again([task(0, start)])
    out.take(0, "the last reason")
    assert out.give_again([task(0, start)]) == ([], [(task(0, start), "the last reason")])
    assert (out.lost, out.tasks) == ({}, {})


def test_a_lane_that_the_driver_interrupts_is_not_given_up() -> None:
    out = LanesOut()
    out.give([task(0)])
    for _ in range(LANE_ATTEMPTS * 2):
        out.interrupted.add(0)
        out.take(0, WORKER_DIED)
        assert out.lost == {0: MORE_PARTITIONS}
        assert out.give_again([task(0)]) == ([task(0)], [])
        assert not out.interrupted


def test_a_lane_that_ends_while_it_is_interrupted_was_not() -> None:
    out = LanesOut()
    out.give([task(0)])
    out.interrupted.add(0)
    out.take(0, None)
    assert not out.interrupted


def test_a_lane_that_worked_for_long_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing arrives, nothing is committed."""
    out = LanesOut()
    out.give([task(0)])
    monkeypatch.setattr(lane_attempts, "WORKED_SECONDS", -1.0)
    for _ in range(LANE_ATTEMPTS * 2):
        out.take(0, WORKER_DIED)
        assert out.give_again([task(0)]) == ([task(0)], [])
