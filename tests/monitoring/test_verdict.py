"""One word for a flow, the reasons, how far it is behind, and the next step."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ferry.page
from ferry.cli.status_text import status_document, status_parts
from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import TopicPartition
from ferry.config.settings import LAG_RECORDS
from ferry.copying.committed import Progress
from ferry.errors import ExitCode, all_errors, is_error
from ferry.ledger.run_report import LossReport, PartitionFailure, Skipped
from ferry.ledger.run_summary import RunState
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lacking import not_counted
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.missing import COMPACTED, LAST_MOMENT, Missing
from ferry.monitoring.runs import empty_run
from ferry.monitoring.verdict import Health, Step, verdict_of
from ferry.page.problem import Problem

pytestmark = pytest.mark.unit

IDLE = PartitionStatus("orders", 0, "A.orders", 100, 100, 0, 0, 0.0, None, None, 0)
BEHIND = replace(IDLE, topic="clicks", lag_records=10, lag_seconds=30.0)
LOSS = LossReport("orders", 0, 5, 9, "")
STOPPED = {"topic": "orders", "partition": 1, "error": "TargetRecreated", "problem": "deleted"}
STOP = PartitionFailure("orders", 1, "TargetRecreated", "deleted")
HELD = LastStableLag("orders", 0, "B", "b:9092", TopicPartition("A.orders", 0), 5, 8, 1_200_000, overdue=True)
DENIED = PartitionFailure("payments", -1, "NotAuthorized", "grant Read on topic payments")
NOT_READ = "1 topic stopped (NotAuthorized): topic payments: grant Read on topic payments; how far behind: unknown"
WHY, PUT_BACK = "not in the property topics", "put it back: the next run goes on; or exclude it"
DROPPED = (Skipped("payments", f"{WHY}; {PUT_BACK}", True), Skipped("other", "not in topics", False), Skipped("flow", "why"))
GAP = Missing("orders", 0, 1, 1_000, first_time=1_000)
NOW = 1_800_000_000.0
UNREACHABLE = Problem("ClusterUnreachable", "cluster B (b:9092) does not answer", "check it")
REFUSED = Problem("UnreadableRecord", "damaged", "look")
HEALTHY = FlowHealth("A->B", (IDLE,), interval_seconds=600.0)


def seen(*partitions: PartitionStatus, losses: tuple[LossReport, ...] = (), **more: Any) -> FlowHealth:
    return FlowHealth("A->B", partitions or (IDLE,), losses=losses, **more)


def lagging(records: int = 10, seconds: float = 30.0, headroom: float | None = None) -> PartitionStatus:
    return replace(BEHIND, lag_records=records, lag_seconds=seconds, headroom_seconds=headroom)


def run(state: str, *, failed: list[dict[str, Any]] | None = None, syncs: dict[str, Any] | None = None) -> dict[str, Any]:
    known = {**empty_run("r1"), "bound": "latest", "newest": True, "superseded": ""}
    return {**known, "state": state, "failed": failed or [], "syncs": syncs or {}}


AWAY = {**STOPPED, "topic": "", "error": "task plan_run failed", "problem": "cluster B (b:9092) does not answer"}
AWAY |= {"cause": "ClusterUnreachable"}
ENDED = {
    **run("done"), "records": 4_999, "finished": datetime.fromtimestamp(NOW - 130, UTC).isoformat(timespec="milliseconds"),
}  # fmt: skip

IT_BEGAN = "it began 2 min ago, at 2027-01-15T07:57:50+00:00 (id r1)"
BEGAN = "a run began 2 min ago, at 2027-01-15T07:57:50+00:00, and has not ended (id r1)"

GROUP_FAILED = {"failed": 1, "why": {"error": "GroupFailed", "problem": "group bad, A.t-0: its metadata are too long"}}


BUSY = {"what": "group billing", "reason": "it has 2 members on B (app), and Ferry writes only groups without members"}
MOVED = "; after a failover, such a group goes on at its offsets on B, not at those from A, and reads records again"
TOLD_BUSY = "1 group not synced: group billing, because it has 2 members on B (app), and Ferry writes only groups without members" + MOVED
SKIPPED = (
    "somebody told Ferry to skip them, with ferry seed; if that was a mistake, a backfill copies them, and nothing twice; "
    "if it was meant, do nothing: this warning stays until the source has dropped them"
)


@pytest.mark.parametrize(
    ("known", "health", "reason"),
    [
        (HEALTHY, Health.HEALTHY, None),
        (seen(held_groups={"total": 1, "named": [BUSY]}), Health.LAGGING, TOLD_BUSY),
        (
            seen(held_groups={"total": 9, "named": [BUSY] * 3}),
            Health.LAGGING,
            "9 groups not synced: " + f"{TOLD_BUSY[20:].removesuffix(MOVED)}; " * 3 + "and 6 more" + MOVED,
        ),
        (FlowHealth("A->B", read=False), Health.UNKNOWN, "nothing was read yet"),
        (replace(HEALTHY, problem=UNREACHABLE), Health.UNREACHABLE, "cluster B (b:9092) does not answer"),
        (FlowHealth("A->B", read=False, problem=UNREACHABLE), Health.UNREACHABLE, "cluster B (b:9092) does not answer"),
        (FlowHealth("A->B", read=False, problem=Problem("ReadTimedOut", "slow", "wait")), Health.UNREACHABLE, "slow"),
        (FlowHealth("A->B", read=False, problem=Problem("AuthenticationFailed", "no", "log in")), Health.UNREACHABLE, "no"),
        (FlowHealth("A->B", read=False, problem=REFUSED), Health.FAILING, "damaged"),
        (
            seen(losses=(LOSS,)),
            Health.LOSS,
            "the source deleted 4 records that Ferry had not copied: orders-0 offsets 5 to 8",
        ),
        (
            replace(seen(losses=(LOSS,) * 4), losses_cut=5, lost_records_cut=20),
            Health.LOSS,
            "the source deleted 36 records that Ferry had not copied: " + "orders-0 offsets 5 to 8; " * 3 + "and 6 more",
        ),
        (replace(HEALTHY, last_run=run("done")), Health.HEALTHY, None),
        (replace(HEALTHY, last_run=run("superseded")), Health.HEALTHY, None),
        (replace(HEALTHY, last_run={**run("failed"), "finished": ENDED["finished"]}), Health.FAILING, "the last run failed 2 min ago"),
        (
            replace(HEALTHY, last_run={**run("failed"), "started": ENDED["finished"]}),
            Health.FAILING,
            "the last run began 2 min ago and left no result: it died",
        ),
        (
            seen(expired=(LOSS,)),
            Health.LOSS,
            "the source deleted 4 records that Ferry had not copied: orders-0 offsets 5 to 8",
        ),
        (seen(expired=(LOSS,), newest_run=run("running")), Health.HEALTHY, None),
        (
            replace(HEALTHY, last_run=run("partly failed", failed=[STOPPED], syncs={"acls": {"failed": 1}, "groups": {"failed": 0}})),
            Health.FAILING,
            "the last run partly failed: orders: TargetRecreated: deleted; sync acls",
        ),
        (
            replace(HEALTHY, last_run=run("failed", failed=[{**STOPPED, "topic": ""}])),
            Health.FAILING,
            "the last run failed: TargetRecreated: deleted",
        ),
        (
            replace(
                HEALTHY,
                last_run=run("failed", failed=[{**STOPPED, "topic": "", "error": "task plan_run failed", "problem": "see its log"}]),
            ),
            Health.FAILING,
            "the last run failed: task plan_run failed: see its log",
        ),
        (
            replace(HEALTHY, last_run={**run("failed", failed=[AWAY]), "finished": ENDED["finished"]}),
            Health.FAILING,
            "the last run failed 2 min ago: cluster B (b:9092) does not answer; now both clusters answer",
        ),
        (
            seen(stopped=(STOP,), last_run=run("partly failed", failed=[STOPPED])),
            Health.FAILING,
            "1 partition stopped (TargetRecreated): orders-1: deleted",
        ),
        (
            seen(
                last_stable_lags=(HELD,),
                last_run=run("partly failed", failed=[{**STOPPED, "error": "TransactionHangs"}]),
            ),
            Health.FAILING,
            "1 transaction open for too long: A.orders-0 on B (open for 20 min, 3 records wait behind it)",
        ),
        (
            seen(losses=(replace(LOSS, kind="skipped"),)),
            Health.LOSS,
            "the target refused 4 records: orders-0 offsets 5 to 8",
        ),
        (
            seen(losses=(LOSS, replace(LOSS, kind="skipped"))),
            Health.LOSS,
            "lost for good: 8 records: orders-0 offsets 5 to 8; orders-0 offsets 5 to 8",
        ),
        (
            seen(stopped=(STOP,)),
            Health.FAILING,
            "1 partition stopped (TargetRecreated): orders-1: deleted",
        ),
        (
            seen(stopped=(replace(STOP, partition=-1),)),
            Health.FAILING,
            "1 topic stopped (TargetRecreated): topic orders: deleted; how far behind: unknown",
        ),
        (
            seen(last_stable_lags=(HELD,)),
            Health.FAILING,
            "1 transaction open for too long: A.orders-0 on B (open for 20 min, 3 records wait behind it)",
        ),
        (
            replace(HEALTHY, last_run=run("partly failed", syncs={"groups": GROUP_FAILED})),
            Health.FAILING,
            "the last run partly failed: sync groups: group bad, A.t-0: its metadata are too long",
        ),
        (
            replace(HEALTHY, last_run=ENDED, newest_run=run("following", syncs={"groups": GROUP_FAILED})),
            Health.FAILING,
            "run r1, which goes on: sync groups: group bad, A.t-0: its metadata are too long",
        ),
        (replace(HEALTHY, last_run=ENDED, newest_run=run("following", syncs={"groups": {"failed": 0}})), Health.HEALTHY, None),
        (replace(HEALTHY, paused=True), Health.PAUSED, "its DAG is paused, so no run starts"),
        (replace(HEALTHY, ran=False), Health.NEVER_RAN, "nothing was copied yet"),
        (replace(HEALTHY, ran=False, newest_run=run("running")), Health.HEALTHY, None),
        (replace(HEALTHY, ran=False, newest_run=run("refused")), Health.NEVER_RAN, "nothing was copied yet"),
        (replace(HEALTHY, ran=False, last_run=run("done")), Health.HEALTHY, None),
        (
            replace(HEALTHY, newest_run={**run("queued"), "started": ENDED["finished"]}),
            Health.QUEUED,
            "run r1 was queued 2 min ago",
        ),
        (seen(last_stable_lags=(replace(HELD, overdue=False),)), Health.HEALTHY, None),
        (replace(HEALTHY, last_verify={"differences_total": 2}), Health.FAILING, "the last verify found 2 differences"),
        (replace(HEALTHY, last_verify={"differences_total": 0}), Health.HEALTHY, None),
        (seen(lagging(seconds=1200.0), interval_seconds=600.0), Health.HEALTHY, None),
        (
            seen(lagging(seconds=1201.0), interval_seconds=600.0),
            Health.LAGGING,
            "behind by 20 min, more than 2 intervals of its schedule (10 min)",
        ),
        (seen(lagging(seconds=1e6)), Health.HEALTHY, None),
        (
            seen(replace(BEHIND, lag_seconds=1e6, heartbeats=True), interval_seconds=600.0),
            Health.HEALTHY,
            None,
        ),
        (
            seen(broken=(BrokenLimit(LAG_RECORDS, "clicks", 12, 10), BrokenLimit(LAG_RECORDS, "orders", 11, 10))),
            Health.LAGGING,
            "2 topics are more than 10 records behind (ferry.alert.lag.records): clicks, orders",
        ),
        (
            seen(lagging(records=1000, headroom=500.0), interval_seconds=600.0, records_per_second=100.0),
            Health.LAGGING,
            "the source drops uncopied records in 8 min; copying them takes about 10 min",
        ),
        (seen(lagging(records=1000, headroom=611.0), interval_seconds=600.0, records_per_second=100.0), Health.HEALTHY, None),
        (seen(lagging(headroom=500.0)), Health.HEALTHY, None),
        (seen(lagging(headroom=-3.0)), Health.LAGGING, "the source may drop the oldest uncopied records at any moment"),
    ],
)
def test_the_word_and_the_reason(known: FlowHealth, health: Health, reason: str | None) -> None:
    verdict = verdict_of(known, NOW)
    assert (verdict.health, [found.text for found in verdict.reasons]) == (health, [] if reason is None else [reason])
    assert all(found.next_step for found in verdict.reasons if health is not Health.UNKNOWN)


@pytest.mark.parametrize(
    ("known", "step"),
    [
        (HEALTHY, None),
        (replace(HEALTHY, problem=UNREACHABLE), None),
        (seen(losses=(LOSS,)), Step.ACK_LOSS),
        (seen(missing=(GAP,)), Step.BACKFILL),
        (seen(missing=(replace(GAP, obstacle=COMPACTED),)), None),
        (seen(missing=(replace(GAP, first_time=-1),)), None),
        (seen(ran=False), Step.RUN),
        (replace(HEALTHY, paused=True), Step.UNPAUSE),
        (seen(lagging(headroom=-3.0)), Step.RUN),
        (replace(HEALTHY, last_verify={"differences_total": 1}), Step.VERIFY),
        (replace(HEALTHY, last_run={**run("failed"), "finished": None}), Step.RUN),
        (seen(stopped=(STOP,)), None),
    ],
)
def test_a_next_step_says_of_what_kind_it_is(known: FlowHealth, step: Step | None) -> None:
    assert verdict_of(known, NOW).step is step


def test_the_page_has_a_way_for_every_kind_of_step() -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "next_step.js").read_text()
    table = script.partition("const WAYS = {")[2].partition("\n};")[0]
    assert set(re.findall(r'^  "?([\w-]+)"?: ', table, re.MULTILINE)) == set(Step)


def test_the_worst_names_the_flow_and_every_reason_is_told() -> None:
    known = seen(lagging(seconds=9e9), losses=(LOSS,), stopped=(STOP,), missing=(GAP,), last_run=run("failed"), interval_seconds=60.0)
    known = replace(known, problem=UNREACHABLE)
    verdict = verdict_of(known, NOW)
    assert verdict.health is Health.UNREACHABLE
    assert [reason.text.split(" ")[0] for reason in verdict.reasons] == ["cluster", "the", "1", "the", "999", "behind"]
    assert verdict.behind == "", "what was read before the outage may be wrong now"
    assert verdict_of(replace(known, problem=None), NOW).health is Health.LOSS
    assert verdict_of(replace(known, problem=None, losses=()), NOW).health is Health.FAILING


def test_missing_records_name_the_backfill_that_copies_them() -> None:
    verdict = verdict_of(seen(missing=(GAP, replace(GAP, topic="clicks", end=5))), NOW)
    assert (verdict.health, verdict.reasons[0].text) == (
        Health.MISSING,
        (f"1,003 records missing in 2 topics: orders, clicks ({SKIPPED})"),
    )
    command = "ferry backfill mm2.properties --flow 'A->B' --topic orders --topic clicks --from 1970-01-01T00:00:01Z"
    assert verdict.next_step.startswith(f"{command} --until 2027-01-15")
    future = verdict_of(seen(missing=(replace(GAP, first_time=LAST_MOMENT - 1),)), NOW)
    assert future.next_step.endswith("--from 9999-12-31T23:59:58Z --until 9999-12-31T23:59:59Z"), "an interval that is not empty"
    for kept, told in ((NOW, "in 1 s"), (1.0, "at any moment"), (None, "dropped them)")):
        dropped = verdict_of(seen(missing=(replace(GAP, kept_seconds=kept), replace(GAP, first_time=-1, kept_seconds=1.0))), NOW)
        assert dropped.reasons[0].text.removesuffix(")").endswith(told.removesuffix(")"))
    seeded = verdict_of(seen(missing=(GAP,), seeded="2027-01-15T07:00:00+00:00"), NOW)
    assert "with ferry seed, last used 2027-01-15 07:00 UTC; if that was a mistake" in seeded.reasons[0].text
    assert str(verdict_of(seen(lagging(), missing=(GAP,)), NOW)).endswith("; besides these, 10 records behind, the oldest 30 s old")
    compacted = verdict_of(seen(missing=(replace(GAP, obstacle=COMPACTED),)), NOW)
    assert (compacted.health, compacted.next_step) == (Health.MISSING, COMPACTED)


@pytest.mark.parametrize(
    ("known", "line"),
    [
        (HEALTHY, "A->B is healthy, up to date"),
        (replace(HEALTHY, last_run=ENDED), "A->B is healthy, up to date; last run 2 min ago copied 4,999 records"),
        (replace(HEALTHY, last_run={**ENDED, "records": 1}), "A->B is healthy, up to date; last run 2 min ago copied 1 record"),
        (
            replace(HEALTHY, last_run=ENDED, newest_run={**run("running"), "started": ENDED["finished"]}),
            ("A->B is healthy, up to date; last run 2 min ago copied 4,999 records; " + BEGAN),
        ),
        (
            seen(BEHIND, ran=False, newest_run={**run("running"), "started": ENDED["finished"]}),
            "A->B is healthy, 10 records behind, the oldest 30 s old; " + BEGAN,
        ),
        (
            replace(HEALTHY, last_run={**ENDED, "superseded": "r0"}),
            (
                "A->B is healthy, up to date; last run 2 min ago copied 4,999 records; "
                "run r0 ended early, because a newer run, or a command, took the flow over"
            ),
        ),
        (
            seen(lagging(10, 1_300.0), last_run={**ENDED, "lag_records": 4}, interval_seconds=600.0),
            (
                "A->B lags: behind by 22 min, more than 2 intervals of its schedule (10 min); 10 records behind, the oldest 22 min old; "
                "last run 2 min ago copied 4,999 records and left 4 behind (it copies what is there when it begins); "
                "the lag has grown by 6 since"
            ),
        ),
        (  # another run is under way
            seen(lagging(10, 1_300.0), last_run={**ENDED, "lag_records": 4, "newest": False}, interval_seconds=600.0),
            (
                "A->B lags: behind by 22 min, more than 2 intervals of its schedule (10 min); 10 records behind, the oldest 22 min old; "
                "last run 2 min ago copied 4,999 records"
            ),
        ),
        (
            replace(HEALTHY, left_out=DROPPED, last_run=ENDED),
            (f"A->B: 1 topic is not copied: payments: {WHY}; the other topics are up to date; last run 2 min ago copied 4,999 records"),
        ),
        (
            seen(lagging(records=1), left_out=DROPPED * 4, left_out_records=60),
            (
                f"A->B: 4 topics are not copied: payments, payments, payments and 1 more: {WHY}; "
                "A has 60 records of them that no run copied; 1 record behind, the oldest 30 s old"
            ),
        ),
        (
            replace(HEALTHY, left_out=DROPPED, paused=True),
            "A->B is paused: its DAG is paused, so no run starts; 1 topic is not copied; otherwise up to date",
        ),
        (seen(lagging(records=1)), "A->B is healthy, 1 record behind, the oldest 30 s old"),
        (
            seen(missing=(GAP,), last_run=ENDED),
            (
                f"A->B is not complete: 999 records missing in 1 topic: orders ({SKIPPED}); besides these, up to date; "
                "last run 2 min ago copied 4,999 records"
            ),
        ),
        (replace(HEALTHY, problem=UNREACHABLE), "A->B cannot be read: cluster B (b:9092) does not answer"),
        (
            seen(stopped=(DENIED,), last_run=ENDED),
            f"A->B is failing: {NOT_READ}; the rest is up to date; last run 2 min ago copied 4,999 records",
        ),
        (
            seen(IDLE, BEHIND, stopped=(DENIED,)),
            f"A->B is failing: {NOT_READ}; the rest is 10 records behind, the oldest 30 s old; up to date: orders",
        ),
        (
            seen(stopped=(STOP,)),
            "A->B is failing: 1 partition stopped (TargetRecreated): orders-1: deleted; otherwise up to date",
        ),
        (
            seen(last_stable_lags=(HELD,), last_run=ENDED),
            (
                "A->B is failing: 1 transaction open for too long: A.orders-0 on B (open for 20 min, 3 records wait behind it); "
                "the rest is up to date; last run 2 min ago copied 4,999 records"
            ),
        ),
    ],
)
def test_a_line_says_all_of_it(known: FlowHealth, line: str) -> None:
    assert str(verdict_of(known, NOW)) == line


def test_what_the_lag_leaves_out_is_told_beside_it() -> None:
    assert not_counted(seen(stopped=(DENIED, STOP), last_stable_lags=(HELD,))) == [
        "unknown for topic payments",
        "3 records behind an open transaction",
    ]
    assert not_counted(HEALTHY) == []


def test_copies_that_are_gone_with_a_remote_topic_are_summed_once() -> None:
    again = "remote topic A.t was deleted and created again"
    problem = again + "; what was copied of t-{0} below source offset 90 is gone{1}; the topic had topic id x"
    rows = [replace(IDLE, topic="t", partition=number, position=90, log_start=30, lag_records=20, lag_seconds=9.0) for number in range(2)]
    kept = tuple(
        PartitionFailure("t", n, "TargetRecreated", problem.format(n, " (the source still has it, from offset 30 on)")) for n in (0, 1)
    )
    stopped = f"2 partitions stopped (TargetRecreated): t-0, t-1: {again} on B, and the copies there are gone"
    dropped, gone = (
        [replace(row, headroom_seconds=60.0) for row in rows],
        [replace(row, log_start=90, headroom_seconds=60.0) for row in rows],
    )
    lacks = ": B lacks {} records that A has, {} that were copied before{}, and 40 that were not copied yet"
    first = " (A deletes these first, before the headroom ends)"
    for known, told in (
        (seen(*rows, stopped=kept), lacks.format(160, 120, "")),  # A deletes nothing by time
        (seen(*dropped, stopped=kept), lacks.format(160, 120, first)),
        (seen(*gone, stopped=kept), lacks.format(40, 0, "")),
        (seen(*rows, stopped=tuple(replace(one, problem=problem.format(9, "")) for one in kept)), ""),
    ):
        (reason,) = verdict_of(known, NOW).reasons
        assert reason.text == stopped + told
        assert "Ferry copies t again, " in reason.next_step
    (reason,) = verdict_of(replace(seen(*rows, stopped=kept), stopped_cut=1), NOW).reasons
    assert "B lacks at least 160 records" in reason.text


def test_a_topic_that_is_left_out_has_a_next_step_and_a_word() -> None:
    others = (Skipped("paymnts", "A has no such topic; correct topics", True), Skipped("clicks", DROPPED[0].reason, True))
    found = verdict_of(replace(HEALTHY, left_out=(*DROPPED, *others), left_out_records=0), NOW)
    assert (found.health, found.word, found.exit_code) == (Health.LEFT_OUT, "3 topics are not copied", ExitCode.PARTLY_FAILED)
    assert found.next_step == f"payments, clicks: {PUT_BACK}; paymnts: correct topics"
    (reason,) = found.reasons
    assert reason.text == (
        f"3 topics are not copied: payments, clicks: {WHY}; paymnts: A has no such topic; A has 0 records of them that no run copied"
    )
    lines = [str(part) for part in status_parts(replace(HEALTHY, left_out=DROPPED), every=False, now=NOW)]
    assert lines[1:] == [f"next: payments: {PUT_BACK}", "left out: 1 topic of the source: other (not in topics)"]
    assert not verdict_of(replace(HEALTHY, left_out=DROPPED, problem=UNREACHABLE), NOW).not_copied


def test_a_run_does_not_mend_a_loss_behind_an_open_transaction() -> None:
    there = replace(HELD, cluster="A", held=TopicPartition("orders", 0), overdue=False)
    (reason,) = verdict_of(seen(expired=(LOSS,), last_stable_lags=(there,)), NOW).reasons
    assert (reason.health, reason.step) == (Health.LOSS, None)
    assert reason.text.endswith("orders-0 offsets 5 to 8; what is left waits for an open transaction")
    assert reason.next_step.startswith("end the transaction that is open in orders-0 on A, because a run copies nothing of it before: ")
    assert reason.next_step.endswith(there.remedy)
    (other,) = verdict_of(seen(expired=(LOSS,), last_stable_lags=(replace(there, partition=3),)), NOW).reasons
    assert other.step is Step.RUN


@pytest.mark.parametrize(
    ("known", "step"),
    [
        (seen(ran=False), "the run that was due last then starts at once"),
        (HEALTHY, "if a run was due meanwhile, it then starts at once"),
    ],
)
def test_a_pause_says_when_runs_start_after_it(known: FlowHealth, step: str) -> None:
    found = verdict_of(replace(known, paused=True, next_due=NOW + 7_200), NOW)
    assert found.next_step == f"unpause the DAG in Airflow: {step}, and the next run 2027-01-15 10:00 UTC, in 2 h"


def test_a_stopped_topic_does_not_hide_which_others_are_fine() -> None:
    known = seen(IDLE, BEHIND, stopped=(replace(STOP, topic="clicks"),))
    assert str(verdict_of(known, NOW)).endswith("; 10 records behind, the oldest 30 s old; up to date: orders")
    held = replace(HELD, held=TopicPartition("A.orders", 0))
    for not_fine in ({"missing": (GAP,)}, {"losses": (LOSS,)}, {"expired": (LOSS,)}, {"last_stable_lags": (held,)}, {"stopped_cut": 1}):
        assert "up to date: orders" not in str(verdict_of(replace(known, **not_fine), NOW)), not_fine


def test_topics_beyond_a_list_that_is_cut_are_counted() -> None:
    assert str(verdict_of(replace(HEALTHY, left_out=DROPPED, left_out_cut=7), NOW)).startswith(
        f"A->B: 8 topics are not copied: payments: {WHY}; 7 topics more"
    )


def test_the_time_of_a_run_that_goes_on_is_that_of_the_machine_that_runs_it() -> None:
    ahead = {**run("running"), "started": "2027-01-15T08:05:00+00:00", "finished": None}
    assert "a run began 0 s ago, at 2027-01-15T08:05:00+00:00" in str(verdict_of(seen(newest_run=ahead), NOW))


def test_a_group_that_is_held_up_does_not_make_the_flow_lag() -> None:
    found = verdict_of(seen(held_groups={"total": 1, "named": [BUSY]}, last_run={**ENDED, "lag_records": 0}), NOW)
    assert str(found) == f"A->B: {TOLD_BUSY}; otherwise up to date; last run 2 min ago copied 4,999 records"
    assert (found.word, found.exit_code) == ("1 group not synced", ExitCode.PARTLY_FAILED)
    assert found.next_step.startswith("if the members run there by mistake, stop them, ")
    both = verdict_of(seen(lagging(headroom=-3.0), held_groups={"total": 1, "named": [BUSY]}), NOW)
    assert (both.word, str(both).startswith("A->B lags: ")) == ("", True)


def test_status_says_once_what_is_true_of_all_stopped_partitions() -> None:
    gone = "what was copied of t-{0} below source offset 9 is gone"
    problem = f"remote topic A.t was deleted and created again; {gone}; it had id x; f=restart copies again"
    failures = tuple(PartitionFailure("t", number, "TargetRecreated", problem.format(number)) for number in range(2))
    known = seen(BEHIND, stopped=(*failures, DENIED))
    lines = [str(part) for part in status_parts(known, every=False, now=NOW)]
    assert [text for text in lines if text.startswith("STOPPED")] == ["STOPPED: t-0, t-1: TargetRecreated: it had id x"]
    assert lines[-1] == "headroom: until the source deletes the oldest record that is not copied"
    whole = [str(part) for part in status_parts(known, every=True, now=NOW)]
    assert [text for text in whole if text.startswith("STOPPED")] == [f"STOPPED: {failure}" for failure in (*failures, DENIED)]


def test_status_says_until_when_a_run_follows() -> None:
    since, until = "2027-01-15T07:57:00+00:00", "2027-01-15T08:05:00+00:00"
    known = seen(following={"run_id": "r1", "since": since, "until": until})
    told = "A->B follows since 2027-01-15 07:57 UTC until 2027-01-15 08:05 UTC (ferry.follow.seconds, or as it was started); "
    for more, after in (
        ({}, "then no run is due: the flow has no schedule"),
        ({"next_due": NOW + 7_200}, "then records wait for the next run 2027-01-15 10:00 UTC, in 2 h"),
        ({"next_due": NOW + 240}, "the next run 2027-01-15 08:04 UTC, in 4 min, takes over"),
        ({"next_due": NOW + 7_200, "on_arrival": True}, "then a run begins when records arrive"),
    ):
        assert told + after in map(str, status_parts(replace(known, **more), every=False, now=NOW))


def test_a_run_that_copies_says_so_and_how_long_it_takes() -> None:
    known = seen(lagging(1_000), newest_run={**run("running"), "started": ENDED["finished"]}, commits_left=1_000)
    for commits, told in (
        (None, BEGAN),
        (Progress(0), BEGAN + "; it committed nothing in the last minute"),
        (Progress(9, since=1.0), f"a run is copying, time left: not known yet: {IT_BEGAN}"),
        (Progress(9, rate=2.0, since=1.0), f"a run is copying, about 8 min left: {IT_BEGAN}"),
    ):
        assert (
            str(verdict_of(replace(known, commits=commits), NOW)) == f"A->B is healthy, 1,000 records behind, the oldest 30 s old; {told}"
        )
    unknown = replace(known, commits=Progress(9, rate=2.0, since=1.0), commits_left=0)
    assert str(verdict_of(unknown, NOW)).endswith(f"; a run is copying: {IT_BEGAN}")
    of_airflow = replace(known, newest_run={**(known.newest_run or {}), "airflow_state": "running"})
    assert str(verdict_of(of_airflow, NOW)).endswith(f"; a run is under way: {IT_BEGAN}")


def test_status_names_every_stopped_partition_if_asked() -> None:
    failures = tuple(PartitionFailure("t", number, "PartitionUnavailable", "no leader") for number in range(50))
    lines = map(str, status_parts(seen(stopped=failures), every=True, now=NOW))
    assert [text for text in lines if text.startswith("STOPPED")] == [f"STOPPED: {failure}" for failure in failures]


def test_status_knows_no_airflow_so_it_names_a_pause_as_a_cause() -> None:
    run = "if not, start a run now, in Airflow or with ferry run mm2.properties --flow 'A->B'"
    assert verdict_of(seen(ran=False), NOW).next_step == f"if its DAG is paused in Airflow, unpause it, then start a run; {run}"
    due = verdict_of(replace(seen(ran=False), next_due=NOW + 60), NOW).next_step
    assert due == f"if its DAG is paused in Airflow, unpause it: a run then starts at once; {run}"


def test_a_next_step_names_commands_to_paste() -> None:
    known = replace(seen(losses=(LOSS,)), config="/etc/ferry/mm2.properties")
    assert verdict_of(known, NOW).next_step.endswith(
        "so that it does not happen again; then end this warning: ferry ack-loss /etc/ferry/mm2.properties --flow 'A->B'"
    )


@pytest.mark.parametrize(
    ("known", "line"),
    [
        (HEALTHY, "A->B: nothing is left to copy; ferry status also looks for records that a seed left out"),
        (replace(HEALTHY, left_out=DROPPED), f"A->B: 1 topic is not copied: payments: {WHY}; otherwise nothing is left to copy; "),
        (seen(lagging()), "A->B is 10 records behind, the oldest 30 s old"),
        (seen(lagging(), left_out=DROPPED), f"A->B: 1 topic is not copied: payments: {WHY}; 10 records behind, the oldest 30 s old"),
        (seen(losses=(LOSS,)), "A->B has lost records: "),
    ],
)
def test_a_run_says_how_far_the_flow_is_and_never_that_it_is_healthy(known: FlowHealth, line: str) -> None:
    assert verdict_of(known, NOW).after_run.startswith(line)


def test_heartbeats_are_no_lag_and_a_status_says_its_health() -> None:
    status = FlowHealth("A->B", (IDLE, replace(IDLE, topic="heartbeats", lag_records=1, lag_seconds=1e9, heartbeats=True)))
    assert str(verdict_of(status, NOW)) == "A->B is healthy, up to date"
    status = replace(status, missing=(GAP,), last_run=ENDED)
    assert verdict_of(status, NOW) == verdict_of(seen(missing=(GAP,), last_run=ENDED), NOW)
    assert status_document(status, NOW)["health"] == "missing"


def test_the_page_has_a_sign_for_every_state_of_a_run() -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "runs.js").read_text()
    table = script.partition("const STATES = {")[2].partition("};")[0]
    signs = {quoted or plain for quoted, plain in re.findall(r'^  (?:"([^"]+)"|(\w+)): \[', table, re.MULTILINE)}
    assert signs == {state.value for state in RunState}


def test_a_new_flow_whose_dag_is_paused_is_not_healthy() -> None:
    found = verdict_of(replace(seen(lagging(33_780, 5_640.0), ran=False, newest_run={**run("queued"), "started": None}), paused=True), NOW)
    assert [reason.health for reason in found.reasons] == [Health.PAUSED, Health.NEVER_RAN, Health.QUEUED]
    assert str(found) == "A->B is paused: its DAG is paused, so no run starts; 33,780 records behind, the oldest 94 min old"
    assert found.next_step == "unpause the DAG in Airflow; a run that somebody starts waits until then"
    assert found.exit_code == ExitCode.PARTLY_FAILED
    status = FlowHealth("A->B", (IDLE, replace(BEHIND, lag_records=10)), ran=False)
    assert str(verdict_of(status, NOW)) == "A->B never ran: nothing was copied yet; 10 records behind, the oldest 30 s old"
    assert str(verdict_of(replace(status, partitions=()), NOW)) == "A->B never ran: nothing was copied yet"
    assert "ran" not in status_document(status, NOW)


def test_a_first_run_that_has_not_taken_the_flow_for_long_does_not_hide_that_it_never_ran() -> None:
    """It was killed: the runs topic holds only that it began."""
    killed = {**run("running"), "started": datetime.fromtimestamp(NOW - 7_200, UTC).isoformat()}
    line = "A->B never ran: nothing was copied yet; 10 records behind, the oldest 30 s old; "
    line += "a run began 2 h ago, at 2027-01-15T06:00:00+00:00, and has not ended (id r1)"
    assert str(verdict_of(seen(BEHIND, ran=False, newest_run=killed), NOW)) == line


@pytest.mark.parametrize("error", sorted(kind.__name__ for kind in all_errors() if is_error(kind.__name__) and "message" in kind.next_step))
def test_a_next_step_that_speaks_of_a_message_has_it_beside_it(error: str) -> None:
    limit = "appending to A.t-0: MESSAGE_TOO_LARGE (10): raise max.message.bytes of the remote topic"
    for topic in ("t", ""):
        failed = [{**STOPPED, "topic": topic, "error": error, "problem": limit}]
        (reason,) = verdict_of(replace(HEALTHY, last_run=run("partly failed", failed=failed)), NOW).reasons
        assert limit in reason.text
        assert "message" in reason.next_step


def test_the_page_has_a_sign_for_every_health() -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "elements.js").read_text()
    table = script.partition("export const HEALTH = {")[2].partition("};")[0]
    assert set(re.findall(r"^  (\w+): \[", table, re.MULTILINE)) == {health.value for health in Health}
    order = (Path(ferry.page.__file__).parent / "static" / "overview.js").read_text().partition("const URGENCY = [")[2].partition("]")[0]
    assert set(re.findall(r'"(\w+)"', order)) == {health.value for health in Health}
