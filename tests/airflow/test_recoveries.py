"""Failover, failback and cut-over as DAGs, in a running Airflow: a person answers through the REST API, as the page does."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from tests.airflow.operating import Operator, at, produce
from tests.conftest import Lab
from tools.kafka import read_all
from tools.kafka.groups import commit_offsets

from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.drill]


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=2)


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


def test_a_person_confirms(operator: Operator, topic: str, lab: Lab) -> None:
    group = f"{topic}-{secrets.token_hex(4)}"
    produce(lab.source, topic, 0, 40)
    lab.run(operator.flow)
    produce(lab.source, topic, 40, 10)
    commit_offsets(lab.source.client_settings(), group, {(topic, 0): 3, (topic, 1): 23})

    run = operator.trigger("failover", dry_run=True)
    state, tasks = operator.ended(run)
    assert (state, *(tasks[name] for name in ("plan_groups", "confirm", "write_groups"))) == ("success", "skipped", "skipped", "skipped")
    shown = operator.call("GET", f"/dags/{run[0]}/dagRuns/{run[1]}/taskInstances/plan_groups/xcomEntries/return_value")["value"]
    document = (json.loads(shown) if isinstance(shown, str) else shown)["document"]
    assert (document["counts"]["groups"], [row[0] for row in document["tables"]["groups"]["rows"]]) == (1, [group] * 2), "the page shows it"

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
    assert state == "success", f"{tasks}"
    report = operator.api.report(*run)
    assert report is not None
    assert (report["stage"], report["undone"], report["confirmed_by"]) == ("failed-over", [], "admin, in Airflow")
    assert at(lab.target, group, topic) == {0: 6, 1: 47}

    produce(lab.target, topic, 50, 20)
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
    assert state == "success", f"{tasks}"
    report = operator.api.report(*run)
    assert report is not None
    assert (report["stage"], report["undone"]) == ("replicating", [])
    assert "equal on both sides" in report["verified"]
    assert at(lab.source, group, topic) == {0: 6, 1: 47}
    assert [[int(record.value or b"") for record in found] for found in read_all(lab.source.bootstrap, topic)] == [
        list(range(number, 70, 2)) for number in range(2)
    ]

    run = operator.trigger("failback", quiet_seconds=1)
    state, tasks = operator.ended(run)
    assert (state, tasks.pop("check_clusters"), set(tasks.values())) == ("success", "success", {"skipped"}), "it is done already"
