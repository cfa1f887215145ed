"""A YARN of one node manager on 127.0.0.1, from Hadoop's mini-cluster jar beside PySpark's jars.

It runs containers as processes of this user. Its ports are free ones, except those of containers, which take theirs themselves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import psutil

from ferry.sandbox.jars import LOGGING, java, resolve_jars
from ferry.sandbox.ports import free_ports
from ferry.spark.submit import spark_home

LOOPBACK = "127.0.0.1"
RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
# The mini-cluster needs it, and does not bring it.
LEFT_OUT = (("org.bouncycastle", "bcprov-jdk18on", "1.78.1"), ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"))
JAVA_OPTIONS = ("-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Two Java processes; a loaded machine needs a fraction of it.
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 180.0, 30.0, 0.3


class YarnFailed(RuntimeError):
    """YARN did not start."""


@contextmanager
def yarn(directory: Path, *, memory_mib: int, cores: int) -> Iterator[Path]:
    """YARN with a node of so much; yields HADOOP_CONF_DIR. Afterwards none of its processes runs. YarnFailed."""
    configuration = directory / "conf"
    configuration.mkdir(parents=True)
    ports = dict(zip(("scheduler", "tracker", "admin", "web", "manager", "node", "localizer", "node_web"), free_ports(8), strict=True))
    (configuration / "yarn-site.xml").write_text(_document(_settings(directory, ports, memory_mib, cores)))
    (configuration / "capacity-scheduler.xml").write_text(_document(QUEUES))
    (configuration / "core-site.xml").write_text(_document({"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(directory / "tmp")}))
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(_start(main_class, directory, configuration) for main_class in (RESOURCE_MANAGER, NODE_MANAGER))
        _await_node(ports["web"], started, directory)
        yield configuration
    finally:
        _end(started)


QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    # Cores count, not only memory.
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}


def _settings(directory: Path, ports: Mapping[str, int], memory_mib: int, cores: int) -> dict[str, str]:
    addresses = {
        "resourcemanager.address": "manager",
        "resourcemanager.scheduler.address": "scheduler",
        "resourcemanager.resource-tracker.address": "tracker",
        "resourcemanager.admin.address": "admin",
        "resourcemanager.webapp.address": "web",
        "nodemanager.address": "node",
        "nodemanager.localizer.address": "localizer",
        "nodemanager.webapp.address": "node_web",
    }
    rest = {
        "resourcemanager.hostname": LOOPBACK,
        "nodemanager.hostname": LOOPBACK,
        "nodemanager.bind-host": LOOPBACK,
        "nodemanager.resource.memory-mb": str(memory_mib),
        "nodemanager.resource.cpu-vcores": str(cores),
        "nodemanager.local-dirs": str(directory / "local"),
        "nodemanager.log-dirs": str(directory / "logs"),
        # By default a node whose disk is 90 % full runs no containers.
        "nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "nodemanager.vmem-check-enabled": "false",
        # The disk of a developer may be nearly full.
        "nodemanager.disk-health-checker.enable": "false",
        "nodemanager.env-whitelist": "JAVA_HOME,SPARK_LOCAL_IP",
        "scheduler.minimum-allocation-mb": "128",
        "resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
    }
    settings = {name: f"{LOOPBACK}:{ports[port]}" for name, port in addresses.items()} | rest
    return {f"yarn.{name}": value for name, value in settings.items()}


def _document(settings: Mapping[str, str]) -> str:
    rows = "".join(f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>" for name, value in settings.items())
    return f"<configuration>{rows}</configuration>"


def hadoop_jars() -> Path:
    """The directory with the mini-cluster of the Hadoop release that PySpark brings."""
    found = next((spark_home() / "jars").glob("hadoop-client-api-*.jar"))
    version = found.stem.removeprefix("hadoop-client-api-")
    return resolve_jars("hadoop", (("org.apache.hadoop", "hadoop-client-minicluster", version), *LEFT_OUT, LOGGING))


def _start(main_class: str, directory: Path, configuration: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join((str(configuration), f"{hadoop_jars()}/*", f"{spark_home() / 'jars'}/*"))
    command = [
        java(),
        *JAVA_OPTIONS,
        f"-Dyarn.log.dir={directory}",
        f"-Dhadoop.log.dir={directory}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        path,
        main_class,
    ]
    with (directory / f"{main_class.rpartition('.')[2]}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=directory)


def _await_node(port: int, started: list[subprocess.Popen[bytes]], directory: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while _nodes(port) < 1:
        if time.monotonic() > deadline or any(process.poll() is not None for process in started):
            said = "\n".join(log.read_text()[-2000:] for log in sorted(directory.glob("*.log")))
            raise YarnFailed(f"YARN did not start: {said}")
        time.sleep(POLL_SECONDS)


def _nodes(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/ws/v1/cluster/metrics", timeout=5) as answer:
            return int(json.load(answer)["clusterMetrics"]["activeNodes"])
    except (OSError, ValueError, KeyError):
        return 0


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    living = [process for process in started if process.poll() is None]
    # Containers have shells and Java processes of their own.
    below = [child for process in living for child in psutil.Process(process.pid).children(recursive=True)]
    for process in reversed(living):
        process.terminate()
    for process in living:
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for child in below:
        try:
            child.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
