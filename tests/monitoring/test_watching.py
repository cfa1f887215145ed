"""What two looks at a flow tell together, and flows that are looked at again and again."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import until

from ferry.cli.watch_screen import one_line
from ferry.config.settings import DEADLINE_SECONDS
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import LossReport, PartitionFailure
from ferry.monitoring import watching
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.watching import MOVED_SECONDS, TOPICS_SHOWN, UNKNOWN, UNREACHABLE, FlowFrame, Look, Watcher, frame

pytestmark = pytest.mark.unit


LOST = (LossReport("x", 0, 0, 1, "dropped"), LossReport("x", 0, 3, 5, "dropped"))


def partition(topic: str, position: int, end: int, *, number: int = 0, age: float = 0.0, headroom: float | None = None) -> PartitionStatus:
    return PartitionStatus(topic, number, f"A.{topic}", position, end, end - position, 0, age, headroom, None, 0)


def look(at: float, *partitions: PartitionStatus, losses: tuple[LossReport, ...] = ()) -> Look:
    return Look(at, FlowHealth("A->B", partitions, losses=losses))


def dead(at: float, problem: str = "gone") -> Look:
    """It took seconds to find that nobody answers."""
    return Look(at, FlowHealth("A->B"), problem, began=at - 8.0)


def test_the_first_look_has_no_rates() -> None:
    first = frame(look(100.0, partition("x", 5, 9, age=3.0, headroom=50.0)))
    assert (first.state, first.since, first.lag_records, first.lag_seconds, first.headroom_seconds) == ("behind", 100.0, 4, 3.0, 50.0)
    assert (first.copied_rate, first.produced_rate, first.left_seconds) == (None, None, None)


def test_rates_are_what_moved_between_two_looks() -> None:
    one, two = look(100.0, partition("x", 0, 1000), partition("y", 0, 0)), look(110.0, partition("x", 500, 1500), partition("y", 0, 0))
    shown = frame(two, frame(one), one)
    assert (shown.state, shown.copied_rate, shown.produced_rate, shown.left_seconds) == ("copying", 50.0, 50.0, 20.0)


def test_heartbeats_do_not_count() -> None:
    """Every run leaves some for the next one: a flow that only they lag of is up to date."""
    beats = [replace(partition("heartbeats", at, 99, age=1e6, headroom=1.0), heartbeats=True) for at in (0, 50)]
    one, two = look(100.0, partition("x", 5, 5), beats[0]), look(110.0, partition("x", 5, 5), beats[1])
    shown = frame(two, frame(one), one)
    assert (shown.state, shown.lag_records, shown.lag_seconds, shown.headroom_seconds) == ("up to date", 0, 0.0, None)
    assert (shown.copied_rate, shown.produced_rate, shown.topics) == (0.0, 0.0, ())


def test_every_reason_of_the_verdict_is_told_and_none_twice() -> None:
    stopped = tuple(PartitionFailure("x", number, "SourceTruncated", "cut") for number in range(5))
    status = FlowHealth("A->B", (partition("x", 5, 5),), stopped=stopped, broken=(BrokenLimit(DEADLINE_SECONDS, "", 90.0, 60.0),))
    shown = frame(Look(1.0, status))
    assert "5 partitions stopped (SourceTruncated): x-0, x-1, x-2, and 2 more: cut" in shown.verdict
    assert shown.warnings == (str(status.broken[0]),)


def test_a_partition_that_is_new_or_went_back_does_not_count() -> None:
    one, two = look(100.0, partition("x", 500, 1000)), look(110.0, partition("x", 0, 900), partition("new", 10_000, 10_000))
    shown = frame(two, frame(one), one)
    assert (shown.copied_rate, shown.produced_rate) == (0.0, 0.0)


def test_a_seed_copies_nothing() -> None:
    one, two = look(100.0, partition("x", 0, 1000)), look(110.0, replace(partition("x", 500, 1000), series="seed__1"))
    shown = frame(two, frame(one), one)
    assert (shown.state, shown.copied_rate, shown.left_seconds) == ("behind", 0.0, None)


def test_a_run_that_should_follow_and_was_killed_is_named() -> None:
    gone = {"run_id": "manual__1", "since": "2027-01-15T07:57:00+00:00", "until": "2027-01-15T08:05:00+00:00"}
    (told,) = frame(Look(1.0, FlowHealth("A->B", (partition("x", 5, 5),), gone=gone))).warnings
    assert told.startswith("run manual__1 should follow since 2027-01-15T07:57:00+00:00 until ")


def test_a_run_without_progress_for_a_moment_still_counts_as_copying() -> None:
    one, two = look(0.0, partition("x", 0, 10)), look(5.0, partition("x", 5, 10))
    copying = frame(two, frame(one), one)
    resting = frame(look(5.0 + MOVED_SECONDS, partition("x", 5, 10)), copying, two)
    assert (copying.state, resting.state, resting.since) == ("copying", "copying", 5.0)
    assert frame(look(6.0 + MOVED_SECONDS, partition("x", 5, 10)), resting, two).state == "behind"
    assert frame(look(6.0, partition("x", 10, 10)), copying, two).state == "up to date"


def test_since_is_the_time_of_the_first_look_with_that_state() -> None:
    shown: FlowFrame | None = None
    for at in (1.0, 2.0, 3.0):
        shown = frame(look(at, partition("x", 9, 9)), shown)
    assert shown is not None
    assert (shown.state, shown.since, shown.at) == ("up to date", 1.0, 3.0)


def test_a_cluster_goes_away_and_comes_back() -> None:
    one = look(10.0, partition("x", 1, 9), losses=LOST)
    shown = frame(one)
    for at in (20.0, 30.0):
        shown = frame(dead(at), shown, one)
        assert (shown.state, shown.since, shown.problem, shown.lag_records, shown.topics) == (UNREACHABLE, 12.0, "gone", 0, ())
    back = frame(look(60.0, partition("x", 6, 9), losses=LOST), shown, one)
    assert (back.state, back.outage_seconds, back.copied_rate) == ("copying", 48.0, 0.1)
    assert frame(look(65.0, partition("x", 6, 9)), back, one).outage_seconds == 48.0, "one look is too short to be seen"
    assert frame(look(121.0, partition("x", 6, 9)), back, one).outage_seconds is None
    assert frame(look(65.0, partition("x", 9, 9)), back, one).outage_seconds is None


def test_the_biggest_topics_come_first() -> None:
    partitions = [partition(f"t{size}", 0, size, age=size, headroom=1000.0 - size) for size in range(20)]
    shown = frame(look(1.0, *partitions, partition("t19", 0, 5, number=1, age=500.0)))
    assert [entry.topic for entry in shown.topics] == [f"t{size}" for size in range(19, 19 - TOPICS_SHOWN, -1)]
    assert (shown.topics[0].records, shown.topics[0].seconds, shown.topics[0].headroom_seconds) == (24, 500.0, 981.0)
    assert (shown.lagging_topics, shown.headroom_seconds) == (19, 981.0)
    assert shown.document()["topics"][0]["topic"] == "t19"


def test_headroom_that_could_not_be_read_is_not_unlimited() -> None:
    unread = partition("x", 0, 4, age=-1.0)
    shown = frame(look(1.0, unread))
    assert (shown.headroom_seconds, shown.topics[0].headroom_seconds) == (UNKNOWN, UNKNOWN)
    assert "headroom is unknown for 1 partition:" in shown.warnings[0]
    assert "headroom ?" in one_line(shown)
    known = frame(look(1.0, unread, partition("x", 0, 4, number=1, age=3.0, headroom=50.0), partition("y", 0, 4, age=3.0)))
    assert (known.headroom_seconds, len(known.warnings)) == (50.0, 1)
    assert frame(look(1.0, partition("x", 0, 4, age=3.0))).headroom_seconds is None


def test_negative_headroom_is_shown_as_zero() -> None:
    shown = frame(look(1.0, partition("x", 0, 4, age=300.0, headroom=-20.0)))
    assert (shown.headroom_seconds, "headroom 0 s" in one_line(shown)) == (0.0, True)


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Ends the looks at the flow `dead`."""
    ended = threading.Event()

    def status(opened: OpenFlow) -> FlowHealth:
        flow = opened.flow
        if flow.name == "broken":
            raise RuntimeError("a defect")
        if flow.name == "dead":
            ended.wait(30.0)
        return FlowHealth(flow.name, ())

    monkeypatch.setattr(watching, "flow_status", status)
    monkeypatch.setattr(watching, "status_after_run", status)
    return ended


