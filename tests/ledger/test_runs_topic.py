"""Which runs began after another one, and which of them follows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from ferry.ledger import runs_topic
from ferry.ledger.run_summary import RunState, RunSummary, encode_run_part
from ferry.ledger.runs_topic import (
    RunOpened,
    RunRecords,
    RunResult,
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


def test_what_counts_as_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run follows, nothing is between two runs; one that failed as a whole has copied nothing."""
    ends = ((RunState.DONE, 500), (RunState.PARTLY_FAILED, 300), (RunState.FAILED, 100), (RunState.DONE, -100))
    records = []
    for number, (state, ago) in enumerate(ends):
        key, value = encode_run_part(str(number), RunSummary(str(number), "", "", "", state))
        records.append(SimpleNamespace(key=key, value=value, timestamp=(BEFORE - ago) * 1000))
    monkeypatch.setattr(runs_topic, "recent_records", lambda *_: records)
    monkeypatch.setattr(runs_topic.time, "time", lambda: BEFORE)
    for runs, seconds in (({}, 300), (dict([run("a")]), 0), (dict([run("a", ended=True)]), 300)):
        monkeypatch.setattr(runs_topic, "read_recent_runs", MagicMock(return_value=runs))
        assert since_last_run(MagicMock()) == seconds
