"""Records start a run of a flow without a schedule, in a real Airflow with a triggerer; nothing else does."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from demo.airflow_api import AirflowApi
from demo.airflow_services import SERVICES, DemoAirflow
from tests.conftest import Lab
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.airflow_drill]


class WithTriggerer(DemoAirflow):
    services = {**SERVICES, "triggerer": ["triggerer", "--skip-serve-logs"]}  # noqa: RUF012 - as the class above


class Stage:
    def __init__(self, api: AirflowApi, dag: str, topic: str, remote: str, target: SandboxCluster) -> None:
        self.api, self.dag, self.topic, self.remote, self._target = api, dag, topic, remote, target

    def runs(self) -> dict[str, str]:
        """State of each run, the oldest first."""
        found = self.api._call("GET", f"/dags/{self.dag}/dagRuns?order_by=run_after")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in found}

    def settled(self, count: int) -> bool:
        states = list(self.runs().values())
        return len(states) == count and set(states) <= {"success", "failed"}

    def arrived(self, count: int) -> None:
        """Until so many records of the remote topic can be read."""
        consumer = Consumer({**self._target.client_settings(), "group.id": "reads", "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(self.remote, 0, 0)])
        records = []

        def read() -> bool:
            record = consumer.poll(0.05)
            if record is not None and record.error() is None:
                records.append(record.value())
            return len(records) == count

        until(read, lambda: f"{len(records)} of {count} records; runs: {self.runs()}")
        consumer.close()


@pytest.fixture
def stage(lab: Lab, tmp_path: Path) -> Iterator[Stage]:
    topic = lab.topic(lab.source)
    # Heartbeats are on, both ways: they must start no run.
    beats = ("emit.heartbeats.enabled = true", "B->A.emit.heartbeats.enabled = true", "heartbeats.replication.enabled = true")
    config = lab.config(
        f"A->B.topics = {topic}", "A->B.ferry.watch.seconds = 2", *(line for line in lab.copy_only if "heartbeats" not in line), *beats
    )
    flow = load_config(config).flows[0]
    airflow = WithTriggerer(tmp_path / "airflow", config)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            api.wait_for_dag(dag_id(flow))
            api._call("PATCH", f"/dags/{dag_id(flow)}", {"is_paused": False})
            yield Stage(api, dag_id(flow), topic, f"{flow.source.alias}.{topic}", lab.target)
    finally:
        airflow.stop()


def test_records_start_a_run_and_quiet_starts_none(stage: Stage, lab: Lab) -> None:
    # The first run makes the remote topic of the empty topic.
    until(lambda: stage.settled(1), stage.runs)
    for count in (1, 2):
        lab.produce(lab.source, stage.topic, [(0, None, b"x")])
        begun = time.monotonic()
        stage.arrived(count)
        sys.stderr.write(f"record {count} was on the target {time.monotonic() - begun:.1f} s after it was produced\n")
        until(lambda: stage.settled(1 + count), stage.runs)  # noqa: B023 - called at once
    assert set(stage.runs().values()) == {"success"}
    notes = [run["note"] for run in stage.api._call("GET", f"/dags/{stage.dag}/dagRuns")["dag_runs"]]
    assert all(": nothing is left to copy" in note for note in notes), notes

    # A quiet flow: a run by hand writes a heartbeat, and looks go on meanwhile.
    stage.api.trigger(stage.dag)
    until(lambda: stage.settled(4), stage.runs)
    lab.produce(lab.source, stage.topic, [(0, None, b"x")])
    stage.arrived(3)
    until(lambda: stage.settled(5), stage.runs)
    kinds = [run.partition("__")[0] for run in stage.runs()]
    assert kinds == ["asset_triggered", "asset_triggered", "asset_triggered", "manual", "asset_triggered"]
