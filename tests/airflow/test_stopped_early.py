"""A run that could not be planned: what its other tasks do, and what its report says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from ferry.airflow import assets, steps, tasks
from ferry.airflow.flows import FlowReference
from ferry.airflow.tasks import EarlierTaskFailed, typed_retries
from ferry.errors import ArgumentError, ConfigError
from ferry.ledger.run_report import RunReport
from ferry.monitoring.runs import empty_run, judged, tells_health

pytestmark = pytest.mark.airflow

FLOW = FlowReference(Path("/no/such/mm2.properties"), "A->B")
WRONG = "flow A->B does not copy topic order; did you mean orders?"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[RunReport]:
    """Reports that are written to the history, of a run whose plan_run has failed."""
    xcoms: dict[tuple[str, str], Any] = {}
    reports: list[RunReport] = []

    def task(name: str) -> SimpleNamespace:
        return SimpleNamespace(
            task_id=name,
            log_url=f"http://airflow/{name}",
            xcom_push=lambda key, value: xcoms.__setitem__((name, key), value),
            xcom_pull=lambda task_ids, key: xcoms.get((task_ids, key)),
        )

    context = {"ti": task("plan_run"), "dag_run": SimpleNamespace(run_id="manual__1")}
    for module in (steps, tasks):
        monkeypatch.setattr(module, "get_current_context", lambda: context)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: SimpleNamespace(name="A->B", source=None, target=None))
    monkeypatch.setattr(steps, "keep_run", lambda _, report: reports.append(report) or "")
    with pytest.raises(AirflowFailException), typed_retries(FLOW):
        raise ArgumentError(WRONG)
    context["ti"] = task("report_outcome")
    return reports


def test_the_report_names_the_task_the_error_and_its_log(kept: list[RunReport]) -> None:
    with pytest.raises(EarlierTaskFailed) as told:
        steps.report(FLOW, None, None)
    for fact in ("plan_run", "ArgumentError", WRONG, "http://airflow/plan_run"):
        assert fact in str(told.value)
    (report,) = kept
    assert (report.run_id, [failure.error for failure in report.failed]) == ("manual__1", ["ArgumentError"])
    assert WRONG in report.failed[0].problem


def test_topics_that_could_not_be_prepared_stop_the_run_too(kept: list[RunReport]) -> None:
    """If they need no change, nothing is prepared, and the report goes on."""
    planned = {"needs_preparation": True, "needs_copy": True, "dry_run": False}
    with pytest.raises(EarlierTaskFailed):
        steps.report(FLOW, planned, None)
    with pytest.raises(AirflowSkipException):
        steps.report(FLOW, {**planned, "needs_preparation": False, "dry_run": True}, None)
    assert len(kept) == 1


def test_a_dry_run_that_failed_writes_nothing(kept: list[RunReport]) -> None:
    steps.get_current_context()["params"] = {"dry_run": True}
    with pytest.raises(EarlierTaskFailed):
        steps.report(FLOW, None, None)
    assert kept == []


def test_what_stopped_the_plan_does_not_hide_it_in_the_report(kept: list[RunReport], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: FlowReference) -> None:
        raise ConfigError("connection kafka_a is missing")

    monkeypatch.setattr(steps, "flow_for_running", missing)
    with pytest.raises(EarlierTaskFailed, match="plan_run failed"):
        steps.report(FLOW, None, None)


@pytest.mark.parametrize(
    "step",
    [
        lambda: assets.announce(FLOW, None),
        lambda: steps.check_limits(FLOW, None),
        lambda: steps.sync(FLOW, "groups", None),
    ],
)
def test_what_cannot_run_is_skipped(step: Callable[[], object]) -> None:
    with pytest.raises(AirflowSkipException, match="plan_run failed"):
        step()


def test_wrong_arguments_of_a_run_say_nothing_about_the_flow() -> None:
    run = {**empty_run("manual__1"), "state": "failed"}
    assert tells_health(run)
    assert tells_health(judged({**run, "failed": [{"error": "ArgumentError"}, {"error": "SourceMissing"}]}))
    assert not tells_health(judged({**run, "failed": [{"error": "ArgumentError"}]}))
    assert not tells_health({**run, "state": "running"})
