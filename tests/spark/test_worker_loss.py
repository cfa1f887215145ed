"""Workers of a standalone cluster die in the middle of a run: nothing is lost, nothing is there twice, and the run ends."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.conftest import Lab
from tests.drills.faults.processes import command_of, tree_of
from tests.waiting import until
from tools.kafka import SandboxCluster, compare_topics
from tools.spark.standalone import Standalone, kill, standalone

from ferry.airflow.flows import dag_id
from ferry.config import load_config

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark, pytest.mark.brokers]

BINARIES = Path(sys.executable).parent
PARTITIONS, RECORDS, SIZE = 8, 1_600, 4_000
# Two megabytes a second, so a run takes a few seconds: long enough to be struck.
SLOW = ("ferry.max.rate.mb = 1.5", "ferry.transaction.mb = 1", "tasks.max = 2", "ferry.lanes = 8")
RUN_SECONDS = 400.0
# Longer than executors take to start on a loaded machine.
WAIT_SECONDS = 45
Config = Callable[..., Path]


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=PARTITIONS)


@pytest.fixture
def config(config_file: Config, topic: str, copy_only: tuple[str, ...]) -> Path:
    return config_file(f"A->B.topics = {topic}", *SLOW, *copy_only)


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Standalone]:
    with standalone(tmp_path, workers=0) as cluster:
        yield cluster


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Spark properties of the site: a cluster without workers is given up soon."""
    directory = tmp_path / "conf"
    directory.mkdir()
    (directory / "spark-defaults.conf").write_text(f"spark.ferry.executors.wait.seconds {WAIT_SECONDS}\n")
    return {**os.environ, "SPARK_CONF_DIR": str(directory)}


@pytest.fixture
def airflow(environment: dict[str, str], spark: Standalone, config: Path, tmp_path: Path) -> dict[str, str]:
    """An Airflow of its own whose Spark connection is the standalone cluster."""
    root = Path(__file__).parents[2]
    own = {
        **environment,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(root / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(root / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": spark.master}),
        "FERRY_CONFIG": str(config),
    }
    subprocess.run([str(BINARIES / "airflow"), "db", "migrate"], env=own, check=True, capture_output=True)
    return own


def fill(cluster: SandboxCluster, topic: str) -> None:
    source = random.Random(topic)
    producer = Producer({**cluster.client_settings(), "linger.ms": 5, "compression.type": "lz4"})
    for number in range(RECORDS):
        producer.produce(topic, source.randbytes(SIZE), key=str(number).encode(), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


def committed(cluster: SandboxCluster, remote: str) -> int:
    client = Consumer({**cluster.client_settings(), "group.id": "look", "isolation.level": "read_committed", "log_level": 0})
    try:
        return sum(client.get_watermark_offsets(TopicPartition(remote, number), timeout=10)[1] for number in range(PARTITIONS))
    except KafkaException:  # it is being created
        return 0
    finally:
        client.close()


def wait_for_more(cluster: SandboxCluster, remote: str, process: subprocess.Popen[str]) -> None:
    """Return when the run has committed something and is not done."""
    before = committed(cluster, remote)
    until(lambda: committed(cluster, remote) > before or process.poll() is not None, lambda: "nothing was committed")
    assert process.poll() is None, f"the run ended before it was struck: {process.communicate()[0][-4000:]}"


def below(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The executors of a worker, and their Python workers."""
    return psutil.Process(worker.pid).children(recursive=True)


def jvms(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if "CoarseGrainedExecutorBackend" in command_of(process)]


@contextmanager
def started(command: list[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive its test, with all that it starts."""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                kill(tree_of(process.pid))


def test_one_worker_dies_then_the_other(
    spark: Standalone, config: Path, topic: str, environment: dict[str, str], lab: Lab, airflow: dict[str, str]
) -> None:
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    first, second = spark.add_worker(), spark.add_worker()
    run = [str(BINARIES / "ferry"), "run", str(config), "--flow", flow.name, "--master", spark.master]

    # The worker and its executor's JVM die; the Python that copied goes on until it notices, and is fenced.
    fill(lab.source, topic)
    with started(run, environment) as struck:
        wait_for_more(lab.target, remote, struck)
        lanes = below(first)
        assert any("ferry.spark.worker_daemon" in command_of(process) for process in lanes), "no lane ran there"
        kill([psutil.Process(first.pid), *jvms(lanes)])
        said, _ = struck.communicate(timeout=RUN_SECONDS)
    kill(lanes)
    assert struck.returncode == 0, said[-4000:]
    assert equal(lab.source, lab.target, topic, remote) == RECORDS

    # The other one dies with all its processes, and nobody is left: the try ends, and Airflow's next one finds a new worker.
    fill(lab.source, topic)
    with started([str(BINARIES / "airflow"), "dags", "test", dag_id(flow), "--conf", "{}"], airflow) as struck:
        wait_for_more(lab.target, remote, struck)
        kill([psutil.Process(second.pid), *below(second)])
        time.sleep(WAIT_SECONDS + 5)
        spark.add_worker(cores=2)
        said, _ = struck.communicate(timeout=RUN_SECONDS)
    assert struck.returncode == 0, said[-4000:]
    assert "NoExecutors" in said
    assert equal(lab.source, lab.target, topic, remote) == 2 * RECORDS

    fill(lab.source, topic)
    with started(run, environment) as last:
        said, _ = last.communicate(timeout=RUN_SECONDS)
    assert last.returncode == 0, said[-4000:]
    assert equal(lab.source, lab.target, topic, remote) == 3 * RECORDS


def equal(source: SandboxCluster, target: SandboxCluster, topic: str, remote: str) -> int:
    found = compare_topics(source.bootstrap, target.bootstrap, {topic: remote})
    assert found.equal, found.differences[:3]
    return found.records
