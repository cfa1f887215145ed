"""Somebody who moves applications to the other cluster with Ferry's DAGs, and where the groups of those applications go on."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from demo.airflow_api import AirflowApi, ApiFailed
from tools.kafka import SandboxCluster, read_all

from ferry.config import Flow

RUN_SECONDS = 1_500
FINAL = {"success", "failed", "skipped", "upstream_failed"}


class Operator:
    """Somebody in front of Airflow."""

    def __init__(self, api: AirflowApi, flow: Flow) -> None:
        self.api, self.flow = api, flow
        self.given: dict[tuple[str, str], str] = {}

    def trigger(self, command: str, **conf: object) -> tuple[str, str]:
        dag = f"ferry.{self.flow.source.alias}.{self.flow.target.alias}.{command}"
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
        """State and tasks of a run, once it is over. The logs of tasks that failed are printed, as they are gone with the test."""
        self.wait(run, lambda _: self.api.run_state(*run).finished)
        found = self.api.run_state(*run)
        for task in [name for name, state in found.tasks.items() if state == "failed"]:
            path = f"/dags/{run[0]}/dagRuns/{run[1]}/taskInstances/{task}"
            log = self.call("GET", f"{path}/logs/{self.call('GET', path)['try_number']}?full_content=true")
            sys.stderr.writelines(f"{task}: {line}\n" for line in log["content"])
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
