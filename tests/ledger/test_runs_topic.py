"""Which runs began after another one, and which of them follows."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from ferry.ledger import runs_topic
from ferry.ledger.run_report import Skipped
from ferry.ledger.run_summary import RunState, RunSummary, encode_run_part
from ferry.ledger.runs_topic import (
    RunOpened,
    RunRecords,
    RunResult,
    RunSync,
    encode_run_record,
    fold_run_record,
    following,
    runs_after,
    since_last_run,
)

pytestmark = pytest.mark.unit

UNTIL, BEFORE, AFTER = "2026-01-01T00:10:00+00:00", 1_767_225_000.0, 1_767_226_200.0  # 23:50 and 00:10:00


def run(run_id: str, *, until: str | None = UNTIL, ended: bool = False) -> tuple[str, RunRecords]:
    result = RunResult(run_id, "2026-01-01T00:01:00+00:00", 1.0, 1.0) if ended else None
    return run_id, RunRecords(opened=RunOpened(run_id, "2026-01-01T00:00:00+00:00", "latest", {}, until), result=result)


def test_runs_that_began_after_another() -> None:
    runs = dict([run("a"), run("b"), run("c")])
    assert [*runs_after(runs, "a")] == ["b", "c"]
    assert runs_after(runs, "c") == {}
    assert runs_after(runs, "older than what was read") == {}


def test_a_result_says_which_topics_were_expected_and_one_of_an_older_release_does_not() -> None:
    skipped = Skipped("t", "not in topics, but it was copied before", True), Skipped("u", "not in topics", False), Skipped("flow", "why")
    written = encode_run_record(RunResult("r", UNTIL, 1.0, 1.0, skipped=skipped))[1]
    older = re.sub(rb',\s*"expected":\s*\w+', b"", written)
    assert b"expected" not in older
    for value, expected in ((written, skipped), (older, tuple(replace(entry, expected=None) for entry in skipped))):
        result = fold_run_record(RunRecords(), value, "").result
        assert result is not None
        assert result.skipped == expected


def test_the_newest_that_follows() -> None:
    runs = dict([run("a"), run("b"), run("ended", ended=True), run("does not follow", until=None)])
    found = following(runs, BEFORE)
    assert found is not None
    assert found.run_id == "b"


def test_one_that_took_the_flow_back_from_a_newer_one_follows() -> None:
    (back, again), newer = run("a"), run("b")
    found = following({back: replace(again, tried="2026-01-01T00:02:00+00:00"), newer[0]: newer[1]}, BEFORE)
    assert found is not None
    assert found.run_id == "a"


def test_none_follows_when_its_time_is_over() -> None:
    assert following(dict([run("a")]), AFTER) is None


def test_the_result_of_a_try_that_a_later_one_fenced_is_not_that_of_the_run() -> None:
    """Airflow may start a try of a run while an older one still lives."""
    first, second = "2026-01-01T00:00:00+00:00", "2026-01-01T00:05:00+00:00"
    records: list[RunOpened | RunResult] = [
        RunOpened("r", first, "latest"),
        RunOpened("r", second, "latest"),
        RunResult("r", second, 1.0, 2.0, superseded="it was fenced", began=first),
    ]

    def folded(written: list[RunOpened | RunResult]) -> RunRecords:
        found = RunRecords()
        for record in written:
            found = fold_run_record(found, encode_run_record(record)[1], "")
        return found

    found = folded(records)
    assert (found.result, found.cpu_seconds) == (None, 2.0)
    for began in (second, ""):  # an older release does not say which try it was
        assert folded([*records, RunResult("r", UNTIL, 1.0, 1.0, began=began)]).result is not None


def test_a_run_took_the_time_of_all_its_tries() -> None:
    first, second, third = (f"2026-01-01T00:{minute:02}:00+00:00" for minute in (0, 5, 40))
    found = RunRecords()
    for record, seconds in (
        (RunOpened("r", first, "latest"), 0.0),
        (RunOpened("r", second, "latest"), 300.0),  # the first try left no result
        (RunResult("r", UNTIL, 60.0, 1.0, began=second), 360.0),
        (RunResult("r", UNTIL, 61.0, 1.0, began=second), 361.0),  # it was sent twice
        (RunResult("r", UNTIL, 9.0, 1.0, began=first), 361.0),  # it lived still
        (RunOpened("r", third, "latest"), 361.0),
        (RunResult("r", UNTIL, 2.0, 1.0, began=third), 363.0),
    ):
        found = fold_run_record(found, encode_run_record(record)[1], "")
        assert found.seconds == seconds


def seconds_since(monkeypatch: pytest.MonkeyPatch, *written: tuple[int, RunOpened | RunResult | RunSync | RunSummary]) -> dict[str, float]:
    """Since the last run of topics t and u, if the runs topic has these records, each so many seconds old."""
    records = []
    for ago, part in written:
        key, value = encode_run_part(part.run_id, part) if isinstance(part, RunSummary) else encode_run_record(part)
        records.append(SimpleNamespace(key=key, value=value, timestamp=(BEFORE - ago) * 1000))
    reading = MagicMock(return_value=records)
    monkeypatch.setattr(runs_topic, "recent_records", reading)
    monkeypatch.setattr(runs_topic.clock, "time", lambda: BEFORE)
    found = since_last_run(MagicMock(), ("t", "u"))
    reading.assert_called_once()
    return found


def summary(run_id: str, state: RunState = RunState.DONE) -> RunSummary:
    return RunSummary(run_id, "", "", "", state)


def test_what_counts_as_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that failed as a whole has copied nothing; the clock of another machine may be ahead."""
    ends = ((RunState.DONE, 500), (RunState.PARTLY_FAILED, 300), (RunState.FAILED, 100), (RunState.DONE, -100))
    found = seconds_since(monkeypatch, *((ago, summary(state, state)) for state, ago in ends))
    assert found == {"t": 300, "u": 300}
    assert seconds_since(monkeypatch) == dict.fromkeys("tu", runs_topic.RUN_DAYS * 24 * 3600)


def test_a_run_of_another_topic_is_none_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = RunOpened("b", "2026-01-01T00:00:00+00:00", "latest", topics=("t", "v"))
    assert seconds_since(monkeypatch, (300, summary("a")), (200, one), (100, summary("b"))) == {"t": 100, "u": 300}


def test_a_run_that_follows_goes_on_as_long_as_it_tells_of_its_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was killed tells nothing; its time may be over much later."""
    (_, follows), (_, bounded) = run("b"), run("b", until=None)
    assert follows.opened is not None
    assert bounded.opened is not None
    told = RunSync("b", "heartbeats", {})
    for opened, seconds in ((follows.opened, 100), (bounded.opened, 900)):
        assert seconds_since(monkeypatch, (900, summary("a")), (700, opened), (100, told)) == {"t": seconds, "u": seconds}


@pytest.mark.parametrize("value", [b"no document", b"[]", b"{}", b'{"kind": "opened"}'])
def test_a_record_that_cannot_be_read_hides_no_run(monkeypatch: pytest.MonkeyPatch, value: bytes) -> None:
    """Plans and runs ask for this: one damaged record must not stop them."""
    key, done = encode_run_part("a", summary("a"))
    records = [
        SimpleNamespace(key=name, value=entry, timestamp=(BEFORE - 300) * 1000)
        for name, entry in ((key, done), (key, value), (b"x", value))
    ]
    monkeypatch.setattr(runs_topic, "recent_records", lambda _: records)
    monkeypatch.setattr(runs_topic.clock, "time", lambda: BEFORE)
    assert since_last_run(MagicMock(), ("t",)) == {"t": 300}
