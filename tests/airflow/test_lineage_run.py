"""What Airflow's OpenLineage provider sends of real runs: START, then COMPLETE or FAIL with what the ledger proves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.airflow.collector import Collector, collecting
from tests.airflow.openlineage import validate
from tests.conftest import Lab
from tests.drills.faults.processes import jvms_of, send, tree_of
from tests.opened import flow_status
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.airflow_drill]

SECRET = "hunter2-not-in-events"
RECORDS = 300


class Stage:
    """A flow of one topic whose DAG runs as Airflow's CLI does it; its events of lineage go to `collector`."""

    def __init__(self, config: Path, topic: str, source: SandboxCluster, target: SandboxCluster, collector: Collector, log: Path) -> None:
        self.flow, self.topic = load_config(config).flows[0], topic
        self.inputs, self.outputs = f"kafka://{source.bootstrap}", f"kafka://{target.bootstrap}"
        self._config, self._collector, self._log = config, collector, log

    def begin(self, **params: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "airflow", "dags", "test", dag_id(self.flow), "--conf", json.dumps(params)]
        never = {
            "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": str(int(NEVER_SECONDS)),
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": str(NEVER_SECONDS),
        }
        environment = {**os.environ, **self._collector.lineage_settings, **never, "FERRY_CONFIG": str(self._config)}
        with self._log.open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def events(self, task: str = "copy_records") -> list[dict[str, Any]]:
        return [event for event in self._collector.lineage if event["job"]["name"] == f"{dag_id(self.flow)}.{task}"]

    def is_up_to_date(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether a run follows and has copied everything. AssertionError if the process has ended."""
        assert process.poll() is None, self.said()
        status = flow_status(self.flow)
        return status.following is not None and not status.lag.records

    def kinds(self) -> list[str]:
        return [event["eventType"] for event in self.events()]

    def said(self) -> str:
        return self._log.read_text()[-4000:]

    def counted(self, event: dict[str, Any]) -> tuple[Any, ...]:
        """Names, records and ranges of an event of one topic, which is as the schemas say."""
        assert validate(event) >= {"inputStatistics", "outputStatistics", "subset"}
        (source,), (target,) = event["inputs"], event["outputs"]
        assert (source["namespace"], target["namespace"]) == (self.inputs, self.outputs)
        assert target["outputFacets"]["outputStatistics"]["size"] > 0
        ranges = source["inputFacets"]["subset"]["inputCondition"]["partitions"]
        return (
            source["name"],
            target["name"],
            source["inputFacets"]["inputStatistics"]["rowCount"],
            target["outputFacets"]["outputStatistics"]["rowCount"],
            [(part["dimensions"]["partition"], part["dimensions"]["endOffset"]) for part in ranges],
        )


@pytest.fixture
def stage(airflow_database: None, lab: Lab, tmp_path: Path) -> Iterator[Stage]:
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(number % 2, None, b"x") for number in range(RECORDS)])
    config = lab.config(f"A->B.topics = {topic}", f"B.ssl.key.password = {SECRET}", *lab.copy_only)
    with collecting() as collector:
        yield Stage(config, topic, lab.source, lab.target, collector, tmp_path / "log")
        assert SECRET not in json.dumps(collector.lineage)


def test_a_copy_that_is_killed_fails_with_what_it_had_copied(stage: Stage) -> None:
    process = stage.begin(follow_seconds=3600)
    try:
        # The run follows, so it does not end by itself, and everything is on the target when it is killed.
        until(lambda: stage.is_up_to_date(process), stage.said)
        send(jvms_of(tree_of(process.pid)), signal.SIGKILL)
        until(lambda: "FAIL" in stage.kinds(), stage.said)
    finally:
        send(tree_of(process.pid), signal.SIGKILL)
        process.wait(NEVER_SECONDS)
    begun, failed = stage.events()
    remote = f"{stage.flow.source.alias}.{stage.topic}"
    assert (begun["eventType"], [dataset["name"] for dataset in begun["outputs"]]) == ("START", [remote])
    assert begun["run"]["runId"] == failed["run"]["runId"]
    assert "errorMessage" in validate(failed)
    assert stage.counted(failed) == (stage.topic, remote, RECORDS, RECORDS, [(0, RECORDS // 2), (1, RECORDS // 2)])


def test_a_copy_completes_with_counts_and_one_without_records_sends_no_event(stage: Stage) -> None:
    assert stage.begin().wait(NEVER_SECONDS) == 0, stage.said()
    begun, completed = stage.events()
    remote = f"{stage.flow.source.alias}.{stage.topic}"
    validate(begun)
    assert stage.kinds() == ["START", "COMPLETE"]
    assert stage.counted(completed) == (stage.topic, remote, RECORDS, RECORDS, [(0, RECORDS // 2), (1, RECORDS // 2)])

    before = len(stage.events())
    assert stage.begin().wait(NEVER_SECONDS) == 0, stage.said()
    assert stage.events()[before:] == [], "no process started"
