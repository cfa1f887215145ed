"""The pods that Spark asks Kubernetes for with the settings of docs/spark.md, and a copy by what runs in them. There is no cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Lab
from tests.drills.faults.processes import command_of, tree_of
from tests.spark.test_worker_loss import PARTITIONS, RECORDS, SLOW, equal, fill, started, wait_for_more
from tests.waiting import until
from tools.spark.kubernetes import environment_of, kubernetes
from tools.spark.site import site

from ferry.config import load_config

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark, pytest.mark.brokers]

RUN_SECONDS = 400.0
PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
SETTINGS = dict(line.split(maxsplit=1) for line in re.findall(r"```properties\n(spark.kubernetes.*?)```", PAGE, re.DOTALL)[0].splitlines())
# Other ones where a machine is small and the API server cannot tell of changes by itself.
OTHERS = {
    "spark.executor.memory": "480m",
    "spark.executor.instances": "2",
    "spark.kubernetes.executor.enableApiWatcher": "false",
    "spark.kubernetes.executor.apiPollingInterval": "1s",
}


def test_executors_are_the_pods_of_the_page(archive: Path, lab: Lab, tmp_path: Path) -> None:
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    fill(lab.source, topic)
    config = lab.config(f"A->B.topics = {topic}", *SLOW, *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    opt = tmp_path / "opt"  # what the page's image has in /opt/ferry
    opt.mkdir()
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(opt)], check=True)
    python = str(opt / "bin" / "python")
    pods = tmp_path / "pods"
    pods.mkdir()
    with kubernetes(pods) as cluster:
        settings = {**SETTINGS, **OTHERS, "spark.pyspark.python": python}
        command = [str(Path(sys.executable).parent / "ferry"), "run", str(config), "--flow", flow.name, "--master", cluster.master]
        with started(command, {**os.environ, **site(tmp_path, settings)}) as run:
            wait_for_more(lab.target, remote, run)
            first = dict(cluster.processes)
            assert len(first) == 2
            daemons = {command_of(process) for pod in first.values() for process in tree_of(pod.pid) if "daemon" in command_of(process)}
            next(iter(first.values())).kill()
            until(lambda: len(cluster.pods) == 3 or run.poll() is not None, lambda: "no pod takes its place")
            said, _ = run.communicate(timeout=RUN_SECONDS)
    assert run.returncode == 0, said[-4000:]
    assert equal(lab.source, lab.target, topic, remote) == RECORDS
    assert len(cluster.pods) == 3
    assert {daemon.split()[0] for daemon in daemons} == {python}
    for pod in cluster.pods.values():
        (container,) = pod["spec"]["containers"]
        assert pod["metadata"]["namespace"] == SETTINGS["spark.kubernetes.namespace"]
        assert container["image"] == SETTINGS["spark.kubernetes.container.image"]
        assert container["resources"]["requests"] == {"cpu": "1", "memory": f"{480 + 1024}Mi"}
        assert container["resources"]["limits"] == {"memory": f"{480 + 1024}Mi"}
        asked = environment_of(pod)
        assert (asked["PYTHONUNBUFFERED"], asked["SPARK_EXECUTOR_CORES"]) == ("1", "1")
        assert not any("PASSWORD" in name or "FERRY" in name for name in asked)
