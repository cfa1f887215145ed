"""One-node clusters on 127.0.0.1: started, killed, paused, resumed, stopped.

Every broker runs in its own session, so signals meant for the caller do not reach it, and ends with the process that started it
(`guard.py`) unless it is `detached`. It is only ever signalled after a look at what the process runs (`broker_process.py`): a stranger is
never hit.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ferry.sandbox.access import login_settings
from ferry.sandbox.broker_process import MAIN_CLASS, find_broker, recorded_broker
from ferry.sandbox.failure import SandboxFailed
from ferry.sandbox.guard import guard
from ferry.sandbox.jars import KAFKA_VERSION, java, resolve_jars
from ferry.sandbox.ports import free_ports, listens
from ferry.sandbox.releases import broker_jars, needs_zookeeper
from ferry.sandbox.server_properties import format_storage, write_server_properties
from ferry.sandbox.zookeeper import run_zookeeper, stop_zookeeper

__all__ = ["JAVA_OPTIONS", "PROPERTIES_FILE", "SandboxCluster", "SandboxFailed", "free_ports"]

# A broker is up in about five seconds; a loaded machine may need several times that.
START_SECONDS = 90.0
# A broker that does not end by SIGTERM within this is killed: it must not hold up the end of a test session.
STOP_SECONDS = 20.0
POLL_SECONDS = 0.1
# One look for metadata, of many while it starts.
ANSWER_SECONDS = 5.0
LOG_TAIL_LINES = 15
JAVA_OPTIONS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STATE_FILE = "cluster.json"
PROPERTIES_FILE = "server.properties"
# A listener on the cluster's own port that asks for no login and no TLS, as `settings` may name it.
OPEN = "PLAINTEXT://127.0.0.1:{port}"
OPEN_LISTENER = re.compile(rf"(^|,){re.escape(OPEN)}(,|$)")

# Children of this process: they must be waited for when they end, and may outlive it.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass
class SandboxCluster:
    """A running (or stopped) cluster; `settings` are its extra broker properties, `started` its start in seconds since the epoch."""

    name: str
    directory: Path
    port: int
    controller_port: int
    settings: dict[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = JAVA_OPTIONS
    users: dict[str, str] = field(default_factory=dict)
    authorizer: bool = False
    detached: bool = False
    version: str = KAFKA_VERSION
    pid: int = 0
    started: float = 0.0

    @classmethod
    def start(
        cls,
        directory: Path,
        name: str,
        *,
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = JAVA_OPTIONS,
        features: Sequence[str] = (),
        users: Mapping[str, str] | None = None,
        authorizer: bool = False,
        detached: bool = False,
        ports: tuple[int, int] | None = None,
        cluster_id: str = "",
        version: str = KAFKA_VERSION,
    ) -> SandboxCluster:
        """Format and start a cluster; returns when it answers. SandboxFailed with the end of its log otherwise, and no process stays.

        properties: broker properties that come on top of the sandbox's; `{port}` and `{controller_port}` in values become its ports.
        features: `name=level` for the format, e.g. transaction.version=1.
        users: user → password; clients must then log in by SASL PLAIN. The first one is the broker's own and super user.
        authorizer: everybody but the super user needs ACLs.
        detached: it outlives this process, and is stopped by `load(directory).stop()`.
        ports, cluster_id: for clients and the controller, and of the whole cluster, where this is one node of several (`brokers.py`).
        version: the release of Kafka; the old ones get a ZooKeeper of their own, on what is the controller's port elsewhere.
        """
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        port, controller_port = ports or free_ports(2)
        cluster = cls(name, directory, port, controller_port, dict(properties or {}), tuple(java_options))
        cluster.users, cluster.authorizer, cluster.detached, cluster.version = dict(users or {}), authorizer, detached, version
        if not detached:
            guard.watch(cluster.properties_file)
        zookeeper = needs_zookeeper(version)
        ports = (port, controller_port)
        write_server_properties(cluster.properties_file, ports, cluster.settings, cluster.users, authorizer=authorizer, zookeeper=zookeeper)
        if not zookeeper:
            format_storage(cluster.properties_file, cluster.jars, features, cluster_id)
        cluster.run()
        return cluster

    @classmethod
    def load(cls, directory: Path) -> SandboxCluster | None:
        """The cluster that was started in `directory`, running or not; None when there is none. Finds a process that went unrecorded."""
        directory = directory.resolve()
        path = directory / STATE_FILE
        if not path.exists():
            return None
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields["directory"], fields["java_options"] = directory, tuple(fields["java_options"])
        cluster = cls(**fields)
        if not cluster.running and (process := find_broker(cluster.properties_file)):
            cluster.pid, cluster.started = process.pid, process.create_time()
        return cluster

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def node(self) -> int:
        """Its node id."""
        return int(self.settings.get("node.id", "1"))

    @property
    def properties_file(self) -> Path:
        """Its server.properties; absolute."""
        return self.directory / PROPERTIES_FILE

    @property
    def jars(self) -> Path:
        """The directory with the jars of its release."""
        return resolve_jars("kafka", broker_jars(self.version))

    @property
    def running(self) -> bool:
        """Whether its process lives (paused counts)."""
        return self._process() is not None

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """librdkafka settings that reach it, as `user` (default: the super user) where it wants a login."""
        settings = {"bootstrap.servers": self.bootstrap}
        if self.users:
            name = user or next(iter(self.users))
            settings |= login_settings(name, self.users[name])
        return settings

    def answers(self) -> bool:
        """Whether a client learns from it that it takes part; without a listener that is open to all it only has to listen."""
        if not OPEN_LISTENER.search(self.settings.get("listeners", OPEN)):
            return listens(self.port)
        client = AdminClient({**self.client_settings(), "log_level": 0})
        try:
            return self.node in client.list_topics(timeout=ANSWER_SECONDS).brokers
        except KafkaException:
            return False

    def run(self) -> None:
        """Start the process on the data that is there; returns when it answers. SandboxFailed when it runs already or does not start."""
        if self.running:
            raise SandboxFailed(f"cluster {self.name} runs already, as process {self.pid}: stop it first")
        command = [java(), *self.java_options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", f"{self.jars}/*", MAIN_CLASS, str(self.properties_file)]
        # Recorded first: whatever interrupts the start, the process is found by what it runs.
        self.pid, self.started = 0, 0.0
        self._save()
        if not self.detached:
            guard.watch(self.properties_file)
        try:
            if needs_zookeeper(self.version):
                run_zookeeper(self.directory, self.controller_port, self.jars, detached=self.detached)
            self._launch(command)
        except BaseException:
            self._kill_found()
            raise

    def restart(self) -> None:
        """Stop if needed, then start again on the same ports and data."""
        self.stop()
        self.run()

    def stop(self) -> None:
        """Let it shut down; kill it when it takes too long. Nothing happens when it does not run."""
        process = self._process()
        if process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
                process.resume()
            if not self._ended(STOP_SECONDS):
                self.kill()
        stop_zookeeper(self.directory)

    def kill(self) -> None:
        """SIGKILL; returns when it is gone. Nothing happens when it does not run."""
        self._signal(signal.SIGKILL)
        if not self._ended(STOP_SECONDS):
            raise SandboxFailed(f"cluster {self.name}: process {self.pid} survives SIGKILL")

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers. SandboxFailed when it does not run."""
        self._signal(signal.SIGSTOP, needed=True)

    def resume(self) -> None:
        """SIGCONT. SandboxFailed when it does not run."""
        self._signal(signal.SIGCONT, needed=True)

    def __enter__(self) -> SandboxCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launch(self, command: Sequence[str]) -> None:
        with (self.directory / "server.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        _children[process.pid] = process
        self.pid = process.pid
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended at once: the wait below says why
            self.started = psutil.Process(process.pid).create_time()
        self._save()
        self._wait_until_it_answers(process)

    def _kill_found(self) -> None:
        """Kill what was launched, recorded or not."""
        stop_zookeeper(self.directory)
        if (process := find_broker(self.properties_file)) is not None:
            self.pid, self.started = process.pid, process.create_time()
            self.kill()

    def _ended(self, seconds: float) -> bool:
        """Wait for the process to end, as its parent or as a stranger."""
        child = _children.get(self.pid)
        try:
            if child is not None:
                child.wait(seconds)
                _children.pop(self.pid, None)
            elif (process := self._process()) is not None:
                process.wait(seconds)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            return False
        except psutil.NoSuchProcess:
            return True
        return True

    def _signal(self, number: int, *, needed: bool = False) -> None:
        process = self._process()
        if process is not None:
            process.send_signal(number)
        elif needed:
            raise SandboxFailed(f"cluster {self.name} does not run")

    def _process(self) -> psutil.Process | None:
        child = _children.get(self.pid)
        if child is not None and child.poll() is None:  # poll reaps it if it has ended: a zombie does not run
            return psutil.Process(child.pid)
        return recorded_broker(self.pid, self.started, self.properties_file)

    def _save(self) -> None:
        fields = {**asdict(self), "directory": str(self.directory)}
        scratch = self.directory / f"{STATE_FILE}.new"
        scratch.touch(mode=0o600)  # it may hold passwords
        scratch.write_text(json.dumps(fields), encoding="utf-8")
        scratch.replace(self.directory / STATE_FILE)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                _children.pop(process.pid, None)
                raise SandboxFailed(f"cluster {self.name} ended with code {process.returncode}; its log ends with:\n{self._log_tail()}")
            if listens(self.port) and self.answers():
                return
            time.sleep(POLL_SECONDS)
        raise SandboxFailed(f"cluster {self.name} did not answer within {START_SECONDS:.0f} s; its log ends with:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        text = (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])
