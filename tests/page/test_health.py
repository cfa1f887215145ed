"""One word for a flow, and the reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ferry.page
from ferry.config.settings import LAG_RECORDS
from ferry.ledger.run_summary import RunState
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.page.health import Health, Signs, health_of
from ferry.page.overview import Overview
from ferry.page.problem import Problem

pytestmark = pytest.mark.unit

IDLE = PartitionStatus("orders", 0, "A.orders", 100, 100, 0, 0, 0.0, None, None, 0)
BEHIND = replace(IDLE, topic="clicks", lag_records=10, lag_seconds=30.0)
LOSS = {"topic": "orders", "partition": 0, "upstream_start": 5, "upstream_end": 9, "acknowledged": False}
SEEN_LOSS = {**LOSS, "acknowledged": True}
STOPPED = {"topic": "orders", "partition": 1, "error": "TargetRecreated", "problem": "deleted"}
HELD = {"topic": "orders", "partition": 0, "held_topic": "A.orders", "cluster": "B", "overdue": True}
UNREACHABLE = Problem("ClusterUnreachable", "cluster B (b:9092) does not answer", "check it")
REFUSED = Problem("UnreadableRecord", "damaged", "look")
HEALTHY = Signs(Overview((IDLE,)), interval_seconds=600.0)


def lagging(records: int = 10, seconds: float = 30.0, headroom: float | None = None) -> Overview:
    return Overview((IDLE, replace(BEHIND, lag_records=records, lag_seconds=seconds, headroom_seconds=headroom)))


def run(state: str, *, failed: list[dict[str, Any]] | None = None, syncs: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"run_id": "r1", "state": state, "failed": failed or [], "syncs": syncs or {}}


@pytest.mark.parametrize(
    ("signs", "health", "reason"),
    [
        (HEALTHY, Health.HEALTHY, None),
        (Signs(), Health.UNKNOWN, "nothing was read yet"),
        (replace(HEALTHY, problem=UNREACHABLE), Health.UNREACHABLE, "ClusterUnreachable: cluster B (b:9092) does not answer"),
        (Signs(problem=UNREACHABLE), Health.UNREACHABLE, "ClusterUnreachable: cluster B (b:9092) does not answer"),
        (Signs(problem=Problem("ReadTimedOut", "slow", "")), Health.UNREACHABLE, "ReadTimedOut: slow"),
        (Signs(problem=Problem("AuthenticationFailed", "no", "")), Health.UNREACHABLE, "AuthenticationFailed: no"),
        (Signs(problem=REFUSED), Health.FAILING, "UnreadableRecord: damaged"),
        (Signs(Overview((IDLE,), (LOSS,), 1, 1)), Health.LOSS, "1 range lost and not acknowledged: orders-0 [5, 9)"),
        (Signs(Overview((IDLE,), (SEEN_LOSS,), 1, 0)), Health.HEALTHY, None),
        (
            Signs(Overview((IDLE,), (LOSS,) * 4, 9, 9)),
            Health.LOSS,
            "9 ranges lost and not acknowledged: " + "orders-0 [5, 9); " * 3 + "and 6 more",
        ),
        (replace(HEALTHY, last_run=run("done")), Health.HEALTHY, None),
        (replace(HEALTHY, last_run=run("superseded")), Health.HEALTHY, None),
        (replace(HEALTHY, last_run=run("failed")), Health.FAILING, "run r1 failed"),
        (
            replace(HEALTHY, last_run=run("partly failed", failed=[STOPPED], syncs={"acls": {"failed": 1}, "groups": {"failed": 0}})),
            Health.FAILING,
            "run r1 partly failed: orders: TargetRecreated; sync acls",
        ),
        (
            replace(HEALTHY, last_run=run("failed", failed=[{**STOPPED, "topic": ""}])),
            Health.FAILING,
            "run r1 failed: the run: TargetRecreated",
        ),
        (Signs(Overview((IDLE,), stopped=(STOPPED,), stopped_total=1)), Health.FAILING, "1 partition stopped: orders-1: TargetRecreated"),
        (
            Signs(Overview((IDLE,), stopped=({**STOPPED, "partition": -1},), stopped_total=1)),
            Health.FAILING,
            "1 partition stopped: orders: TargetRecreated",
        ),
        (Signs(Overview((IDLE,), open_transactions=(HELD,))), Health.FAILING, "1 transaction open for too long: A.orders-0 on B"),
        (Signs(Overview((IDLE,), open_transactions=({**HELD, "overdue": False},))), Health.HEALTHY, None),
        (replace(HEALTHY, last_verify={"differences_total": 2}), Health.FAILING, "the last verify found 2 differences"),
        (replace(HEALTHY, last_verify={"differences_total": 0}), Health.HEALTHY, None),
        (Signs(lagging(seconds=1200.0), interval_seconds=600.0), Health.HEALTHY, None),
        (
            Signs(lagging(seconds=1201.0), interval_seconds=600.0),
            Health.LAGGING,
            "behind by 20 min, more than 2 intervals of its schedule (10 min)",
        ),
        (Signs(lagging(seconds=1e6)), Health.HEALTHY, None),
        (
            Signs(Overview((replace(BEHIND, lag_seconds=1e6, heartbeats=True),)), interval_seconds=600.0),
            Health.HEALTHY,
            None,
        ),
        (
            Signs(Overview((IDLE,), broken=(BrokenLimit(LAG_RECORDS, "clicks", 12, 10), BrokenLimit(LAG_RECORDS, "orders", 11, 10)))),
            Health.LAGGING,
            "2 topics beyond ferry.alert.lag.records=10: clicks; orders",
        ),
        (
            Signs(lagging(records=1000, headroom=500.0), interval_seconds=600.0, records_per_second=100.0),
            Health.LAGGING,
            "the source drops uncopied records in 8 min; copying them takes about 10 min",
        ),
        (Signs(lagging(records=1000, headroom=611.0), interval_seconds=600.0, records_per_second=100.0), Health.HEALTHY, None),
        (Signs(lagging(headroom=500.0)), Health.HEALTHY, None),
        (Signs(lagging(headroom=-3.0)), Health.LAGGING, "the source may drop the oldest uncopied records at any moment"),
    ],
)
def test_the_word_and_the_reason(signs: Signs, health: Health, reason: str | None) -> None:
    assert health_of(signs) == (health, () if reason is None else (reason,))


def test_the_worst_names_the_flow_and_every_reason_is_told() -> None:
    seen = replace(lagging(seconds=9e9), losses=(LOSS,), losses_total=1, losses_open=1, stopped=(STOPPED,), stopped_total=1)
    signs = Signs(seen, UNREACHABLE, run("failed"), interval_seconds=60.0)
    health, reasons = health_of(signs)
    assert health is Health.UNREACHABLE
    assert [reason.split(" ")[0] for reason in reasons] == ["ClusterUnreachable:", "1", "run", "1", "behind"]
    assert health_of(replace(signs, problem=None))[0] is Health.LOSS
    assert health_of(replace(signs, problem=None, overview=replace(seen, losses_open=0)))[0] is Health.FAILING


def test_the_page_has_a_sign_for_every_state_of_a_run() -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "runs.js").read_text()
    table = script.partition("const STATES = {")[2].partition("};")[0]
    signs = {quoted or plain for quoted, plain in re.findall(r'^  (?:"([^"]+)"|(\w+)): \[', table, re.MULTILINE)}
    assert signs == {state.value for state in RunState}
