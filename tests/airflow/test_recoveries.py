"""Failover, failback and cut-over as DAGs, in a running Airflow: a person answers through the REST API, as the page does."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from demo.airflow_api import AirflowApi, ApiFailed
from demo.airflow_services import DemoAirflow
from tools.kafka import SandboxCluster, read_all
from tools.kafka.groups import commit_offsets

from ferry.airflow.flows import dag_id
from ferry.config import Flow, load_config
from ferry.ledger.run_report import RunReport

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.drill]

RUN_SECONDS = 1_500
FINAL = {"success", "failed", "skipped", "upstream_failed"}


class Operator:
    """Somebody in front of Airflow."""

    def __init__(self, api: AirflowApi, flow: Flow) -> None:
        self.api, self.flow = api, flow
        self.given: dict[tuple[str, str], str] = {}

    def trigger(self, command: str, **conf: object) -> tuple[str, str]:
        dag = f"{dag_id(self.flow)}.{command}"
        self.api.wait_for_dag(dag)
        self.call("PATCH", f"/dags/{dag}", {"is_paused": False})
        return dag, str(self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"])

    def question(self, run: tuple[str, str], task: str) -> dict[str, Any]:
        """The question that a task asks, once it waits."""
        path = f"/dags/{run[0]}/dagRuns/{run[1]}/taskInstances/{task}/-1"
        self.wait(run, lambda states: states.get(task) == "awaiting_input" or set(states.values()) <= FINAL)
        return dict(self.call("GET", f"{path}/hitlDetails"))

    def answer(self, run: tuple[str, str], task: str, option: str) -> None:
        self.given[run[1], task] = option
        path = f"/dags/{run[0]}/dagRuns/{run[1]}/taskInstances/{task}/-1/hitlDetails"
        self.call("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def ended(self, run: tuple[str, str]) -> tuple[str, dict[str, str]]:
        self.wait(run, lambda _: self.api.run_state(*run).finished)
        found = self.api.run_state(*run)
        return found.state, found.tasks

    def wait(self, run: tuple[str, str], done: Callable[[dict[str, str]], bool]) -> None:
        """A scheduler that was held up takes a task for orphaned, and asks its question again: it gets the same answer."""
        deadline = time.monotonic() + RUN_SECONDS
        while not done(states := self.api.run_state(*run).tasks):
            assert time.monotonic() < deadline, states
            for task in [name for name, state in states.items() if state == "awaiting_input" and (run[1], name) in self.given]:
                with contextlib.suppress(ApiFailed):  # answered, and not gone on yet
                    self.answer(run, task, self.given[run[1], task])
            time.sleep(1)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.api._call(method, path, body)


@pytest.fixture
def topic(source_cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source_cluster, partitions=2)


@pytest.fixture
def flow_file(config_file: Callable[..., Path], topic: str) -> Path:
    identity = "replication.policy.class = IdentityReplicationPolicy"
    return config_file(identity, "B->A.enabled = true", f"topics = {topic}", f"groups = {topic}-.*", "ferry.lanes = 2")


@pytest.fixture
def operator(flow_file: Path, tmp_path: Path) -> Iterator[Operator]:
    airflow = DemoAirflow(tmp_path / "airflow", flow_file)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            yield Operator(api, load_config(flow_file).flows[0])
    finally:
        airflow.stop()


def produce(cluster: SandboxCluster, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, value=b"%d" % number, partition=number % 2)
    assert producer.flush(30) == 0


def at(cluster: SandboxCluster, group: str, topic: str) -> dict[int, int]:
    """Where a group goes on: the next record's number, by partition."""
    consumer = Consumer({**cluster.client_settings(), "group.id": group, "enable.auto.commit": False})
    places = consumer.committed([TopicPartition(topic, number) for number in range(2)], timeout=10)
    consumer.close()
    records = read_all(cluster.bootstrap, topic)
    return {
        place.partition: next(int(record.value or b"") for record in records[place.partition] if record.offset >= place.offset)
        for place in places
    }


def test_a_person_confirms(
    operator: Operator, topic: str, run_flow: Callable[..., RunReport], source_cluster: SandboxCluster, target_cluster: SandboxCluster
) -> None:
    group = f"{topic}-{secrets.token_hex(4)}"
    produce(source_cluster, topic, 0, 40)
    run_flow(operator.flow)
    produce(source_cluster, topic, 40, 10)
    commit_offsets(source_cluster.client_settings(), group, {(topic, 0): 3, (topic, 1): 23})

    run = operator.trigger("failover")
    asked = operator.question(run, "confirm")
    body = asked["body"].replace("\\", "")
    assert group in body
    assert "exact" in body
    assert "last copy: 10 records" in body
    operator.answer(run, "confirm", "Reject")
    state, tasks = operator.ended(run)
    assert (state, tasks["write_groups"]) == ("success", "skipped")

    run = operator.trigger("failover", last_copy=False)
    operator.question(run, "confirm")
    operator.answer(run, "confirm", "Approve")
    state, tasks = operator.ended(run)
    assert state == "success", tasks
    report = operator.api.report(*run)
    assert report is not None
    assert (report["stage"], report["undone"], report["confirmed_by"]) == ("failed-over", [], "admin, in Airflow")
    assert at(target_cluster, group, topic) == {0: 6, 1: 47}

    produce(target_cluster, topic, 50, 20)
    run = operator.trigger("failback", quiet_seconds=1)
    operator.question(run, "confirm_stopped")
    operator.answer(run, "confirm_stopped", "Reject")
    state, tasks = operator.ended(run)
    assert (state, tasks["plan_groups"], tasks["confirm"], tasks["write_groups"]) == ("success", "skipped", "skipped", "skipped")

    run = operator.trigger("failback", quiet_seconds=1)
    operator.question(run, "confirm_stopped")
    operator.answer(run, "confirm_stopped", "Approve")
    assert group in operator.question(run, "confirm")["body"].replace("\\", "")
    operator.answer(run, "confirm", "Approve")
    state, tasks = operator.ended(run)
    assert state == "success", tasks
    report = operator.api.report(*run)
    assert report is not None
    assert (report["stage"], report["undone"]) == ("replicating", [])
    assert "equal on both sides" in report["verified"]
    assert at(source_cluster, group, topic) == {0: 6, 1: 47}
    assert [[int(record.value or b"") for record in found] for found in read_all(source_cluster.bootstrap, topic)] == [
        list(range(number, 70, 2)) for number in range(2)
    ]
