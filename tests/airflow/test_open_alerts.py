"""That an alert is over is told once, and only if it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.airflow.test_alerts import REFERENCE, context, raised
from tests.airflow.variables import Variables
from tests.alerting import callbacks

from ferry.airflow import alerts, open_alerts
from ferry.config.settings import AlertSettings
from ferry.errors import ClusterUnreachable, FerryError, NotAuthorized, PartitionsFailed, Superseded
from ferry.monitoring.limits import BrokenLimit, limits_broken

pytestmark = pytest.mark.airflow

LAG, AGE = BrokenLimit("ferry.alert.lag.records", "t", 7, 5), BrokenLimit("ferry.alert.lag.seconds", "t", 70.0, 60)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    found = Variables()
    monkeypatch.setattr(open_alerts, "Variable", found)
    callbacks.TOLD.clear()
    return found


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, variables: Variables) -> None:
    told = AlertSettings(callbacks=("tests.alerting.callbacks:tell",), on_first_failure=True, deadline_seconds=60)
    monkeypatch.setattr(alerts, "settings_of", lambda _: SimpleNamespace(alerts=told))


def fails(problem: FerryError, task: str = "plan_run", params: Mapping[str, Any] | None = None, **facts: Any) -> list[str]:
    given = {**context(raised(problem), task, **facts), "dag_run": run(), "params": params or {}}
    return told_by(lambda: alerts.on_failure(REFERENCE)(given))


def succeeds(task: str = "plan_run", params: Mapping[str, Any] | None = None, **facts: Any) -> list[str]:
    given = {**context(None, task), "dag_run": run(**facts), "params": params or {}}
    return told_by(lambda: alerts.on_success(REFERENCE)(given))


def run(*, minutes_ago: float = 0.0, run_type: str = "scheduled", waited: float = 0.0, clear_number: int = 0) -> Any:
    start = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    after = start - timedelta(minutes=waited)
    return SimpleNamespace(run_type=run_type, start_date=start, run_after=after, clear_number=clear_number)


def told_by(act: Any) -> list[str]:
    callbacks.TOLD.clear()
    act()
    return [f"{'resolved ' if alert['resolved'] else ''}{alert['what']}" for _, alert in callbacks.TOLD]


def test_it_is_told_once(variables: Variables) -> None:
    assert succeeds() == []
    assert fails(NotAuthorized("grant Read on topic t")) == ["NotAuthorized"]
    ((_, alert),) = callbacks.TOLD
    assert succeeds("prepare_topics") == [], "another task"
    assert succeeds() == ["resolved NotAuthorized"]
    ((_, over),) = callbacks.TOLD
    assert (over["key"], over["message"], over["next_step"]) == (alert["key"], f"resolved: {alert['message']}", "")
    assert succeeds() == []
    assert not variables.values


def test_a_task_that_fails_again_resolves_nothing() -> None:
    assert fails(NotAuthorized("x")) == ["NotAuthorized"]
    assert fails(ClusterUnreachable("B")) == ["ClusterUnreachable"]
    assert fails(Superseded("a newer run")) == []
    assert sorted(succeeds()) == ["resolved ClusterUnreachable", "resolved NotAuthorized"]


def test_limits_are_measured_together() -> None:
    task = "check_limits"
    assert fails(limits_broken("A->B", (LAG, AGE)), task) == [LAG.key, AGE.key]
    assert fails(limits_broken("A->B", (LAG,)), task) == [f"resolved {AGE.key}", LAG.key]
    assert fails(ClusterUnreachable("B"), task) == ["ClusterUnreachable"], "nobody knows the lag"
    assert fails(limits_broken("A->B", (LAG,)), task) == ["resolved ClusterUnreachable", LAG.key]
    assert succeeds(task) == [f"resolved {LAG.key}"]


def test_the_report_speaks_for_the_copy_too() -> None:
    """A run that has nothing left to copy skips the copy."""
    assert fails(PartitionsFailed("t-0: BatchRefused"), "copy_records") == ["PartitionsFailed"]
    assert succeeds("report_outcome") == ["resolved PartitionsFailed"]
    assert succeeds("copy_records") == []


def test_a_try_that_helped_resolves_the_warning_about_the_first() -> None:
    first = {**context(raised(ClusterUnreachable("B"))), "dag_run": run()}
    assert told_by(lambda: alerts.on_retry(REFERENCE)(first)) == ["ClusterUnreachable"]
    assert succeeds() == ["resolved ClusterUnreachable"]


@pytest.mark.parametrize(("facts", "told"), [
    ({"minutes_ago": 2}, ["resolved ferry.alert.deadline.seconds"]),
    ({"minutes_ago": 0.1}, []),
    ({"minutes_ago": 0.1, "waited": 5}, []),
    ({"minutes_ago": 0.1, "waited": 5, "run_type": "manual"}, ["resolved ferry.alert.deadline.seconds"]),
    ({"minutes_ago": 0.1, "waited": 5, "run_type": "manual", "clear_number": 1}, []),
])  # fmt: skip
def test_a_run_that_ends_late_resolves_its_deadline(facts: dict[str, Any], told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert succeeds("plan_run", **facts) == []
    assert succeeds("report_outcome", **facts) == told
    monkeypatch.setattr(alerts, "AIRFLOW", (3, 1))  # it has sent none
    assert succeeds("report_outcome", **facts) == []


@pytest.mark.parametrize("task", ["prepare_topics", "report_outcome"])
@pytest.mark.parametrize(
    "facts",
    [
        *({"params": given} for given in ({"dry_run": True}, {"topics": ["t"]}, {"bound": "interval"}, {"groups": "billing"})),
        *({"params": {bound: "2026-01-01T00:00:00Z"}} for bound in ("from", "until")),
        {"run_type": "backfill"},
    ],
)
def test_a_run_that_does_not_do_all_resolves_nothing(task: str, facts: dict[str, Any]) -> None:
    for failing in (task, "copy_records"):
        assert fails(NotAuthorized("x"), failing) == ["NotAuthorized"]
    assert succeeds(task, **facts) == []
    assert "resolved NotAuthorized" in succeeds(task)


def test_a_recovery_of_some_groups_ends_the_alert_of_one_of_the_same_groups() -> None:
    billing, shipping = {"params": {"groups": "billing"}}, {"params": {"groups": "shipping"}}
    assert fails(NotAuthorized("x"), "report_outcome", **billing) == ["NotAuthorized"]
    assert succeeds("report_outcome", **shipping) == []
    assert succeeds("report_outcome", **billing) == ["resolved NotAuthorized"]
    assert fails(NotAuthorized("x"), "report_outcome", **billing) == ["NotAuthorized"]
    assert succeeds("report_outcome") == ["resolved NotAuthorized"], "it does everything"


@pytest.mark.parametrize("params", [{"from": None, "until": None, "topics": []}, {"dry_run": False, "groups": None}])
def test_runs_of_verifies_and_recoveries_resolve_too(params: dict[str, Any]) -> None:
    """Their DAGs have other parameters."""
    assert fails(NotAuthorized("x"), "compare_copies") == ["NotAuthorized"]
    assert succeeds("compare_copies", params=params) == ["resolved NotAuthorized"]


def test_nothing_is_resolved_that_would_be_resolved_again(variables: Variables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fails(NotAuthorized("x")) == ["NotAuthorized"]
    with monkeypatch.context() as refused:
        refused.setattr(variables, "delete", MagicMock(side_effect=RuntimeError))
        assert succeeds() == []
    assert succeeds() == ["resolved NotAuthorized"]


def test_alerts_are_sent_although_nothing_can_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_alerts, "Variable", Variables(broken=True))
    assert fails(NotAuthorized("x")) == ["NotAuthorized"]
    assert succeeds() == []


def test_what_somebody_else_wrote_is_no_alert(variables: Variables) -> None:
    variables.values[f"{open_alerts.PREFIX}.ferry.A.B.plan_run"] = '[{"flow": 7}]'
    assert fails(NotAuthorized("x")) == ["NotAuthorized"]
    assert succeeds() == ["resolved NotAuthorized"]
