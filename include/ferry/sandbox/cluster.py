"""One-node KRaft clusters on 127.0.0.1: started, killed, paused, resumed, stopped.

Every cluster runs in its own session, so signals meant for the caller do not reach it, and is only ever signalled by a pid whose start time
still matches: a recycled pid is never hit.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ferry.errors import FerryError
from ferry.sandbox.jars import java, resolve_jars

# A broker is up in about five seconds; a loaded machine may need several times that.
START_SECONDS = 90.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.1
LOG_TAIL_LINES = 15
JAVA_OPTIONS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STATE_FILE = "cluster.json"
LISTENER_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
FIRST_PORT = 20_000
PORT_ATTEMPTS = 1_000

_given_out: set[int] = set()
# Children of this process: they must be waited for when they end, and may outlive it.
_children: dict[int, subprocess.Popen[bytes]] = {}
_ports_lock = threading.Lock()


class SandboxFailed(FerryError):
    """A sandbox cluster did not start."""


@dataclass
class SandboxCluster:
    """A running (or stopped) cluster; `settings` are its broker properties."""

    name: str
    directory: Path
    port: int
    controller_port: int
    settings: dict[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = JAVA_OPTIONS
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
    ) -> SandboxCluster:
        """Format and start a cluster with extra broker `properties`; returns when it answers. `features` as `name=level` for the format."""
        directory.mkdir(parents=True, exist_ok=True)
        port, controller_port = free_ports(2)
        cluster = cls(name, directory, port, controller_port, dict(properties or {}), tuple(java_options))
        cluster._write_properties()
        cluster._format(features)
        cluster.run()
        return cluster

    @classmethod
    def load(cls, directory: Path) -> SandboxCluster | None:
        """The cluster that was started in `directory`, running or not; None when there is none."""
        path = directory / STATE_FILE
        if not path.exists():
            return None
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields["directory"], fields["java_options"] = directory, tuple(fields["java_options"])
        return cls(**fields)

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether its process lives (paused counts)."""
        return self._process() is not None

    def run(self) -> None:
        """Start the process on the data that is there; returns when it answers."""
        command = [java(), *self.java_options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", f"{resolve_jars()}/*", "kafka.Kafka", str(self.directory / "server.properties")]
        with (self.directory / "server.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        _children[process.pid] = process
        self.pid, self.started = process.pid, psutil.Process(process.pid).create_time()
        self._save()
        self._wait_until_it_answers(process)

    def restart(self) -> None:
        """Stop if needed, then start again on the same ports and data."""
        self.stop()
        self.run()

    def stop(self) -> None:
        """Let it shut down; kill it when it takes too long."""
        process = self._process()
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
            process.resume()
        if not self._ended(STOP_SECONDS):
            self.kill()

    def kill(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)
        if not self._ended(STOP_SECONDS):
            raise SandboxFailed(f"cluster {self.name}: process {self.pid} survives SIGKILL")

    def _ended(self, seconds: float) -> bool:
        """Wait for the process to end, as its parent or as a stranger."""
        child = _children.get(self.pid)
        try:
            if child is not None:
                child.wait(seconds)
                del _children[self.pid]
            elif (process := self._process()) is not None:
                process.wait(seconds)
        except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
            return False
        except psutil.NoSuchProcess:
            return True
        return True

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def __enter__(self) -> SandboxCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _signal(self, number: int) -> None:
        process = self._process()
        if process is not None:
            process.send_signal(number)

    def _process(self) -> psutil.Process | None:
        try:
            process = psutil.Process(self.pid) if self.pid else None
            if process is None or process.create_time() != self.started or process.status() == psutil.STATUS_ZOMBIE:
                return None
        except psutil.NoSuchProcess:
            return None
        return process

    def _save(self) -> None:
        fields = {**asdict(self), "directory": str(self.directory)}
        scratch = self.directory / f"{STATE_FILE}.new"
        scratch.write_text(json.dumps(fields), encoding="utf-8")
        scratch.replace(self.directory / STATE_FILE)

    def _write_properties(self) -> None:
        address = f"127.0.0.1:{self.port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": LISTENER_PROTOCOLS,
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            # One broker: nothing can be replicated; few partitions start quickly.
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.segment.delete.delay.ms": "1000",
            **{key: value.replace("{port}", str(self.port)) for key, value in self.settings.items()},
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.directory / "server.properties").write_text(text, encoding="latin-1")

    def _format(self, features: Sequence[str]) -> None:
        identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{resolve_jars()}/*", "kafka.tools.StorageTool", "format"]
        command += [f"--cluster-id={identity}", "--config", str(self.directory / "server.properties")]  # an id may begin with a dash
        for feature in features:
            command += ["--feature", feature]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxFailed(f"cluster {self.name}: formatting failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise SandboxFailed(f"cluster {self.name} ended with code {process.returncode}; its log ends with:\n{self._log_tail()}")
            if _listens(self.port) and self._answers():
                return
            time.sleep(POLL_SECONDS)
        self.kill()
        raise SandboxFailed(f"cluster {self.name} did not answer within {START_SECONDS:.0f} s; its log ends with:\n{self._log_tail()}")

    def _answers(self) -> bool:
        """Metadata over the plain listener; a cluster without one only has to listen."""
        if "listeners" in self.settings:
            return True
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    def _log_tail(self) -> str:
        text = (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listens on now, below the range that the system hands out to clients."""
    found: list[int] = []
    with _ports_lock:
        for _ in range(PORT_ATTEMPTS):
            port = FIRST_PORT + secrets.randbelow(max(1, _ephemeral_start() - FIRST_PORT))
            if port not in _given_out and _can_bind(port):
                _given_out.add(port)
                found.append(port)
            if len(found) == count:
                return found
    raise SandboxFailed("no free ports on 127.0.0.1")


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 32_768


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
