"""Ferry installed by pip beside each minor release of Spark that its extra allows, in a bare environment: local, and on a cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.virtual_environment import virtual_environment
from tools.kafka import compare_topics
from tools.release.building import build
from tools.spark.standalone import standalone

from ferry.config import load_config

pytestmark = [pytest.mark.installing, pytest.mark.brokers, pytest.mark.spark]

RECORDS = 600


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3"])
def test_a_run_copies_with_this_spark(release: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheel").mkdir()
    wheel = build("wheel", tmp_path / "wheel")
    python = virtual_environment(tmp_path / "venv", "3.11", f"kafka-ferry[spark] @ {wheel.as_uri()}", f"pyspark=={release}.*")
    topic = lab.topic(lab.source, partitions=3)
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    environment = {**kept, "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin"}
    producer = Producer(lab.source.client_settings())

    def copy(master: str) -> int:
        for number in range(RECORDS):
            producer.produce(topic, value=f"{master} {number}".encode(), partition=number % 3)
        assert producer.flush(30) == 0
        command = [str(python.parent / "ferry"), "run", str(config), "--flow", flow.name, "--master", master]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-4000:]
        assert "Traceback" not in said
        found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: f"{flow.source.alias}.{topic}"})
        assert found.equal, found.differences
        return found.records

    assert copy("local[2]") == RECORDS
    monkeypatch.setenv("SPARK_HOME", str(next((python.parents[1] / "lib").glob("python*/site-packages/pyspark"))))
    with standalone(tmp_path, workers=2, environment=environment) as cluster:
        assert copy(cluster.master) == 2 * RECORDS
