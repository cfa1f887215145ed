"""Two clusters, each behind a proxy, the target's log on a disk that can be full, and the flow between them.

Only Ferry and the producers come by the proxies; whatever judges asks the brokers themselves. The disk is a tmpfs whose size is changed
while it is mounted; without the right to mount it is the directory itself, and the fault is left out.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.soak.topics import COMPACTED, COMPACTED_CONFIG, FIRST
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties

from ferry.sandbox.broker_process import SandboxFailed
from ferry.sandbox.ports import free_ports

FLOW = "A->B"
CONFIG = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = soak-.*
A->B.groups = soak-.*
replication.factor = 1
ferry.internal.topics.replication.factor = 1
A->B.tasks.max = 2
A->B.ferry.lanes = 3
# Many short transactions: more places to strike at.
A->B.ferry.transaction.mb = 1
A->B.ferry.transaction.seconds = 2
A->B.sync.topic.configs.interval.seconds = 0
A->B.sync.topic.acls.interval.seconds = 0
A->B.emit.checkpoints.interval.seconds = 0
A->B.sync.group.offsets.enabled = true
A->B.sync.group.offsets.interval.seconds = 0
# Runs that follow copy a new topic at once.
A->B.refresh.topics.interval.seconds = 5
A->B.ferry.sync.acls.remove = true
"""
BROKER = {
    "log.retention.ms": "-1",
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.backoff.ms": "1000",
    # The cleaner's default buffer is 128 MiB.
    "log.cleaner.dedupe.buffer.size": "16777216",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}
DISK_MIB = 3_072
ANSWER_SECONDS = 60.0


class Disk:
    """A file system of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(path)]
        self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """No more than a few KiB can be written from now on."""
        used = int(subprocess.run(["du", "-sk", str(self.path)], capture_output=True, text=True, check=False).stdout.split()[0])
        for spare in (64, 1_024, 4_096, 16_384):  # it grows while it is measured
            if self._resize(f"{used + spare}k"):
                return

    def relieve(self) -> None:
        """There is room again."""
        self._resize(f"{DISK_MIB}m")

    def close(self) -> None:
        """Give it back."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.path)]
        return self.mounted and subprocess.run(command, capture_output=True, check=False).returncode == 0


class Stage:
    """A context manager; afterwards nothing runs, and nothing is mounted."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._running = ExitStack()
        self._directory, self._seed = directory, seed
        self.config = directory / "mm2.properties"
        self.broker_lock = threading.Lock()

    def __enter__(self) -> Stage:
        with contextlib.ExitStack() as starting:
            starting.callback(self._running.close)
            self.disk = Disk(self._directory / "disk")
            self._running.callback(self.disk.close)
            ports = free_ports(4)
            with ThreadPoolExecutor(2) as pool:
                source = pool.submit(self._start, "A", ports[:2], {})
                target = pool.submit(self._start, "B", ports[2:], {"log.dirs": str(self.disk.path / "data")})
                for cluster in (source, target):
                    if cluster.exception() is None:
                        self._running.enter_context(cluster.result())
            self.source, self.target = source.result(), target.result()
            self.source_proxy = self._running.enter_context(BrokerProxy(ports[0], ports[1], self._seed))
            self.target_proxy = self._running.enter_context(BrokerProxy(ports[2], ports[3], self._seed + 1))
            self._set_out()
            starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, name: str, ports: list[int], extra: dict[str, str]) -> SandboxCluster:
        properties = {**BROKER, **proxied_properties(*ports), **extra}
        return SandboxCluster.start(self._directory / name, name, properties=properties, authorizer=True)

    def _set_out(self) -> None:
        for cluster in (self.source, self.target):
            await_answer(cluster)
        text = CONFIG.format(source=self.source_proxy.bootstrap, target=self.target_proxy.bootstrap)
        self.config.write_text(text, encoding="latin-1")
        create_topics(self.source, {name: (width, COMPACTED_CONFIG if name == COMPACTED else {}) for name, width in FIRST.items()})


def create_topics(cluster: SandboxCluster, topics: dict[str, tuple[int, dict[str, str]]]) -> None:
    """By name: partitions and config."""
    client = AdminClient({**cluster.client_settings(), "log_level": 0})
    for future in client.create_topics([NewTopic(name, width, 1, config=config) for name, (width, config) in topics.items()]).values():
        future.result(ANSWER_SECONDS)


def run_again(cluster: SandboxCluster) -> None:
    """Start a broker that was killed; once more where a crowded machine lets it start too slowly."""
    try:
        cluster.run()
    except SandboxFailed:
        cluster.run()
    await_answer(cluster)


def await_answer(cluster: SandboxCluster) -> None:
    """A cluster with listeners of its own is taken for started once it listens; TimeoutError when no metadata come."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):
            client = AdminClient({**cluster.client_settings(), "log_level": 0})
            if client.list_topics(timeout=5).brokers:
                return
        time.sleep(0.2)
    raise TimeoutError(f"cluster {cluster.name} does not answer")
