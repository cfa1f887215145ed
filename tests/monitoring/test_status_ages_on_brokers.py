"""Ages of what is not copied: known, not known, and never waited for where no record is."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.cli.inside import ferry
from tests.conftest import Lab
from tests.opened import flow_status, plan_run, source_ends
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster

from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import open_cluster
from ferry.config import load_config
from ferry.config.flow import flow_command
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.monitoring import status
from ferry.monitoring.verdict import Health, verdict_of
from ferry.recovery.not_copied import not_copied
from ferry.syncs.config_differences import NO_LIMIT

pytestmark = pytest.mark.brokers

HOUR_MS = 3_600_000


def test_only_a_record_with_a_time_has_an_age(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.source, partitions=4)
    now = round(time.time() * 1000)
    plain = Producer(lab.source.client_settings())
    for partition, moment in ((0, now - HOUR_MS), (1, -1), (2, now + HOUR_MS)):
        plain.produce(topic, b"x", partition=partition, timestamp=moment)
    assert plain.flush(30) == 0
    aborting = Producer({**lab.source.client_settings(), "transactional.id": f"aborts-{topic}"})
    aborting.init_transactions(30)
    aborting.begin_transaction()
    aborting.produce(topic, b"x", partition=3)
    aborting.flush(30)
    aborting.abort_transaction(30)

    monkeypatch.setattr(status, "READ_SECONDS", NEVER_SECONDS)  # what waits for records that never come takes that long
    began = time.monotonic()
    with open_cluster(load_config(lab.config(f"A->B.topics = {topic}")).flows[0].source) as source:
        ages = status.first_ages(source, {TopicPartition(topic, number): 0 for number in range(4)})
    assert time.monotonic() - began < NEVER_SECONDS
    assert 3_600 <= ages[TopicPartition(topic, 0)] < 3_700
    assert [ages[TopicPartition(topic, number)] for number in (1, 2, 3)] == [-1.0, 0.0, -1.0]


def test_a_flow_that_never_ran(lab: Lab) -> None:
    """A run that finds nothing to copy is a run too."""
    topic = lab.topic(lab.source)
    flow = lab.flow(f"A->B.topics = {topic}")
    found = verdict_of(flow_status(flow), time.time())
    run = flow_command("run", flow.name, flow.source.path)
    step = f"if its DAG is paused in Airflow, unpause it, then start a run; if not, start a run now, in Airflow or with {run}"
    assert (found.health, found.next_step, found.exit_code) == (Health.NEVER_RAN, step, ExitCode.PARTLY_FAILED)
    lab.run(flow)
    assert verdict_of(flow_status(flow), time.time()).health is Health.HEALTHY
    lab.produce(lab.source, topic, [(0, b"key", b"value")])
    assert verdict_of(flow_status(flow), time.time()).health is Health.HEALTHY


def test_an_application_may_call_its_topic_heartbeats(lab: Lab) -> None:
    """Only what the clusters of the file beat is left out of lag, alerts, rehearsals and backfills."""
    name = f"x{secrets.token_hex(4)}.heartbeats"
    lab.topic(lab.source, name=name)
    lab.produce(lab.source, name, [(0, b"key", b"value")] * 500)
    alone = ("B->A.emit.heartbeats.enabled = false", "A->B.heartbeats.replication.enabled = false")  # other tests leave heartbeats there
    flow = load_config(lab.config(f"A->B.topics = {name}", *alone)).flows[0]
    beats = f"{flow.target.alias}.{name}"
    found = flow_status(flow)
    assert (found.lag.records, [entry.heartbeats for entry in found.partitions]) == (500, [False])
    planned = plan_run(flow, RunRequest(flow.name, "look"))
    assert planned.needs_copy
    assert [entry.offsets for entry in not_copied(planned, flow)] == [500]
    assert source_ends(flow) == {TopicPartition(name, 0): 500}
    assert [flow.is_heartbeats(topic) for topic in ("heartbeats", f"{flow.source.alias}.heartbeats", name, beats)] == [
        True,
        True,
        False,
        False,
    ]


MICROSECONDS = 1_764_000_000_000_123


def named(config: Path) -> tuple[Path, str, str]:
    return config, "--flow", load_config(config).flows[0].name


def produce_at(cluster: SandboxCluster, topic: str, moments: list[int]) -> None:
    producer = Producer(cluster.client_settings())
    for moment in moments:
        producer.produce(topic, b"x", b"k", partition=0, timestamp=moment)
    assert producer.flush(30) == 0


@pytest.mark.long
def test_a_time_in_microseconds_is_told_as_it_is(lab: Lab) -> None:
    """No calendar has it: neither what is copied nor what is missing can be named by an ISO time."""
    topic = lab.topic(lab.source, config={"message.timestamp.after.max.ms": str(NO_LIMIT)})
    flow = named(lab.config(f"A->B.topics = {topic}", *lab.copy_only))
    produce_at(lab.source, topic, [MICROSECONDS] * 3)
    assert ferry("run", *flow, "--master", "inline").returncode == 0
    told = ferry("ledger", *flow, environment={"COLUMNS": "200"})
    assert (told.returncode, f"{MICROSECONDS} ms" in told.stdout) == (0, True), told
    assert json.loads(ferry("ledger", *flow, "--json").stdout)["ranges"][-1]["max_timestamp"] == MICROSECONDS
    produce_at(lab.source, topic, [MICROSECONDS] * 4)
    positions = flow[0].with_name("positions.csv")
    positions.write_text(f"topic,partition,position\n{topic},0,7\n")
    assert ferry("seed", *flow, "--from-file", positions).returncode == 0
    status = ferry("status", *flow)
    assert status.returncode == 5, status
    assert f"missing in 1 topic: {topic}" in status.stdout
    assert "next: its records have no usable time: ferry backfill cannot copy them either" in status.stdout.replace("\n", " ")
    assert json.loads(ferry("status", *flow, "--json").stdout)["flows"][0]["missing"][0]["first_time"] == MICROSECONDS


@pytest.mark.long
def test_an_empty_cleanup_policy_deletes_nothing(lab: Lab) -> None:
    """Since Kafka 4.1: whatever retention.ms says, no record is in danger. The remote topic gets the same policy."""
    topic = lab.topic(lab.source, config={"cleanup.policy": "", "retention.ms": "1000"})
    limits = ("A->B.ferry.alert.headroom.seconds = 60", *lab.copy_only)
    flow = named(lab.config(f"A->B.topics = {topic}", *limits))
    produce_at(lab.source, topic, [1_764_000_000_000])
    status = json.loads(ferry("status", *flow, "--json").stdout)["flows"][0]
    assert (status["limits_broken"], status["partitions"][0]["headroom_seconds"]) == ([], None)
    assert "no limit" in ferry("status", *flow).stdout
    assert "no uncopied record is about to expire" in ferry("doctor", *flow).stdout
    assert ferry("run", *flow, "--master", "inline").returncode == 0
    planned = json.loads(ferry("plan", *flow, "--json").stdout)
    assert (planned["differences"], planned["topics"]["create"]) == ([], [])
    assert json.loads(ferry("sync", *flow, "configs", "--json").stdout)["syncs"]["configs"]["changes"] == []
    assert ferry("verify", *flow).stdout.rstrip().endswith("equal")
