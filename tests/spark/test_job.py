"""The copy job through spark-submit: local and on a standalone cluster, equal on both sides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tools.kafka import SandboxCluster, compare_topics
from tools.spark.standalone import standalone

from ferry.sandbox.ports import free_ports

pytestmark = [pytest.mark.spark, pytest.mark.brokers]

BINARIES = Path(sys.executable).parent


def ferry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BINARIES / "ferry"), *arguments], capture_output=True, text=True, check=False)


def fill(cluster: SandboxCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    for number in range(count):
        producer.produce(topic, value=f"{number}".encode() * 5, key=b"k", partition=number % 4)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=4)


@pytest.fixture
def config(config_file: Callable[..., Path], topic: str) -> Path:
    return config_file(f"A->B.topics = {topic}", "A->B.ferry.lanes = 4")


def flow_of(config: Path) -> str:
    return next(line.split(".enabled")[0] for line in config.read_text().splitlines() if ".enabled" in line)


def test_a_run_on_local_spark(config: Path, topic: str, lab: Lab) -> None:
    flow = flow_of(config)
    fill(lab.source, topic, 2_000)
    done = ferry("run", str(config), "--flow", flow, "--master", "local[2]", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["totals"]["records"] == 2_000
    assert compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.split('->')[0]}.{topic}"}).equal
    assert "offsets to go" in done.stderr
    again = ferry("run", str(config), "--flow", flow, "--json")
    assert again.returncode == 0
    assert "offsets to go" not in again.stderr  # Spark was not started


@pytest.mark.long
def test_the_first_run_of_a_site_with_a_spark_configuration(
    config: Path, topic: str, source_cluster: SandboxCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that is to archive its classes exits with 1 if its class path has a directory with files."""
    fill(source_cluster, topic, 100)
    (tmp_path / "spark-defaults.conf").write_text("spark.app.name of-the-site\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    done = ferry("run", str(config), "--flow", flow_of(config), "--master", "local[2]", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["records"] == 100


@pytest.mark.long
def test_a_verify_on_local_spark(config: Path, topic: str, lab: Lab) -> None:
    flow = flow_of(config)
    fill(lab.source, topic, 2_000)
    assert ferry("run", str(config), "--flow", flow, "--master", "inline").returncode == 0
    proof = ferry("verify", str(config), "--flow", flow, "--master", "local[2]", "--json")
    assert proof.returncode == 0, proof.stderr
    found = json.loads(proof.stdout)
    assert (found["equal"], found["records"], found["not_covered"]) == (True, 2_000, [])
    inline = ferry("verify", str(config), "--flow", flow, "--json")
    assert json.loads(inline.stdout)["verified"] == found["verified"] != []


@pytest.mark.long
def test_a_run_on_a_standalone_cluster_once_it_has_workers(
    config: Path, topic: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark itself would wait for ever for a worker; the next run does what this one could not."""
    flow = flow_of(config)
    fill(lab.source, topic, 3_000)
    (tmp_path / "spark-defaults.conf").write_text("spark.ferry.executors.wait.seconds 3\n")
    with standalone(tmp_path, workers=0) as cluster:
        with monkeypatch.context() as impatient:
            impatient.setenv("SPARK_CONF_DIR", str(tmp_path))
            refused = ferry("run", str(config), "--flow", flow, "--master", cluster.master)
        assert refused.returncode == 5, refused.stderr
        assert f"NoExecutors: Spark master {cluster.master} has had no executor for this run for 3 s" in refused.stderr
        for _ in range(2):
            cluster.add_worker()
        done = ferry("run", str(config), "--flow", flow, "--master", cluster.master, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["records"] == 3_000
    assert compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.split('->')[0]}.{topic}"}).equal


def test_a_master_that_does_not_answer_is_named(config: Path, topic: str, source_cluster: SandboxCluster) -> None:
    fill(source_cluster, topic, 10)
    port = free_ports(1)[0]
    done = ferry("run", str(config), "--flow", flow_of(config), "--master", f"spark://127.0.0.1:{port}")
    assert done.returncode == 2
    assert f"SparkMissing: Spark master spark://127.0.0.1:{port} does not answer" in done.stderr
