"""What a task that starts Spark does if Spark cannot be started: it names the reason, for its log, the note and the report."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from ferry.airflow import steps, tasks
from ferry.airflow.flows import FlowReference
from ferry.airflow.run_note import FAILURE
from ferry.airflow.spark_operators import KUBERNETES, FerrySparkOperator
from ferry.airflow.tasks import JobFailed
from ferry.airflow.versions import AirflowException, AirflowFailException
from ferry.errors import PartitionsFailed
from ferry.ledger.run_report import RunReport, time_now
from ferry.monitoring.runs import COPY_TASK, REPORT_TASK
from ferry.pipeline.report_reading import UNFINISHED
from ferry.spark.submit import COPY_JOB

pytestmark = pytest.mark.airflow

FLOW = FlowReference(Path("mm2.properties"), "A->B")


class Submits(FerrySparkOperator):
    """Asks for a job, without a plan."""

    job = COPY_JOB

    def request(self, _: Any) -> str:
        return "{}"


@pytest.fixture
def copying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Runs the task with a Spark connection of these fields. Returns what it has left; its exception is under the key `raised`."""

    def run(**connection: object) -> dict[str, Any]:
        left: dict[str, Any] = {}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_OWN", json.dumps({"conn_type": "spark", **connection}))
        task = SimpleNamespace(task_id=COPY_TASK, log_url=f"http://airflow/{COPY_TASK}", xcom_push=left.__setitem__)
        monkeypatch.setattr(tasks, "get_current_context", lambda: {"ti": task})
        try:
            Submits(task_id=COPY_TASK, flow=FLOW, conn_id="spark_own" if connection else "spark_gone").execute({})
        except AirflowException as problem:
            left["raised"] = problem
        return left

    return run


def without_spark(monkeypatch: pytest.MonkeyPatch, place: Path) -> str:
    client = ModuleSpec("pyspark", None, is_package=True)
    client.submodule_search_locations = [str(place)]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: client if name == "pyspark" else find(name, package))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return version("pyspark-client")


def test_the_client_of_the_provider_alone_fails_at_once_and_names_the_command(
    copying: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since its release 6 the Spark provider brings PySpark without Spark."""
    client = without_spark(monkeypatch, tmp_path)
    left = copying(host="local[2]")
    command = f"pip install 'kafka-ferry[spark]' pyspark=={client}"
    assert isinstance(left["raised"], AirflowFailException), "no other try can find it"
    assert command in str(left["raised"])
    assert left[FAILURE]["error"] == "SparkMissing"
    assert command in left[FAILURE]["problem"]


@pytest.mark.parametrize(
    ("connection", "told"),
    [
        ({}, "Spark connection spark_gone does not exist"),
        ({"extra": {"deploy-mode": "client"}}, "spark_own has no host"),
        ({"host": "k8s://https://api.example", "port": 6443}, f"pip install {KUBERNETES}"),
    ],
)
def test_a_connection_that_cannot_be_used(copying: Callable[..., dict[str, Any]], connection: dict[str, object], told: str) -> None:
    left = copying(**connection)
    assert isinstance(left["raised"], AirflowFailException)
    assert told in str(left["raised"])
    assert left[FAILURE]["error"] == "SparkMissing"
    assert told in left[FAILURE]["problem"]


@pytest.mark.parametrize(
    ("log", "error"),
    [
        ("26/11/28 20:00:00 WARN Utils\nferry: NoExecutors: spark://h:7077 gave no executor", "NoExecutors"),
        ("ferry: ClusterUnreachable: A does not answer\nferry: SourceDataLost: last", "SourceDataLost"),
        ("java.lang.OutOfMemoryError", None),
    ],
)
def test_the_error_of_the_job_is_left_too(
    copying: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, log: str, error: str | None
) -> None:
    def end(*_: object) -> None:
        raise AirflowException(f"Cannot execute: spark-submit. Error code is: 1.\nLast spark-submit output:\n{log}")

    monkeypatch.setattr(SparkSubmitHook, "submit", end)
    left = copying(host="local[2]")
    assert isinstance(left["raised"], JobFailed)
    assert left.get(FAILURE, {}).get("error") == error


@pytest.mark.parametrize("left", [{"task": COPY_TASK, "error": "SparkMissing", "problem": "no Spark here", "url": ""}, None])
def test_the_report_of_a_run_that_never_began_names_what_stopped_the_copy(
    monkeypatch: pytest.MonkeyPatch, left: dict[str, str] | None
) -> None:
    class Never:
        opened = None

        def __init__(self, *_: object) -> None:
            self.report = lambda **_: RunReport("A->B", "manual__1", time_now(), time_now(), "latest", failed=(UNFINISHED,))

        def __enter__(self) -> Never:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

    kept: list[RunReport] = []
    task = SimpleNamespace(
        task_id=REPORT_TASK, log_url="", xcom_push=lambda **_: None, xcom_pull=lambda task_ids, **_: left if task_ids == COPY_TASK else None
    )
    for module in (steps, tasks):
        monkeypatch.setattr(module, "get_current_context", lambda: {"ti": task})
    settings = SimpleNamespace(name="A->B", source=SimpleNamespace(alias="A"), target=SimpleNamespace(alias="B"))
    monkeypatch.setattr(steps, "flow_for_running", lambda _: settings)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "sync_tasks", lambda *_: {})
    monkeypatch.setattr(steps, "open_run", Never)
    monkeypatch.setattr(steps, "keep_run", lambda _, report: kept.append(report) or "")
    monkeypatch.setattr(steps, "emit", list)
    with pytest.raises(AirflowException) as told:
        steps.report(FLOW, {"dry_run": False, "needs_copy": True, "needs_preparation": True}, {})
    assert isinstance(told.value.__cause__, PartitionsFailed)
    assert ("SparkMissing: copy_records: no Spark here" in str(told.value)) is (left is not None)
    assert [failure.error for failure in kept[0].failed] == ["SparkMissing" if left else "RunUnfinished"]


def test_a_connection_that_can_be_used(copying: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda *_: None)
    assert copying(host="local[2]") == {}
