"""The two copiers: a Spark job with Spark's Kafka source and sink, and `ferry run`. Both copy what is there, and end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks import ferry_side
from benchmarks.flow import Clusters, Flow
from ferry.sandbox.jars import resolve_jars
from ferry.spark.submit import spark_home

# Spark starts in some seconds, and no situation has more than 300,000 records.
RUN_SECONDS = 600.0
# A failed task is tried again, as on a cluster.
MASTER = "local[2,4]"
JARS = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")


@dataclass
class Copier:
    """Copies `topic` to `remote`. `command`: a new process each time, in a session of its own, in which what was said is kept."""

    topic: str
    remote: str
    command: list[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self.command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **self.environment}, start_new_session=True
            )

    def run(self) -> int:
        """Its exit code."""
        return self.start().wait(RUN_SECONDS)

    def run_killed(self, when: Callable[[], bool]) -> bool:
        """SIGKILL all its processes when `when` is true. Whether that was before its end."""
        process = self.start()
        while not when() and process.poll() is None:
            time.sleep(0.01)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(RUN_SECONDS)
        return alive


def connector(
    clusters: Clusters,
    topic: str,
    directory: Path,
    options: Mapping[str, str],
    columns: tuple[str, ...],
    *,
    hiccup: bool = False,
    follows: bool = False,
) -> Copier:
    """`options`: of the source. `columns`: beside key and value. `hiccup`: one task fails once. `follows`: in real-time mode."""
    jars = resolve_jars("spark-kafka", (("org.apache.spark", "spark-sql-kafka-0-10_2.13", version("pyspark")),))
    paths = ",".join(str(path) for path in sorted(jars.iterdir()) if path.name.startswith(JARS))
    how = {
        "source": clusters.source,
        "target": clusters.target,
        "topic": topic,
        "remote": f"spark.{topic}",
        "checkpoint": str(directory / "checkpoint"),
        "options": dict(options),
        "columns": columns,
        "realtime": follows,
        "hiccup": str(directory / "hiccup") if hiccup else "",
    }
    job = str(Path(__file__).with_name("job.py"))
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", MASTER, "--jars", paths, job, json.dumps(how)]
    return Copier(topic, how["remote"], command, directory / "spark.log", {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})


def ferry(clusters: Clusters, topic: str, directory: Path, *, follows: bool = False) -> Copier:
    flow = Flow.fresh(clusters, (topic,), 1)
    config = directory / "ferry.properties"
    write_properties(ferry_side.properties(flow), config)
    command = [str(ferry_side.HERE), "run", str(config), "--flow", flow.name, "--master", "local[2]"]
    command += ["--follow", ferry_side.FOLLOW] if follows else []
    return Copier(topic, flow.remote_partitions[0][0], command, directory / "ferry.log", ferry_side.environment())
