"""A run on YARN, with a fixed number of executors and with dynamic allocation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tools.kafka import SandboxCluster, compare_topics
from tools.spark.site import site
from tools.spark.yarn import yarn

from ferry.config import load_config

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark, pytest.mark.brokers]

RECORDS = 3_000
RUN_SECONDS = 600.0
SMALL = {"spark.executor.memory": "480m", "spark.executor.cores": "1", "spark.yarn.am.memory": "384m"}
FIXED = {"spark.executor.instances": "2"}
DYNAMIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"}


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with yarn(tmp_path_factory.mktemp("yarn"), memory_mib=6144, cores=6) as configuration:
        yield configuration


@pytest.mark.parametrize("executors", [FIXED, DYNAMIC], ids=["fixed", "dynamic allocation"])
def test_a_run_copies_on_yarn(
    executors: Mapping[str, str],
    hadoop: Path,
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    copy_only: tuple[str, ...],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    tmp_path: Path,
) -> None:
    topic = topic_factory(source_cluster, partitions=4)
    config = config_file(f"A->B.topics = {topic}", "tasks.max = 2", "ferry.lanes = 4", *copy_only)
    flow = load_config(config).flows[0]
    producer = Producer({**source_cluster.client_settings(), "linger.ms": 5, "compression.type": "zstd"})
    for number in range(RECORDS):
        producer.produce(topic, f"{number}".encode() * 9, partition=number % 4)
    assert producer.flush(60) == 0
    command = [str(Path(sys.executable).parent / "ferry"), "run", str(config), "--flow", flow.name, "--master", "yarn"]
    environment = {**os.environ, **site(tmp_path, {**SMALL, **executors}), "HADOOP_CONF_DIR": str(hadoop)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, RECORDS)
