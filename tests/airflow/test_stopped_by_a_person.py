"""A run that a person stops, and starts again, by the calls that the page's buttons make: Airflow ends its Spark job, no record is lost or
doubled, and the same run ends well.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from tests.airflow.test_following import PARTITIONS, RECORDS_A_SECOND, Load
from tests.conftest import Lab
from tests.waiting import until

from ferry.airflow.flows import dag_id
from ferry.config import load_config
from ferry.monitoring.runs_reading import read_runs

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.airflow_drill]


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


def jobs() -> list[psutil.Process]:
    """The Spark jobs of this test's Airflow."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "org.apache.spark.deploy.SparkSubmit" in process.cmdline():
                found.append(process)
        except psutil.Error:  # it has just ended
            continue
    return found


def test_a_run_is_stopped_and_started_again(api: AirflowApi, flow_file: Path, lab: Lab) -> None:
    flow = load_config(flow_file).flows[0]
    dag, topic = dag_id(flow), flow.topics[0]
    load = Load(lab.source, lab.target, topic, f"{flow.source.alias}.{topic}")
    api.wait_for_dag(dag)
    run = api.trigger(dag)
    load.begin()
    until(lambda: len(load.read) > RECORDS_A_SECOND)
    assert jobs()

    stopped = time.monotonic()
    api._call("PATCH", f"/dags/{dag}/dagRuns/{run}", {"state": "failed", "note": "Stopped on the Ferry page"})
    until(lambda: not jobs(), jobs)
    sys.stderr.write(f"the Spark job ended {time.monotonic() - stopped:.1f} s after the call\n")
    state = api.run_state(dag, run)
    sys.stderr.write(f"tasks: {state.tasks}\n")
    assert (state.state, state.tasks["copy_records"], state.tasks["report_outcome"]) == ("failed", "failed", "skipped")
    assert [one["state"] for one in read_runs(flow)["runs"]] == ["failed"], "it left no result, and proves no more that it follows"

    copied = len(load.read)
    api._call("POST", f"/dags/{dag}/dagRuns/{run}/clear", {"dry_run": False, "only_failed": False})
    until(lambda: len(load.read) > copied + 5 * RECORDS_A_SECOND)
    load.end()
    last = api._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": {"follow_seconds": 1}})["dag_run_id"]
    until(lambda: all(api.run_state(dag, one).finished for one in (run, last)))
    assert {one: api.run_state(dag, one).state for one in (run, last)} == dict.fromkeys((run, last), "success")
    assert load.read == Counter(range(load.written))
