"""Airflow's own backfill, with its scheduler and API: history that a flow left is copied once, beside the flow's other runs."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from tests.conftest import Lab
from tools.kafka import SandboxCluster, read_all

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS, RECORDS_A_DAY = 3, 200
# How long nothing changes before a test gives up: on a busy machine a run takes minutes.
STILL_SECONDS = 1_500


@contextmanager
def only_the_api_server_writes(database: Path) -> Iterator[None]:
    """Suspend this test's scheduler and DAG processor.

    When another process writes into SQLite while Airflow (3.3.2) makes a backfill, Airflow deletes the runs that it has put into the
    backfill so far, and the scheduler ends because a run that it looks at is gone. Airflow itself asks for PostgreSQL there.
    """
    services = [child.pid for child in psutil.Process().children() if {"scheduler", "dag-processor"} & set(child.cmdline())]
    assert len(services) == 2, services
    with ExitStack() as resumed:
        for service in services:
            resumed.callback(os.killpg, service, signal.SIGCONT)
        while True:
            for service in services:
                os.killpg(service, signal.SIGSTOP)
            try:
                with closing(sqlite3.connect(database, timeout=0)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError:  # one of them is writing
                for service in services:
                    os.killpg(service, signal.SIGCONT)
                time.sleep(0.05)
        yield


class Scheduled:
    """A flow with a daily schedule in a running Airflow."""

    def __init__(self, api: AirflowApi, database: Path, dag: str, topic: str, source: SandboxCluster, target: SandboxCluster) -> None:
        self.api, self.dag = api, dag
        self._database = database
        self._topic, self._source, self._target = topic, source, target
        self._remote = ""

    def of_alias(self, alias: str) -> Scheduled:
        self._remote = f"{alias}.{self._topic}"
        return self

    def produce(self, day: int, mark: str = "") -> None:
        producer = Producer({"bootstrap.servers": self._source.bootstrap})
        start = int((BEGIN + timedelta(days=day)).timestamp() * 1000)
        for number in range(RECORDS_A_DAY):
            producer.produce(self._topic, value=f"{mark}{day}-{number}".encode(), partition=number % 2, timestamp=start + number)
        assert producer.flush(30) == 0

    def copied(self) -> Counter[str]:
        """How often each day's records stand in the remote topic, by day."""
        values = [(record.value or b"").decode() for partition in read_all(self._target.bootstrap, self._remote) for record in partition]
        assert len(values) == len(set(values)), "a record was copied twice"
        return Counter(value.split("-")[0] for value in values)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.api._call(method, path, body)

    def backfill(self, first_day: int, last_day: int) -> None:
        body = {
            "dag_id": self.dag,
            "from_date": (BEGIN + timedelta(days=first_day)).isoformat(),
            "to_date": (BEGIN + timedelta(days=last_day)).isoformat(),
            "max_active_runs": 2,
            "reprocess_behavior": "completed",
        }
        # Airflow runs one backfill of a DAG at a time, and notices some seconds later that it is done.
        self.wait(lambda: not self.unfinished_backfills())
        with only_the_api_server_writes(self._database):
            self.call("POST", "/backfills", body)

    def wait(self, done: Callable[[], bool]) -> None:
        seen, since = self.states(), time.monotonic()
        while not done():
            states = self.states()
            if states != seen:
                seen, since = states, time.monotonic()
            assert time.monotonic() < since + STILL_SECONDS, states
            time.sleep(1)

    def states(self) -> dict[str, str]:
        return {run["dag_run_id"]: run["state"] for run in self.call("GET", f"/dags/{self.dag}/dagRuns")["dag_runs"]}

    def settled(self, at_least: int) -> bool:
        states = self.states()
        return len(states) >= at_least and set(states.values()) <= {"success", "failed"}

    def unfinished_backfills(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/backfills?dag_id={self.dag}")["backfills"]
        return [backfill for backfill in found if not backfill["completed_at"]]

    def attempts(self) -> Counter[str]:
        """How often each run of a backfill was planned."""
        runs = [run for run in self.states() if run.startswith("backfill")]
        # A run that Airflow clears has no such task for a moment.
        tasks = [task for run in runs for task in self.call("GET", f"/dags/{self.dag}/dagRuns/{run}/taskInstances")["task_instances"]]
        return Counter({task["dag_run_id"]: task["try_number"] for task in tasks if task["task_id"] == "plan_run"})

    def planned_again(self, before: Counter[str]) -> bool:
        now = self.attempts()
        return all(now[run] > times for run, times in before.items())

    def reports(self) -> dict[str, int]:
        """Records by run."""
        found = {run: self.api.report(self.dag, run) for run in self.states()}
        return {run: report["totals"]["records"] for run, report in found.items() if report}


@pytest.fixture
def scheduled(lab: Lab, tmp_path: Path) -> Iterator[Scheduled]:
    topic = lab.topic(lab.source, partitions=2)
    config = lab.config(f"A->B.topics = {topic}", "A->B.ferry.start = latest", "A->B.ferry.schedule = 0 0 * * *", *lab.copy_only)
    flow = load_config(config).flows[0]
    airflow = DemoAirflow(tmp_path / "airflow", config)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            api.wait_for_dag(dag_id(flow))
            database = tmp_path / "airflow" / "airflow.db"
            yield Scheduled(api, database, dag_id(flow), topic, lab.source, lab.target).of_alias(flow.source.alias)
    finally:
        airflow.stop()


@pytest.mark.long
def test_a_backfill_copies_the_history_once_beside_other_runs(scheduled: Scheduled) -> None:
    for day in range(DAYS):
        scheduled.produce(day)
    # Unpausing starts the run of the latest interval; with it the flow begins, at the end of what is there.
    scheduled.call("PATCH", f"/dags/{scheduled.dag}", {"is_paused": False})
    scheduled.wait(lambda: scheduled.settled(1))
    scheduled.produce(DAYS, mark="new")
    scheduled.backfill(0, DAYS - 1)
    beside = scheduled.api.trigger(scheduled.dag)
    scheduled.wait(lambda: scheduled.settled(1 + DAYS + 1))

    assert set(scheduled.states().values()) == {"success"}, scheduled.states()
    assert scheduled.copied() == {**{str(day): RECORDS_A_DAY for day in range(DAYS)}, f"new{DAYS}": RECORDS_A_DAY}
    reports = scheduled.reports()
    assert reports[beside] == RECORDS_A_DAY
    backfilled = {run: records for run, records in reports.items() if run.startswith("backfill")}
    assert len(backfilled) == DAYS
    assert set(backfilled.values()) == {RECORDS_A_DAY}, backfilled

    before = scheduled.attempts()
    scheduled.backfill(0, DAYS - 1)
    # Airflow may call a backfill completed before it has cleared the runs of an earlier one that it runs again.
    scheduled.wait(lambda: scheduled.planned_again(before))
    scheduled.wait(lambda: scheduled.settled(1 + DAYS + 1))
    assert set(scheduled.states().values()) == {"success"}
    # They copied nothing again; the report of each is still of all its tries.
    assert {run: records for run, records in scheduled.reports().items() if run.startswith("backfill")} == backfilled
    assert sum(scheduled.copied().values()) == (DAYS + 1) * RECORDS_A_DAY
