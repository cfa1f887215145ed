"""A Kafka broker on 127.0.0.1 that is a cluster of its own and outlives the process that starts it.

It runs in its own session, so signals to the caller do not reach it. `broker_process.py` finds its process, and no other one.
"""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ferry.sandbox.broker_process import MAIN_CLASS, SandboxFailed, find_process
from ferry.sandbox.jars import broker_jars, java
from ferry.sandbox.ports import free_ports, listens
from ferry.sandbox.server_properties import NODE, format_storage, new_cluster_id, server_settings, write_settings

# A broker is up in about five seconds; a loaded machine may need several times that.
START_SECONDS = 90.0
# A broker that does not end by SIGTERM within this is killed: it must not hold up the end of a test session.
STOP_SECONDS = 20.0
POLL_SECONDS = 0.1
# One of many requests for metadata while it starts.
ANSWER_SECONDS = 5.0
LOG_TAIL_LINES = 15
JAVA_OPTIONS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STATE_FILE = "cluster.json"
PROPERTIES_FILE = "server.properties"

# Children of this process by their server.properties. It must wait for them when they end; they may outlive it.
_children: dict[Path, subprocess.Popen[bytes]] = {}


@dataclass
class LocalBroker:
    name: str
    directory: Path
    port: int
    controller_port: int

    @classmethod
    def start(cls, directory: Path, name: str) -> Self:
        """Format and start one; returns when it answers. SandboxFailed with the end of its log otherwise, and no process stays."""
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        port, controller_port = free_ports(2)
        broker = cls(name, directory, port, controller_port)
        write_settings(broker.properties_file, server_settings(broker.properties_file, port, controller_port))
        format_storage(broker.properties_file, broker.jars, new_cluster_id())
        broker.run()
        return broker

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """The broker that was started in `directory`, running or not; None when there is none."""
        directory = directory.resolve()
        path = directory / STATE_FILE
        if not path.exists():
            return None
        saved = json.loads(path.read_text(encoding="utf-8")) | {"directory": directory}
        return cls(**{known.name: saved[known.name] for known in fields(cls)})

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def properties_file(self) -> Path:
        """Its server.properties; absolute."""
        return self.directory / PROPERTIES_FILE

    @property
    def jars(self) -> Path:
        """The directory with the jars of its release."""
        return broker_jars()

    @property
    def class_path(self) -> str:
        """Where its JVM finds classes."""
        return f"{self.jars}/*"

    @property
    def running(self) -> bool:
        """Whether its process lives (paused counts)."""
        return self._process() is not None

    @property
    def pid(self) -> int:
        """Of its process; 0 if it does not run."""
        return process.pid if (process := self._process()) else 0

    def answers(self) -> bool:
        """Whether it answers a client and names itself among the brokers."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            return NODE in client.list_topics(timeout=ANSWER_SECONDS).brokers
        except KafkaException:
            return False

    def run(self) -> None:
        """Start the process on the data that is there; returns when it answers. SandboxFailed when it runs already or does not start."""
        if self.running:
            raise SandboxFailed(f"cluster {self.name} runs already, as process {self.pid}: stop it first")
        self._save()
        try:
            self._launch()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Let it shut down; kill it if that takes too long. Does nothing if it does not run."""
        if process := self._process():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
                process.resume()
            if not self._ended():
                self.kill()

    def kill(self) -> None:
        """SIGKILL; returns when it has ended. Does nothing if it does not run."""
        if process := self._process():
            process.send_signal(signal.SIGKILL)
            if not self._ended():
                raise SandboxFailed(f"cluster {self.name}: process {process.pid} survives SIGKILL")

    def _java_options(self) -> Sequence[str]:
        return JAVA_OPTIONS

    def _launch(self) -> None:
        command = [java(), *self._java_options(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", self.class_path, MAIN_CLASS, str(self.properties_file)]
        with (self.directory / "server.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        _children[self.properties_file] = process
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise SandboxFailed(f"cluster {self.name} ended with code {process.returncode}; its log ends with:\n{self._log_tail()}")
            if listens(self.port) and self.answers():
                return
            time.sleep(POLL_SECONDS)
        raise SandboxFailed(f"cluster {self.name} did not answer within {START_SECONDS:.0f} s; its log ends with:\n{self._log_tail()}")

    def _ended(self) -> bool:
        """Wait for the process to end, whether it is a child of this process or not."""
        process = _children.get(self.properties_file) or self._process()
        try:
            if process is not None:
                process.wait(STOP_SECONDS)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            return False
        return True

    def _process(self) -> psutil.Process | None:
        child = _children.get(self.properties_file)
        if child is not None and child.poll() is None:  # poll reaps it if it has ended: a zombie does not run
            return psutil.Process(child.pid)
        _children.pop(self.properties_file, None)
        return find_process(self.properties_file)

    def _save(self) -> None:
        scratch = self.directory / f"{STATE_FILE}.new"
        scratch.write_text(json.dumps({**asdict(self), "directory": str(self.directory)}), encoding="utf-8")
        scratch.replace(self.directory / STATE_FILE)

    def _log_tail(self) -> str:
        text = (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])
