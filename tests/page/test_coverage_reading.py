"""Missing ranges: the interval of record time that covers a range, and what the page says when the source gives no times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.net.partitions import TopicPartition
from ferry.monitoring.missing import LAST_MOMENT
from ferry.page import coverage_reading
from ferry.page.coverage_reading import interval_end
from ferry.page.coverage_timeline import MissingRange

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("obstacle", "told"), [("", "Ferry could not find its times: no answer from A"), ("compacted", "compacted")])
def test_why_a_range_has_no_times(monkeypatch: pytest.MonkeyPatch, obstacle: str, told: str) -> None:
    key = TopicPartition("t", 2)
    source: Any = SimpleNamespace(admin=SimpleNamespace(offsets_for_time=lambda *_: ({}, {key: "no answer from A"})))
    gap = key, (2, 8)
    monkeypatch.setattr(coverage_reading, "first_records", lambda *_: {gap: (3, 1_000)})
    assert coverage_reading._missing_ranges(source, [gap], obstacle) == [MissingRange(2, 3, 8, obstacle=told)]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.data())
def test_a_run_over_the_interval_copies_the_range_and_no_shorter_one_does(times: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(times) - 1))
    end = data.draw(st.integers(start + 1, len(times)))

    def offset_at(moment: int) -> int | None:
        return next((offset for offset, time in enumerate(times) if time >= moment), None)

    until = interval_end(times[start], end, offset_at)
    assert until is not None
    begins, ends = offset_at(times[start]), offset_at(until)
    assert begins is not None
    assert begins <= start
    assert ends is None or ends >= end
    shorter = [moment for moment in range(times[start] + 1, until) if (found := offset_at(moment)) is None or found >= end]
    assert not shorter


def test_records_of_a_broken_clock_have_no_interval() -> None:
    assert interval_end(0, 1, lambda _: 0) is None
    assert interval_end(LAST_MOMENT, 1, lambda _: 0) is None
    microseconds = 1_800_000_000_000_000
    assert interval_end(microseconds, 1, lambda moment: 0 if moment <= microseconds else None) is None


def test_few_questions_are_asked() -> None:
    asked: list[int] = []

    def offset_at(moment: int) -> int | None:
        asked.append(moment)
        return 0 if moment <= 1_800_000_000_000 else 10

    assert interval_end(0, 10, offset_at) == 1_800_000_000_001
    assert len(asked) < 100
