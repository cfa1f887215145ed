"""A whole DAG run over real brokers and a real Spark, as Airflow's CLI does it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tests.opened import carry_out
from tests.schemas.double.server import RegistryDouble
from tools.kafka import compare_topics

from ferry.airflow.flows import dag_id
from ferry.config import load_config
from ferry.syncs.names import SyncName

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]


def run_dag(config: Path, suffix: str = "", **params: object) -> str:
    flow = load_config(config).flows[0]
    command = [sys.executable, "-m", "airflow", "dags", "test", dag_id(flow) + suffix, "--conf", json.dumps(params)]
    environment = {**os.environ, "FERRY_CONFIG": str(config)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.fixture
def topic(lab: Lab) -> str:
    """600 records in three partitions."""
    name = lab.topic(lab.source, partitions=3)
    producer = Producer({"bootstrap.servers": lab.source.bootstrap})
    for number in range(600):
        producer.produce(name, value=str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def config(config_file: Callable[..., Path], topic: str) -> Path:
    """Two syncs are enough to see, and each is a process of its own."""
    few = ("sync.topic.acls.enabled = false", "emit.heartbeats.enabled = false", "emit.offset-syncs.enabled = false")
    return config_file(f"A->B.topics = {topic}", *few)


def test_a_run_copies(airflow_database: None, config: Path, topic: str, lab: Lab) -> None:
    """Schemas first, then the records that need them."""
    with RegistryDouble() as source, RegistryDouble() as target:
        source.seed(f"{topic}-value", '"string"')
        flow = load_config(config).flows[0]
        sides = ((flow.source, source.url), (flow.target, target.url))
        with config.open("a") as file:
            file.writelines(f"\n{side.alias}.schema.registry.url = {url}\n" for side, url in sides)
        said = run_dag(config)
        copied = target.registry.schemas(":*:", True, False)
    assert [(one.subject, one.id) for one in copied] == [(f"{flow.source.alias}.{topic}-value", 1)], said[-4000:]
    ends = [said.index(f"end task task_id={task} ") for task in ("sync_schemas", "copy_records")]
    assert ends == sorted(ends)
    assert re.search(r"600 records, [\d,]+ bytes in \d+\.\d s \(\d+\.\d MB/s, CPU \d+\.\d s\), 3 partitions", said), said[-4000:]
    assert "successful" in said
    assert re.search(r"configs: \d+ changed", said), said[-4000:]
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, 600)


@pytest.mark.long
def test_a_dry_run_writes_nothing_and_a_run_without_new_records_starts_no_spark(
    airflow_database: None, config: Path, topic: str, lab: Lab
) -> None:
    flow = load_config(config).flows[0]
    dry = run_dag(config, dry_run=True)
    assert "dry run" in dry
    topics = AdminClient({"bootstrap.servers": lab.target.bootstrap}).list_topics(timeout=15).topics
    assert f"{flow.source.alias}.{topic}" not in topics

    lab.run(flow)
    assert not carry_out(flow, SyncName.CONFIGS).failed
    second = run_dag(config)
    assert "nothing to copy: Spark is not started" in second
    assert "sync.topic.configs.interval.seconds=600" in second
    assert "successful" in second


@pytest.mark.long
def test_a_verify_names_what_differs(airflow_database: None, lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2)
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    for cluster, name, count in ((lab.source, topic, 200), (lab.target, f"{flow.source.alias}.{topic}", 1)):
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(count):
            producer.produce(name, value=str(number).encode(), partition=number % 2)
        assert producer.flush(30) == 0
        if cluster is lab.source:
            lab.run(flow)
    said = run_dag(config, ".verify", topics=[topic])
    assert f"{topic}-0 downstream 101: extra" in said, said[-4000:]
    assert "1 difference, 0 parts not compared" in said
    assert "CopiesDiffer" in said
    assert "200 records" in said
