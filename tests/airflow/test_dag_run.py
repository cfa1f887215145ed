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
from tools.kafka import SandboxCluster, compare_topics

from ferry.airflow.flows import dag_id
from ferry.config import load_config
from ferry.ledger.run_report import RunReport

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]


def run_dag(config: Path, suffix: str = "", **params: object) -> str:
    flow = load_config(config).flows[0]
    command = [sys.executable, "-m", "airflow", "dags", "test", dag_id(flow) + suffix, "--conf", json.dumps(params)]
    environment = {**os.environ, "FERRY_CONFIG": str(config)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


@pytest.mark.timeout(800)  # three runs, each with a limit of its own
def test_a_run_copies_and_the_next_one_starts_no_spark(
    airflow_database: None,
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> None:
    topic = topic_factory(source_cluster, partitions=3)
    # Two syncs are enough to see, and each is a process of its own.
    few = ("sync.topic.acls.enabled = false", "emit.heartbeats.enabled = false", "emit.offset-syncs.enabled = false")
    config = config_file(f"A->B.topics = {topic}", *few)
    remote = f"{load_config(config).flows[0].source.alias}.{topic}"
    producer = Producer({"bootstrap.servers": source_cluster.bootstrap})
    for number in range(600):
        producer.produce(topic, value=str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0

    dry = run_dag(config, dry_run=True)
    assert "dry run" in dry
    assert remote not in AdminClient({"bootstrap.servers": target_cluster.bootstrap}).list_topics(timeout=15).topics

    first = run_dag(config)
    assert "600 records" in first, first[-4000:]
    assert "successful" in first
    assert re.search(r"configs: \d+ changed, 0 left alone, 0 failed", first), first[-4000:]
    found = compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 600)

    second = run_dag(config)
    assert "nothing to copy: Spark is not started" in second
    assert "sync.topic.configs.interval.seconds=600" in second
    assert "successful" in second


def test_a_verify_names_what_differs(
    airflow_database: None,
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    copy_only: tuple[str, ...],
) -> None:
    topic = topic_factory(source_cluster, partitions=2)
    config = config_file(f"A->B.topics = {topic}", *copy_only)
    flow = load_config(config).flows[0]
    for cluster, name, count in ((source_cluster, topic, 200), (target_cluster, f"{flow.source.alias}.{topic}", 1)):
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(count):
            producer.produce(name, value=str(number).encode(), partition=number % 2)
        assert producer.flush(30) == 0
        if cluster is source_cluster:
            run_flow(flow)
    said = run_dag(config, ".verify", topics=[topic])
    assert f"{topic}-0 downstream 101: extra" in said, said[-4000:]
    assert "1 differences, 0 parts not compared" in said
    assert "CopiesDiffer" in said
    assert "200 records" in said
