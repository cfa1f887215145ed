"""Executors whose Python is not the driver's: an archive that Spark unpacks there, or another path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.drills.faults.processes import command_of, tree_of
from tools.kafka import compare_topics
from tools.spark.standalone import Standalone, standalone

from ferry.config import load_config

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark, pytest.mark.brokers]

RECORDS = 3_000
RUN_SECONDS = 400.0


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Standalone]:
    """A worker that knows nothing of Ferry: neither its Python nor its sources."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "VIRTUAL_ENV", "FERRY"))}
    bare["PATH"] = os.pathsep.join(entry for entry in bare["PATH"].split(os.pathsep) if ".venv" not in entry)
    with standalone(tmp_path, workers=1, environment=bare) as cluster:
        yield cluster


@pytest.mark.parametrize("way", ["archive", "path"])
def test_executors_have_a_python_of_their_own(way: str, archive: Path, spark: Standalone, lab: Lab, tmp_path: Path) -> None:
    topic = lab.topic(lab.source, partitions=4)
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    producer = Producer({**lab.source.client_settings(), "linger.ms": 5, "compression.type": "zstd"})
    for number in range(RECORDS):
        producer.produce(topic, f"{number}".encode() * 9, partition=number % 4)
    assert producer.flush(60) == 0
    if way == "archive":
        python, lines = "./ferry/bin/python", [f"spark.archives {archive}#ferry"]
    else:
        (tmp_path / "elsewhere").mkdir()
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(tmp_path / "elsewhere")], check=True)
        python, lines = str(tmp_path / "elsewhere" / "bin" / "python"), []
    site = tmp_path / "conf"
    site.mkdir()
    (site / "spark-defaults.conf").write_text("\n".join([*lines, f"spark.pyspark.python {python}", ""]))
    command = [str(Path(sys.executable).parent / "ferry"), "run", str(config), "--flow", flow.name, "--master", spark.master]
    seen: set[str] = set()
    environment = {**os.environ, "SPARK_CONF_DIR": str(site)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        while run.poll() is None:
            seen |= {command_of(process) for worker in spark.workers_started for process in tree_of(worker.pid)}
        said = run.stdout.read() if run.stdout is not None else ""
    assert run.returncode == 0, said[-4000:]
    pythons = {line.split()[0] for line in seen if "ferry.spark.worker_daemon" in line}
    assert pythons == {python}
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.source.alias}.{topic}"})
    assert (found.equal, found.records) == (True, RECORDS)
