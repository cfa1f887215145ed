"""Runs as the page lists them: the runs topic joined with Airflow's DAG runs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.ledger.run_report import PartitionFailure
from ferry.ledger.run_summary import RunLag, RunSummary, encode_run_part
from ferry.ledger.runs_topic import RECORD_VERSION, RunOpened, RunResult, RunSync
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.runs import DagRunFacts, copy_speed, empty_run, held_groups, history_of, joined_runs, last_ended, last_seed
from ferry.monitoring.runs_reading import VERIFIES_KEPT, recent_runs
from ferry.page.documents import FlowView, PageFlow, overview
from ferry.page.overview import Overview
from ferry.page.snapshots import Snapshot
from ferry.verify.comparison import Difference, DifferenceKind, NotCovered
from ferry.verify.results_topic import report_records
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.unit

NOW = 1_800_000_000.0
BEGIN = "2026-11-21T10:00:00.000+00:00"


def record(key: bytes, value: bytes | None, age: float = 60.0) -> InternalRecord:
    return InternalRecord(0, 0, round((NOW - age) * 1000), key, value)


def kept(kind: str, entry: RunOpened | RunResult | RunSync, age: float = 60.0) -> InternalRecord:
    return record(entry.run_id.encode(), json.dumps({"version": RECORD_VERSION, "kind": kind, **asdict(entry)}).encode(), age)


def summary(run_id: str, **more: Any) -> InternalRecord:
    fields = {"started": BEGIN, "finished": "2026-11-21T10:01:00.000+00:00", "bound": "latest", "state": "done", **more}
    return record(*encode_run_part(run_id, RunSummary(run_id=run_id, **fields)))


def only(*records: InternalRecord) -> dict[str, Any]:
    (found,) = recent_runs(records, "cluster B: topic runs", NOW).document["runs"]
    return dict(found)


def test_a_summary_tells_the_whole_run() -> None:
    found = only(
        kept("opened", RunOpened("r", BEGIN, "latest")),
        summary("r", records=7, bytes=70, seconds=3.5, topics=(("t", 7, 70),), topics_total=1, lag=RunLag(3, 1.5, 60.0)),
    )
    assert found["topics"] == [{"topic": "t", "records": 7, "bytes": 70}]
    assert (found["records"], found["lag_records"], found["lag_seconds"], found["headroom_seconds"]) == (7, 3, 1.5, 60.0)
    assert set(found) == set(empty_run("r"))


def test_the_lag_may_be_kept_by_another_task_before_or_after() -> None:
    lag, first = record(*encode_run_part("r", RunLag(3, 1.5, None))), summary("r")
    for records in ((lag, first), (first, lag)):
        found = only(kept("opened", RunOpened("r", BEGIN, "latest")), *records)
        assert (found["lag_records"], found["lag_seconds"], found["headroom_seconds"]) == (3, 1.5, None)
    assert recent_runs([lag, record(b"lag:s", b"{}")], "", NOW).document == {"runs": [], "verifies": [], "unreadable": 1}


def test_a_run_without_a_result_is_running_or_has_died() -> None:
    opened = kept("opened", RunOpened("r", BEGIN, "latest"))
    assert only(opened)["state"] == "running"
    copying = recent_runs([opened], "", NOW).copying
    assert copying is not None
    assert copying.run_id == "r"
    assert only(opened._replace(timestamp=round((NOW - 25 * 3600) * 1000)))["state"] == "failed"
    later = kept("opened", RunOpened("s", "2026-11-21T10:05:00.000+00:00", "latest"), age=5.0)
    assert {run["run_id"]: run["state"] for run in recent_runs([opened, later], "", NOW).document["runs"]} == {
        "r": "failed",
        "s": "running",
    }
    # The newest is the last in the log: the machine of the one before had a clock that was ahead.
    ahead = opened._replace(timestamp=round((NOW + 600) * 1000))
    assert {run["run_id"]: run["state"] for run in recent_runs([ahead, later], "", NOW).document["runs"]} == {"r": "failed", "s": "running"}


def test_a_run_that_follows_runs_until_its_time_is_over_also_beside_a_newer_one() -> None:
    until = datetime.fromtimestamp(NOW + 60, UTC).isoformat()
    follows = kept("opened", RunOpened("r", BEGIN, "following", follow_until=until))
    later = kept("opened", RunOpened("s", BEGIN, "latest"), age=5.0)
    for now, state in ((NOW, "following"), (NOW + 61, "failed")):
        assert {run["run_id"]: run["state"] for run in recent_runs([follows, later], "", now).document["runs"]}["r"] == state


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (RunResult("r", BEGIN, 2.0, 1.0), "done"),
        (RunResult("r", BEGIN, 2.0, 1.0, superseded="run s took over"), "superseded"),
        (RunResult("r", BEGIN, 2.0, 1.0, failed=(PartitionFailure("t", 0, "BatchRefused", "too large"),)), "partly failed"),
        (RunResult("r", BEGIN, 2.0, 1.0, failed=(PartitionFailure("", -1, "ClusterUnreachable", "gone"),)), "failed"),
    ],
)
def test_a_run_without_a_summary_is_shown_by_its_result(result: RunResult, state: str) -> None:
    found = only(kept("opened", RunOpened("r", BEGIN, "latest")), kept("result", result))
    assert (found["state"], found["started"], found["seconds"], found["records"]) == (state, BEGIN, 2.0, None)
    assert found["failed_total"] == len(result.failed)


def test_an_unreadable_record_hides_no_other() -> None:
    damaged = [record(b"r", b"{"), record(b"summary:r", b'{"version":1}'), record(b"summary:r", b'{"version":99}'), record(b"\xff", b"{}")]
    unknown = record(b"r", b'{"version":1,"kind":"of tomorrow","run_id":"r"}')
    found = recent_runs([*damaged, unknown, summary("s"), record(b"gone", None)], "", NOW).document
    assert [run["run_id"] for run in found["runs"]] == ["s"]
    assert found["unreadable"] == 5


def test_verifies_are_listed_with_their_first_differences() -> None:
    differences = tuple(Difference("t", 0, "A.t", number, number, DifferenceKind.EXTRA, "extra") for number in range(60))
    reports = [VerifyReport("A->B", f"v{number}", BEGIN, BEGIN, ranges=3, counts={}) for number in range(VERIFIES_KEPT + 3)]
    reports.append(
        VerifyReport(
            "A->B", "last", BEGIN, BEGIN, counts={"extra": 60}, differences=differences, not_covered=(NotCovered("t", 1, 0, 5, "why"),) * 2
        )
    )
    records = [record(b"verify:" + report.run_id.encode(), value) for report in reports for value in report_records(report)]
    found = recent_runs([*records, record(b"verify:bad", b"{}")], "", NOW).document["verifies"]
    assert [report["run_id"] for report in found[:2]] == ["last", f"v{VERIFIES_KEPT + 2}"]
    assert len(found) <= VERIFIES_KEPT
    assert (found[0]["verdict"], found[0]["differences_total"], len(found[0]["differences"])) == ("differs", 60, 50)
    assert found[0]["unproven"] == [{"reason": "why", "parts": 2}]
    assert found[1]["verdict"] == "equal"


def facts(run_id: str, state: str, started: str | None = BEGIN) -> DagRunFacts:
    return DagRunFacts(run_id, state, started, BEGIN if state in {"success", "failed"} else None, f"/dags/d/runs/{run_id}")


@pytest.mark.parametrize(
    ("known", "airflow", "state"),
    [
        ("done", "success", "done"),
        ("data lost", "failed", "data lost"),
        ("partly failed", "failed", "partly failed"),
        ("superseded", "failed", "superseded"),
        # Its report was fine, a task behind it was not.
        ("done", "failed", "failed"),
        ("nothing new", "failed", "failed"),
        # It died on the way, or was cleared and runs again.
        ("running", "failed", "failed"),
        ("done", "running", "running"),
        ("failed", "running", "running"),
        ("running", "success", "done"),
        ("following", "running", "following"),
        ("following", "failed", "failed"),
        ("following", "success", "done"),
        (None, "queued", "queued"),
        ("following", "queued", "following"),
        (None, "failed", "failed"),
        (None, "success", "done"),
    ],
)
def test_airflow_says_how_a_run_ended_that_could_not_write_it(known: str | None, airflow: str, state: str) -> None:
    runs = [] if known is None else [{**empty_run("r"), "started": BEGIN, "state": known}]
    (found,) = joined_runs(runs, [facts("r", airflow)], 10)
    assert (found["state"], found["airflow_state"], found["dag_run_url"]) == (state, airflow, "/dags/d/runs/r")


def test_the_last_run_that_tells_health_and_the_superseded_one_before_it() -> None:
    def found(*states: str) -> tuple[str, bool, str] | None:
        run = last_ended([{**empty_run(f"r{number}"), "state": state} for number, state in enumerate(states)])
        return run and (run["run_id"], run["newest"], run["superseded"])

    assert found("running") is None
    assert found("done") == ("r0", True, "")
    assert found("done", "done") == ("r0", True, "")
    assert found("done", "superseded", "done") == ("r0", True, "r1")
    assert found("running", "failed", "superseded") == ("r1", False, "r2")


@pytest.mark.parametrize(
    ("known", "tasks", "state", "named"),
    [
        ("done", ("check_limits",), "done", ["task check_limits failed"]),
        ("nothing new", ("check_limits",), "nothing new", ["task check_limits failed"]),
        ("done", ("announce_topics", "check_limits"), "failed", ["task announce_topics failed", "task check_limits failed"]),
        ("running", ("check_limits",), "failed", ["task check_limits failed"]),
        ("data lost", ("check_limits", "report_outcome"), "data lost", []),
        ("running", ("plan_run", "report_outcome"), "failed", ["task plan_run failed"]),
        ("running", ("report_outcome",), "failed", ["task report_outcome failed"]),
    ],
)
def test_a_broken_limit_alone_does_not_make_the_copy_failed(known: str, tasks: tuple[str, ...], state: str, named: list[str]) -> None:
    red = replace(facts("r", "failed"), failed_tasks=tasks)
    (found,) = joined_runs([{**empty_run("r"), "started": BEGIN, "state": known}], [red], 10)
    assert (found["state"], [entry["error"] for entry in found["failed"]], found["failed_total"]) == (state, named, len(named))


@pytest.mark.parametrize(
    ("tasks", "problem", "told"),
    [
        (("plan_run", "report_outcome"), "cluster B does not answer", [("cluster B does not answer", "ClusterUnreachable")]),
        (("plan_run", "report_outcome"), "", [("its log in Airflow says why", "")]),
        (("announce_topics", "check_limits"), "one of them", [("its log in Airflow says why", "")] * 2),
    ],
)
def test_the_note_of_a_run_says_why_its_task_failed(tasks: tuple[str, ...], problem: str, told: list[tuple[str, str]]) -> None:
    red = replace(facts("r", "failed"), failed_tasks=tasks, reason=(problem, "ClusterUnreachable"))
    (found,) = joined_runs([], [red], 10)
    assert [(entry["problem"], entry["cause"]) for entry in found["failed"]] == told


@pytest.mark.parametrize(("known", "tasks"), [("done", ("sync_acls", "sync_configs")), ("running", ("copy_records",)), (None, ())])
def test_a_run_that_a_person_stopped_says_so(known: str | None, tasks: tuple[str, ...]) -> None:
    """While two syncs ran, while it copied, while it was queued."""
    red = replace(facts("r", "failed"), failed_tasks=tasks, reason=("somebody stopped it on the Ferry page", ""))
    seen, runs = (
        Snapshot(Overview(FlowHealth("A->B", read=False)), NOW),
        [{**empty_run("r"), "started": BEGIN, "state": known}] if known else [],
    )
    flow = PageFlow("A->B", "A", "B", "ferry.A.B", "ferry.A.B.verify", None, None, copies=True, config="mm2.properties")
    (found,) = overview([FlowView(flow, seen, Snapshot({"runs": runs}, NOW), (red,))], NOW)["flows"]
    assert (found["last_run"]["state"], found["last_run"]["failed_total"], found["step"]) == ("failed", 1, "run")
    assert found["reasons"][0].endswith(" ago: somebody stopped it on the Ferry page")


def test_a_dry_run_is_no_copy_that_went_well() -> None:
    failed = {**empty_run("r"), "started": BEGIN, "state": "failed"}
    dry = replace(facts("look", "success", "2026-11-21T10:09:00.000+00:00"), dry=True)
    seen, runs = Snapshot(Overview(FlowHealth("A->B", read=False)), NOW), Snapshot({"runs": [failed]}, NOW)
    flow = PageFlow("A->B", "A", "B", "ferry.A.B", "ferry.A.B.verify", None, None, copies=True, config="mm2.properties")
    (found,) = overview([FlowView(flow, seen, runs, (dry,))], NOW)["flows"]
    assert (found["last_run"]["state"], found["health"]) == ("dry run", "failing")


def test_groups_that_are_held_up_are_told_on_the_page() -> None:
    named = [{"what": "group billing", "reason": "it has 1 member on B (app), and only groups without members are written"}]
    runs = Snapshot({"runs": [], "verifies": [], "held": {"total": 1, "named": named}}, NOW)
    flow = PageFlow("A->B", "A", "B", "ferry.A.B", "ferry.A.B.verify", None, None, copies=True, config="mm2.properties")
    (found,) = overview([FlowView(flow, Snapshot(Overview(FlowHealth("A->B", read=False)), NOW), runs)], NOW)["flows"]
    assert found["health"] == "lagging"
    assert found["reasons"][0].startswith("1 group not synced: group billing, because it has 1 member on B (app)")
    assert "groups.exclude" in found["next_step"]


def test_a_seed_is_no_run_that_copied() -> None:
    seed = {**empty_run("seed__1"), "started": "2026-11-21T10:05:00+00:00", "state": "done"}
    runs = [seed, {**empty_run("manual__1"), "started": BEGIN, "state": "failed"}]
    seen, read = Snapshot(Overview(FlowHealth("A->B", read=False)), NOW), Snapshot({"runs": runs}, NOW)
    flow = PageFlow("A->B", "A", "B", "ferry.A.B", "ferry.A.B.verify", None, None, copies=True, config="mm2.properties")
    (found,) = overview([FlowView(flow, seen, read)], NOW)["flows"]
    assert (found["last_run"]["run_id"], found["health"]) == ("manual__1", "failing")
    assert (last_seed(runs), last_seed(runs[1:])) == (seed["started"], None)


def test_runs_by_command_and_by_airflow_are_listed_together_newest_first() -> None:
    by_hand = {**empty_run("hand"), "started": "2026-11-21T10:00:30.000+00:00", "state": "done"}
    dag_runs = [facts("late", "success", "2026-11-21T10:09:00.000+00:00"), facts("early", "success"), facts("waiting", "queued", None)]
    found = joined_runs([by_hand], dag_runs, 10)
    assert [run["run_id"] for run in found] == ["waiting", "late", "hand", "early"]
    assert found[2]["dag_run_url"] is None
    assert [run["run_id"] for run in joined_runs([by_hand], dag_runs, 2)] == ["waiting", "late"]


def test_history_has_points_of_summaries_and_of_failed_runs_oldest_first() -> None:
    topics = tuple((f"t{number}", number, 10 * number) for number in range(1, 7))
    records = [
        summary("b", finished="2026-11-21T10:02:00.000+00:00", records=21, seconds=10.0, topics=topics, delay_seconds=1.5),
        summary("a", finished="2026-11-21T10:01:00.000+00:00", records=0, seconds=0.0, topics=(("t1", 3, 1_000),)),
        summary("old", finished="2026-11-01T10:01:00.000+00:00"),
        kept("opened", RunOpened("running", BEGIN, "latest")),
    ]
    runs = recent_runs(records, "", NOW).document["runs"]
    died = {**empty_run("died"), "started": "2026-11-21T10:01:30.000+00:00", "state": "failed"}
    found = history_of([*runs, died, {**died, "run_id": "never began", "started": None}], "2026-11-20T00:00:00.000+00:00")
    assert [(point["run_id"], point["records"], point["delay_seconds"]) for point in found["points"]] == [
        ("a", 0, None),
        ("died", None, None),
        ("b", 21, 1.5),
    ]
    assert found["topics"] == ["t1", "t6", "t5", "t4", "t3"], "those of which most bytes were copied"
    assert [point["by_topic"] for point in found["points"]] == [
        [[3, 1_000], None, None, None, None],
        [None] * 5,
        [[1, 10], [6, 60], [5, 50], [4, 40], [3, 30]],
    ]
    assert copy_speed(runs) == 2.1
    assert copy_speed([]) is None


def test_a_run_whose_arguments_were_wrong_says_nothing_about_the_flow() -> None:
    """The runs topic knows it as failed; if it could not be written there, only its note in Airflow says why."""
    wrong = {"topic": "", "partition": -1, "error": "ArgumentError", "problem": "plan_run: flow A->B does not copy topic ordrs"}
    kept_run = only(summary("typo", state="failed", failed=(wrong,), failed_total=1))
    assert kept_run["state"] == "refused"
    tasks = ("plan_run", "report_outcome")
    noted = DagRunFacts("typo", "failed", BEGIN, BEGIN, "/x", tasks, reason=("flow A->B does not copy topic ordrs", "ArgumentError"))
    before = {**empty_run("before"), "started": "2026-11-21T09:00:00.000+00:00", "state": "done"}
    for known in ([kept_run, before], [before]):
        newest, _ = joined_runs(known, [noted], 10)
        assert (newest["run_id"], newest["state"]) == ("typo", "refused")
        last = last_ended(joined_runs(known, [noted], 10))
        assert last is not None
        assert last["run_id"] == "before"
    (real,) = joined_runs([], [replace(noted, reason=("gone", "ClusterUnreachable"))], 10)
    assert real["state"] == "failed"


def test_the_last_sync_of_groups_that_was_due_says_which_are_held_up() -> None:
    held = {"total": 1, "named": [{"what": "group g", "reason": "it has members"}]}
    busy, fine = {"left_out": "", "held": held}, {"left_out": ""}
    not_due, moved = {"left_out": "done 3 s ago, x=60"}, {"left_out": "A->B is failed over since then"}
    for outcomes, told in (([], None), ([busy], held), ([None, not_due, busy], held), ([fine, busy], None), ([moved, busy], None)):
        runs = [{**empty_run("r"), "syncs": {} if outcome is None else {"groups": outcome}} for outcome in outcomes]
        assert held_groups(runs) == told