def flows(*names: str) -> Any:
    return tuple(SimpleNamespace(name=name, source=None, target=None) for name in names)


def test_a_flow_does_not_wait_for_another(hung: threading.Event) -> None:
    with Watcher(flows("dead", "live"), 0.01) as watched:
        until(lambda: watched.frames)
        (first,) = watched.frames
        assert first.flow == "live"
        until(lambda: watched.frames[0].at > first.at)
        hung.set()
        until(lambda: [entry.flow for entry in watched.frames] == ["dead", "live"])
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("ferry-watch")])


def test_a_missed_run_is_told_between_two_whole_looks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    missed = BrokenLimit(DEADLINE_SECONDS, "", 7_200.0, 60.0)
    monkeypatch.setattr(watching, "flow_status", lambda opened: FlowHealth(opened.flow.name, (), broken=(missed,)))
    monkeypatch.setattr(watching, "status_after_run", lambda opened: FlowHealth(opened.flow.name, ()))
    watcher = watching.FlowWatcher(flows("A->B")[0])
    assert [watcher.look().health for _ in range(2)] == ["lagging", "lagging"]


def test_an_unexpected_error_of_a_look_reaches_the_caller(hung: threading.Event) -> None:
    with Watcher(flows("live", "broken"), 0.01) as watched:
        until(lambda: watched.problem)
    assert str(watched.problem) == "a defect"
    hung.set()
