"""Runs that a schedule, a person, a backfill or a failover starts, under the executors of a production Airflow."""

from __future__ import annotations

import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from confluent_kafka import Producer
from tests.airflow.operating import Operator, at, produce
from tests.conftest import Lab
from tests.drills.production.conftest import Replicate
from tests.drills.production.production_airflow import ProductionAirflow
from tests.waiting import until
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.groups import commit_offsets

pytestmark = [pytest.mark.production, pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

RECORDS = 600
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS, RECORDS_A_DAY = 3, 200


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=2)


def test_a_scheduled_run_copies(airflow: ProductionAirflow, replicate: Replicate, topic: str, source_cluster: SandboxCluster) -> None:
    produce(source_cluster, topic, 0, RECORDS)
    replication = replicate(topic, "A->B.ferry.schedule = 0 0 * * *", "sync.group.offsets.enabled = true")
    # Airflow then starts the run of the latest interval.
    replication.pause(False)
    ((run, state),) = replication.settled(1).items()
    assert (run.partition("__")[0], state) == ("scheduled", "success")
    assert replication.copied_records(run) == RECORDS
    found = replication.compared()
    assert (found.equal, found.records) == (True, RECORDS)
    # The syncs of a run start together, and are more than one worker takes.
    assert [worker for worker in airflow.workers if not airflow.ran(worker)] == []


def test_a_person_starts_a_run(replicate: Replicate, topic: str, source_cluster: SandboxCluster) -> None:
    replication = replicate(topic)
    for part in range(2):
        produce(source_cluster, topic, part * RECORDS, RECORDS)
        run = replication.api.trigger(replication.dag)
        assert replication.ended(run).state == "success"
        assert replication.copied_records(run) == RECORDS
    found = replication.compared()
    assert (found.equal, found.records) == (True, 2 * RECORDS)


def test_a_backfill_copies_three_intervals_beside_another_run(replicate: Replicate, topic: str, lab: Lab) -> None:
    for day in range(DAYS):
        produce_day(lab.source, topic, day)
    replication = replicate(topic, "A->B.ferry.start = latest", "A->B.ferry.schedule = 0 0 * * *", *lab.copy_only)
    # With the run of the latest interval the flow begins, at the end of what is there.
    replication.pause(False)
    replication.settled(1)
    produce_day(lab.source, topic, DAYS)
    interval = {"from_date": BEGIN.isoformat(), "to_date": (BEGIN + timedelta(days=DAYS - 1)).isoformat()}
    replication.call("POST", "/backfills", {"dag_id": replication.dag, **interval, "max_active_runs": 1})
    beside = replication.api.trigger(replication.dag)

    states = replication.settled(1 + DAYS + 1)
    assert set(states.values()) == {"success"}, states
    backfilled = {run: replication.copied_records(run) for run in states if run.startswith("backfill")}
    assert list(backfilled.values()) == [RECORDS_A_DAY] * DAYS, backfilled
    assert replication.copied_records(beside) == RECORDS_A_DAY
    assert values(replication.target, replication.remote) == values(lab.source, topic)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "while the scheduler stands still"])
def test_a_person_confirms_a_failover(airflow: ProductionAirflow, replicate: Replicate, topic: str, lab: Lab, late: bool) -> None:
    group = f"{topic}-{secrets.token_hex(4)}"
    identity = "replication.policy.class = IdentityReplicationPolicy"
    replication = replicate(topic, identity, "B->A.enabled = true", f"B->A.topics = {topic}", f"groups = {topic}-.*", "ferry.lanes = 2")
    produce(lab.source, topic, 0, 40)
    lab.run(replication.flow)
    produce(lab.source, topic, 40, 10)
    commit_offsets(lab.source.client_settings(), group, {(topic, 0): 3, (topic, 1): 23})

    operator = Operator(replication.api, replication.flow)
    run = operator.trigger("failover")
    if late:
        answer_while_the_scheduler_stands_still(airflow.service("scheduler"), operator, run)
    assert "last copy: 10 records" in operator.question(run, "confirm")["body"]
    operator.given[run[1], "confirm"] = "Approve"
    state, tasks = operator.ended(run)
    assert state == "success", f"{tasks}"
    report = operator.api.report(*run)
    assert report is not None
    assert (report["stage"], report["undone"], report["confirmed_by"]) == ("failed-over", [], "admin, in Airflow")
    assert at(lab.target, group, topic) == {0: 6, 1: 47}
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: topic})
    assert (found.equal, found.records) == (True, 50)


def answer_while_the_scheduler_stands_still(scheduler: psutil.Process, operator: Operator, run: tuple[str, str]) -> None:
    """Airflow then takes the end of the process that asked for the end of the task, and asks again, if its scheduler has not seen that end
    before it was stopped."""

    def state() -> str:
        return operator.api.run_state(*run).tasks.get("confirm", "")

    until(lambda: state() == "awaiting_input", state)
    scheduler.suspend()
    try:
        operator.answer(run, "confirm", "Approve")
        until(lambda: state() == "scheduled", state)
    finally:
        scheduler.resume()
    operator.given.clear()


def produce_day(cluster: SandboxCluster, topic: str, day: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    start = int((BEGIN + timedelta(days=day)).timestamp() * 1000)
    for number in range(RECORDS_A_DAY):
        producer.produce(topic, value=f"{day}-{number}".encode(), partition=number % 2, timestamp=start + number)
    assert producer.flush(30) == 0


def values(cluster: SandboxCluster, topic: str) -> Counter[tuple[object, ...]]:
    """Which records each partition has, and how often."""
    return Counter((number, *record.content) for number, records in enumerate(read_all(cluster.bootstrap, topic)) for record in records)
