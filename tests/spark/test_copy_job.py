"""The copy job through spark-submit: local and on a standalone cluster, equal on both sides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ferry.sandbox import SandboxCluster, compare_topics
from ferry.sandbox.cluster import free_ports
from ferry.spark.submit import spark_home

pytestmark = [pytest.mark.spark, pytest.mark.brokers]

BINARIES = Path(sys.executable).parent
START_SECONDS = 60.0


def ferry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BINARIES / "ferry"), *arguments], capture_output=True, text=True, timeout=240, check=False)


def fill(cluster: SandboxCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    for number in range(count):
        producer.produce(topic, value=f"{number}".encode() * 5, key=b"k", partition=number % 4)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.fixture
def topic(source_cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source_cluster, partitions=4)


@pytest.fixture
def config(config_file: Callable[..., Path], topic: str) -> Path:
    return config_file(f"A->B.topics = {topic}", "A->B.ferry.lanes = 4")


def flow_of(config: Path) -> str:
    return next(line.split(".enabled")[0] for line in config.read_text().splitlines() if ".enabled" in line)


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """One master and two workers on loopback."""
    port, web, *worker_webs = free_ports(4)
    environment = {**os.environ, "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(spark_home())}
    environment["PYSPARK_PYTHON"] = sys.executable
    spark_class = [str(spark_home() / "bin" / "spark-class")]
    master = f"spark://127.0.0.1:{port}"
    commands = [
        [*spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]
    ]
    for index, worker_web in enumerate(worker_webs):
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"worker{index}")]
        commands.append([*spark_class, "org.apache.spark.deploy.worker.Worker", *options, "--webui-port", str(worker_web), master])
    started = []
    try:
        for number, command in enumerate(commands):
            with (tmp_path / f"spark{number}.log").open("wb") as log:
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True))
        deadline = time.monotonic() + START_SECONDS
        while registered(web) < len(worker_webs):
            assert time.monotonic() < deadline, (tmp_path / "spark0.log").read_text()[-2000:]
            time.sleep(0.3)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(20)


def registered(web: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=2) as answer:
            return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
    except OSError:
        return 0


def test_a_run_on_local_spark(config: Path, topic: str, source_cluster: SandboxCluster, target_cluster: SandboxCluster) -> None:
    flow = flow_of(config)
    fill(source_cluster, topic, 2_000)
    done = ferry("run", str(config), "--flow", flow, "--master", "local[2]", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["totals"]["records"] == 2_000
    assert compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: f"{flow.split('->')[0]}.{topic}"}).equal
    again = ferry("run", str(config), "--flow", flow, "--json")
    assert again.returncode == 0
    proof = ferry("verify", str(config), "--flow", flow, "--master", "local[2]", "--json")
    assert proof.returncode == 0, proof.stderr
    found = json.loads(proof.stdout)
    assert (found["equal"], found["records"], found["not_covered"]) == (True, 2_000, [])
    inline = ferry("verify", str(config), "--flow", flow, "--json")
    assert json.loads(inline.stdout)["verified"] == found["verified"] != []
    assert "offsets to go" in done.stderr
    assert "offsets to go" not in again.stderr  # Spark was not started


def test_a_run_on_a_standalone_cluster(
    standalone: str, config: Path, topic: str, source_cluster: SandboxCluster, target_cluster: SandboxCluster
) -> None:
    flow = flow_of(config)
    fill(source_cluster, topic, 3_000)
    done = ferry("run", str(config), "--flow", flow, "--master", standalone, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["totals"]["records"] == 3_000
    assert compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: f"{flow.split('->')[0]}.{topic}"}).equal


def test_a_master_that_does_not_answer_is_named(config: Path, topic: str, source_cluster: SandboxCluster) -> None:
    fill(source_cluster, topic, 10)
    port = free_ports(1)[0]
    done = ferry("run", str(config), "--flow", flow_of(config), "--master", f"spark://127.0.0.1:{port}")
    assert done.returncode == 2
    assert f"SparkMissing: Spark master spark://127.0.0.1:{port} does not answer" in done.stderr
