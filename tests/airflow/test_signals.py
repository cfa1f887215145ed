"""What a run tells others, with a real Airflow, brokers and Spark: an event that starts the example DAG over just what was copied, metrics
at an OpenTelemetry collector, and alerts of a broken limit and a missed deadline."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from demo.airflow_api import AirflowApi
from demo.airflow_services import ROOT, DemoAirflow
from tests.airflow.collector import Collector, collecting
from tests.conftest import Lab
from tools.docs.metrics_page import METRICS
from tools.kafka import SandboxCluster

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

RUN_SECONDS = 1_500
ANY_TOPIC = """\
import os
from airflow.sdk import DAG, AssetAlias, task
with DAG("any_topic", schedule=AssetAlias(os.environ["REFRESHED_ALIAS"]), is_paused_upon_creation=False):
    @task
    def started():
        pass
    started()
"""
PAGING = """\
import json
def page(alert, path):
    with open(path, "a") as lines:
        lines.write(json.dumps(alert.document()) + "\\n")
def hang(alert):
    import time
    time.sleep(600)
"""


class WithExamples(DemoAirflow):
    """Its DAGs folder holds Ferry's DAGs and the example's."""

    def environment(self) -> dict[str, str]:
        folder = self._home / "dags"
        if not folder.exists():
            folder.mkdir(parents=True)
            for path in (ROOT / "dags" / "ferry_flows.py", *(ROOT / "docs" / "examples").glob("*.py")):
                shutil.copy(path, folder)
            (folder / "any_topic.py").write_text(ANY_TOPIC)
        return {**super().environment(), "AIRFLOW__CORE__DAGS_FOLDER": str(folder)}


class Stage:
    """A flow of two topics in a running Airflow; `orders` was copied before, by hand."""

    def __init__(self, api: AirflowApi, dag: str, orders: str, remote: str, alerts: Path, reports: Path, collector: Collector) -> None:
        self.api, self.dag, self.orders, self.remote = api, dag, orders, remote
        self.alerts, self.reports, self.collector = alerts, reports, collector

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.api._call(method, path, body)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.alerts.read_text().splitlines()] if self.alerts.exists() else []

    def wait(self, done: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + RUN_SECONDS
        while not done():
            assert time.monotonic() < deadline, what
            time.sleep(0.5)


@pytest.fixture
def stage(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    orders, other = lab.topic(lab.source, partitions=2), lab.topic(lab.source)
    alerts, reports = tmp_path / "alerts", tmp_path / "reports"
    (tmp_path / "paging.py").write_text(PAGING)
    arguments = json.dumps({"paging:page": {"path": str(alerts)}})
    limits = ("A->B.ferry.alert.lag.records = 5", "A->B.ferry.alert.deadline.seconds = 1")
    told = ("A->B.ferry.alert.callback = paging:hang, paging:page", f"A->B.ferry.alert.callback.args = {arguments}")
    config = lab.config(f"A->B.topics = {orders}, {other}", *limits, *told, *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{orders}"
    fill(lab.source, orders, "before", 40)
    lab.run(flow)
    fill(lab.source, orders, "after", 30)
    fill(lab.source, other, "x", 7)
    with collecting() as collector:
        for name, value in collector.settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT / 'include'}")
        monkeypatch.setenv("REFRESHED_ASSET", f"ferry://{flow.target.alias}/topics/{remote}")
        monkeypatch.setenv("REFRESHED_ALIAS", f"{dag_id(flow)}.topics")
        monkeypatch.setenv("REFRESHED_SERVERS", lab.target.bootstrap)
        monkeypatch.setenv("REFRESHED_OUTPUT", str(reports))
        airflow = WithExamples(tmp_path / "airflow", config)
        try:
            airflow.start()
            with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
                for dag in (dag_id(flow), "process_refreshed", "any_topic"):
                    api.wait_for_dag(dag)
                    api._call("PATCH", f"/dags/{dag}", {"is_paused": False})
                yield Stage(api, dag_id(flow), orders, remote, alerts, reports, collector)
        finally:
            airflow.stop()


def fill(cluster: SandboxCluster, topic: str, key: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce(topic, key=f"{key}-{number % 3}", value=str(number), partition=number % 2 if count > 10 else 0)
    assert producer.flush(30) == 0


@pytest.mark.long
def test_a_run_tells_downstream_dags_collectors_and_people(stage: Stage) -> None:
    asked = {"logical_date": None, "conf": {"topics": [stage.orders]}, "note": "Started from the Ferry page"}
    run = stage.call("POST", f"/dags/{stage.dag}/dagRuns", asked)["dag_run_id"]
    stage.wait(lambda: stage.api.run_state(stage.dag, run).finished, "the run never ended")
    tasks = stage.api.run_state(stage.dag, run).tasks
    assert {name: state for name, state in tasks.items() if state != "success"} == {
        "prepare_topics": "skipped",
        "check_limits": "failed",
    }, tasks
    note = stage.call("GET", f"/dags/{stage.dag}/dagRuns/{run}")["note"]
    named = ("(LimitsBroken)", "ferry.alert.lag.records", "next: ", "tasks/check_limits", "7 records behind")
    for fact in ("the copy is fine, but a limit is broken: topic", *named):
        assert fact in note, note
    assert note.endswith(asked["note"])

    stage.wait(lambda: stage.call("GET", "/dags/process_refreshed/dagRuns")["dag_runs"], "the event started no DAG")
    (started,) = stage.call("GET", "/dags/process_refreshed/dagRuns")["dag_runs"]
    stage.wait(lambda: stage.api.run_state("process_refreshed", started["dag_run_id"]).finished, "the example never ended")
    assert stage.api.run_state("process_refreshed", started["dag_run_id"]).state == "success"
    (counted,) = stage.reports.iterdir()
    assert json.loads(counted.read_text()) == {f"after-{number}": 10 for number in range(3)}

    stage.wait(lambda: stage.call("GET", "/dags/any_topic/dagRuns")["dag_runs"], "the alias started no DAG")

    (event,) = stage.call("GET", f"/assets/events?source_dag_id={stage.dag}&source_task_id=announce_topics")["asset_events"]
    facts = event["extra"]
    assert (facts["run_id"], facts["topic"], facts["remote_topic"], facts["records"]) == (run, stage.orders, stage.remote, 30)
    assert [entry[:3] for entry in facts["partitions"]] == [[0, 20, 35], [1, 20, 35]]

    stage.wait(lambda: {alert["kind"] for alert in stage.told()} >= {"limit", "deadline"}, f"alerts: {stage.told()}")
    (limit,) = [alert for alert in stage.told() if alert["kind"] == "limit"]
    assert (limit["what"], limit["value"], limit["limit"], limit["run_id"]) == ("ferry.alert.lag.records", 7, 5, run)
    assert limit["url"].endswith("tasks/check_limits?try_number=1")
    deadline = next(alert for alert in stage.told() if alert["kind"] == "deadline" and alert["run_id"] == run)
    assert f"run {run} has not ended 1 s after" in deadline["message"]

    wanted = {"lag-records", "lag-seconds", "record-count", "run-records", "run-exit-code", "limits-broken"}
    stage.wait(lambda: {f"airflow.ferry.{name}" for name in wanted} <= stage.collector.found().keys(), "metrics never came")
    found = {name.removeprefix("airflow.ferry."): points for name, points in stage.collector.found().items() if ".ferry." in name}
    tags_of = {metric.name: set(metric.tags) for metric in METRICS}
    assert found.keys() <= tags_of.keys()
    for name, points in found.items():
        assert all(set(tags) == tags_of[name] for tags, _ in points), name
    assert sum(value for _, value in found["record-count"]) == 30
    assert [value for tags, value in found["run-records"]] == [30]
    assert max(value for _, value in found["lag-records"]) == 7

    again = {"logical_date": None, "conf": {}}
    runs = []
    for _ in range(2):
        runs.append(stage.call("POST", f"/dags/{stage.dag}/dagRuns", again)["dag_run_id"])
        stage.wait(lambda: stage.api.run_state(stage.dag, runs[-1]).finished, "the run never ended")
    assert [stage.api.run_state(stage.dag, entry).state for entry in runs] == ["success", "success"]
    over = [alert for alert in stage.told() if alert["resolved"]]
    assert [(alert["key"], alert["run_id"]) for alert in over if alert["kind"] == "limit"] == [(limit["key"], runs[0])], "once"
    assert {alert["run_id"] for alert in over if alert["kind"] == "deadline"} == {run, *runs}
    assert not stage.call("GET", "/variables")["variables"]
