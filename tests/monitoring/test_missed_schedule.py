"""When the run that should have ended by now was due, and whether one has ended since."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime

import pytest
from tests.conftest import Lab
from tests.opened import keep_run, not_opened

from ferry import clock
from ferry.ledger.open_flow import open_flow
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.runs_reading import read_recent
from ferry.monitoring.schedule import last_due
from ferry.monitoring.status import overdue_run


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-01T{text}+00:00")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("now", "due"),
    [("12:00:30", "11:50:00"), ("12:01:00", "11:50:00"), ("12:01:01", "12:00:00"), ("12:10:59", "12:00:00")],
)
def test_a_run_is_overdue_only_after_its_deadline(now: str, due: str) -> None:
    assert last_due("*/10 * * * *", 60, at(now)) == at(due)


@pytest.mark.unit
def test_a_deadline_may_be_longer_than_the_schedule() -> None:
    assert last_due("*/10 * * * *", 3600, at("12:05:00")) == at("11:00:00")


@pytest.mark.brokers
def test_a_run_that_ended_after_it_was_due_is_not_missed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def overdue_after(minutes: int) -> BrokenLimit | None:
        with monkeypatch.context() as patch:
            patch.setattr(clock, "time", lambda: time.time() + 60 * minutes)
            with open_flow(flow) as opened:
                return overdue_run(opened, read_recent(opened).ended)

    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, None, b"x")])
    lines = ("A->B.ferry.schedule = * * * * *", "A->B.ferry.alert.deadline.seconds = 300")
    flow = lab.flow(f"A->B.topics = {topic}", *lines, *lab.copy_only)
    missed = overdue_after(0)
    assert missed is not None, "a flow that never ran"
    assert str(missed).startswith("a run was due 3")
    keep_run(flow, lab.run(flow))
    assert overdue_after(0) is None
    assert overdue_after(-10) is not None, "what a clock that is ahead wrote tells no end"
    later = overdue_after(20)
    assert later is not None
    assert (later.key, later.topic, later.limit) == ("ferry.alert.deadline.seconds", "", 300)
    assert overdue_run(not_opened(replace(flow, schedule=None)), -1) is None
