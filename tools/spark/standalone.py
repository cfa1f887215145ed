"""A Spark standalone cluster on 127.0.0.1, from PySpark's jars: one master, workers that come and go."""

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

import psutil

from ferry.sandbox.ports import free_ports
from ferry.spark.submit import spark_home

START_SECONDS = 900.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.2
LOOPBACK = "127.0.0.1"


class StandaloneFailed(RuntimeError):
    """The master does not answer, or does not know a worker."""


class Standalone:
    """The cluster; `master` is its URL."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        port, self._web = free_ports(2)
        self.master = f"spark://{LOOPBACK}:{port}"
        self._directory = directory
        self._environment = {**environment, "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(spark_home())}
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers_started: list[subprocess.Popen[bytes]] = []
        self._start("master", "org.apache.spark.deploy.master.Master", "--port", str(port), "--webui-port", str(self._web))

    def add_worker(self, cores: int = 1) -> subprocess.Popen[bytes]:
        """One more worker; returns when the master knows it."""
        before, (web,) = self.workers(), free_ports(1)
        number = str(len(self._processes))
        options = ["--cores", str(cores), "--memory", "1g", "--work-dir", str(self._directory / f"work{number}"), "--webui-port", str(web)]
        started = self._start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *options, self.master)
        deadline = time.monotonic() + START_SECONDS
        while self.workers() <= before:
            self.wait(deadline)
        self.workers_started.append(started)
        return started

    def workers(self) -> int:
        """How many the master takes for alive; -1 while it does not answer. While it starts, it may answer with a page instead of JSON."""
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._web}/json/", timeout=2) as answer:
                return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
        except (OSError, json.JSONDecodeError):
            return -1

    def wait(self, deadline: float) -> None:
        """A moment. StandaloneFailed after the deadline (of time.monotonic)."""
        if time.monotonic() > deadline:
            raise StandaloneFailed((self._directory / "master.log").read_text()[-2000:])
        time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """End all that still lives, and what it started."""
        living = [process for process in self._processes if process.poll() is None]
        below = [child for process in living for child in psutil.Process(process.pid).children(recursive=True)]
        for process in reversed(living):
            process.terminate()
        for process in living:
            process.wait(STOP_SECONDS)
        kill(below)

    def _start(self, name: str, main_class: str, *options: str) -> subprocess.Popen[bytes]:
        command = [str(spark_home() / "bin" / "spark-class"), main_class, "--host", LOOPBACK, *options]
        with (self._directory / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, start_new_session=True)
        self._processes.append(started)
        return started


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL to those that still live."""
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue


@contextmanager
def standalone(directory: Path, workers: int, environment: Mapping[str, str] | None = None) -> Iterator[Standalone]:
    """A master and so many workers of one core; `environment` is that of the workers, this process's by default."""
    cluster = Standalone(directory, os.environ if environment is None else environment)
    try:
        deadline = time.monotonic() + START_SECONDS
        while cluster.workers() < 0:
            cluster.wait(deadline)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()
