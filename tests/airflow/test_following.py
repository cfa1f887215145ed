"""Runs that follow take over from each other in a real Airflow, under load: nothing is lost or doubled, and every run is green."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from tests.conftest import Lab
from tests.opened import flow_status
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.airflow_drill]

# More in an acceptance: FERRY_HANDOVERS=10.
HANDOVERS = int(os.environ.get("FERRY_HANDOVERS", "2"))
# For how long the scheduler stands still; in an acceptance FERRY_STOPPED_SECONDS=300.
STOPPED_SECONDS = int(os.environ.get("FERRY_STOPPED_SECONDS", "10"))
PARTITIONS = 4
RECORDS_A_SECOND = 100


class Load:
    """Writes to the source, and reads what arrives on the target with a client of its own. `gaps`: seconds without a new record there."""

    def __init__(self, source: SandboxCluster, target: SandboxCluster, topic: str, remote: str) -> None:
        self._source, self._target, self._topic, self._remote = source, target, topic, remote
        self.written, self.read = 0, Counter[int]()
        self.gaps: list[float] = []
        self._writing, self._reading = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._read)]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Write no more, read what is on its way, and stop."""
        self._writing.set()
        self._threads[0].join()
        until(lambda: len(self.read) == self.written, lambda: f"{len(self.read)} of {self.written} records arrived")
        self._reading.set()
        self._threads[1].join()

    def _write(self) -> None:
        producer = Producer({**self._source.client_settings(), "acks": "all", "linger.ms": 0})
        while not self._writing.wait(1 / RECORDS_A_SECOND):
            producer.produce(self._topic, str(self.written), partition=self.written % PARTITIONS)
            producer.poll(0)
            self.written += 1
        assert producer.flush(60) == 0

    def _read(self) -> None:
        consumer = Consumer({**self._target.client_settings(), "group.id": "reads", "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(self._remote, number, 0) for number in range(PARTITIONS)])
        last = None
        while not self._reading.is_set():
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                now = time.monotonic()
                self.gaps += [now - last] if last is not None else []
                last = now
                self.read[int(record.value() or b"-1")] += 1
        consumer.close()


@pytest.fixture
def flow_file(lab: Lab) -> Path:
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    return lab.config(f"A->B.topics = {topic}", "A->B.ferry.follow.seconds = 3600", *lab.copy_only)


@pytest.fixture
def api(flow_file: Path, tmp_path: Path) -> Iterator[AirflowApi]:
    airflow = DemoAirflow(tmp_path / "airflow", flow_file)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            yield api
    finally:
        airflow.stop()


@pytest.fixture
def load(flow_file: Path, lab: Lab) -> Load:
    flow = load_config(flow_file).flows[0]
    return Load(lab.source, lab.target, flow.topics[0], f"{flow.source.alias}.{flow.topics[0]}")


@pytest.fixture
def dag(api: AirflowApi, flow_file: Path) -> str:
    """The flow's DAG, which Airflow has read."""
    name = dag_id(load_config(flow_file).flows[0])
    api.wait_for_dag(name)
    return name


def test_runs_take_over_from_each_other(api: AirflowApi, dag: str, load: Load, flow_file: Path) -> None:
    flow = load_config(flow_file).flows[0]

    def follows() -> str:
        run = flow_status(flow).following
        return "" if run is None else str(run["run_id"])

    runs = [api.trigger(dag)]
    until(lambda: follows() == runs[-1])
    load.begin()
    until(lambda: load.read)
    load.gaps.clear()
    # One that fails before it takes over changes nothing.
    broken = api._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"topics": ["no-such-topic"]}})["dag_run_id"]
    until(lambda: api.run_state(dag, broken).finished)
    assert (api.run_state(dag, broken).state, follows()) == ("failed", runs[-1])
    for _ in range(HANDOVERS):
        runs.append(api.trigger(dag))
        until(lambda: api.run_state(dag, runs[-2]).finished)
        ended = api.run_state(dag, runs[-2])
        assert (ended.state, ended.tasks["check_limits"]) == ("success", "success"), ended.tasks
        until(lambda: follows() == runs[-1])
    sys.stderr.write(f"longest times without a new record: {[round(gap, 2) for gap in sorted(load.gaps)[-2 * HANDOVERS :]]} s\n")
    load.end()
    last = api._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"follow_seconds": 1}})["dag_run_id"]
    until(lambda: all(api.run_state(dag, run).finished for run in (*runs, last)))
    assert {run: api.run_state(dag, run).state for run in (*runs, last)} == dict.fromkeys((*runs, last), "success")
    assert load.read == Counter(range(load.written))


def test_a_run_goes_on_without_the_scheduler_and_the_next_one_may_be_late(api: AirflowApi, dag: str, load: Load) -> None:
    runs = [api.trigger(dag)]
    load.begin()
    until(lambda: load.read)
    scheduler = next(child.pid for child in psutil.Process().children() if "scheduler" in child.cmdline())
    os.kill(scheduler, signal.SIGSTOP)
    try:
        load.gaps.clear()
        runs.append(api.trigger(dag))  # queued, until the scheduler goes on
        ends = time.monotonic() + STOPPED_SECONDS
        while time.monotonic() < ends:
            before = len(load.read)
            until(lambda before=before: len(load.read) > before)
            time.sleep(0.5)
        assert not api.run_state(dag, runs[0]).finished
        sys.stderr.write(
            f"longest times without a new record, without a scheduler: {[round(gap, 2) for gap in sorted(load.gaps)[-3:]]} s\n"
        )
    finally:
        os.kill(scheduler, signal.SIGCONT)
    until(lambda: api.run_state(dag, runs[0]).finished)
    # This run's time is over before the next one begins.
    runs.append(api._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"follow_seconds": 1}})["dag_run_id"])
    until(lambda: all(api.run_state(dag, run).finished for run in runs))
    copied, written = len(load.read), load.written
    until(lambda: load.written > written + 5 * RECORDS_A_SECOND)
    assert len(load.read) <= written, "nobody copies"
    runs.append(api._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"follow_seconds": 60}})["dag_run_id"])
    until(lambda: len(load.read) > copied + 5 * RECORDS_A_SECOND)
    load.end()
    until(lambda: api.run_state(dag, runs[-1]).finished)
    assert {run: api.run_state(dag, run).state for run in runs} == dict.fromkeys(runs, "success")
    assert load.read == Counter(range(load.written))
