"""A worker's memory stays within `ferry.memory.mb` whatever the records are, and nothing of them is written to disk."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from tests.conftest import ClusterFactory, ConfigFile, TopicFactory
from tools.kafka import SandboxCluster

from ferry.config import load_config

pytestmark = [pytest.mark.spark, pytest.mark.brokers]

MEBIBYTE = 1 << 20
MEMORY_MB = 512
# The process itself: Python, Spark's worker, Ferry, the codecs (docs/limits.md).
ITSELF_MB = 100
RECORD_BYTES = 64 * MEBIBYTE
LARGE = {"max.message.bytes": str(RECORD_BYTES + MEBIBYTE)}
PARTITIONS = 220
# Requests of 64 MiB need a few times that.
BROKER_JAVA = ("-Xms256m", "-Xmx900m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
RUN_SECONDS = 240


class Watched:
    """The processes of a command: by process id, the most memory that it ever had and the bytes that it caused to be written to disk."""

    def __init__(self, root: int, scratch: Path) -> None:
        self._root, self._scratch = root, scratch
        self.scratch = 0
        self.memory: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.workers: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            with suppress(psutil.NoSuchProcess):
                root = psutil.Process(self._root)
                for process in (root, *root.children(recursive=True)):
                    with suppress(psutil.Error, OSError):  # its user may not look at a process that is just ending
                        self._look(process)
            with suppress(OSError):  # Spark deletes its directories meanwhile
                files = [path for path in self._scratch.rglob("*") if path.is_file()]
                self.scratch = max(self.scratch, sum(path.stat().st_size for path in files))

    def _look(self, process: psutil.Process) -> None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        highest = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
        self.memory[process.pid] = max(highest, self.memory.get(process.pid, 0))
        self.written[process.pid] = process.io_counters().write_bytes
        if any("worker_daemon" in part for part in process.cmdline()):
            self.workers.add(process.pid)


def produce(cluster: SandboxCluster, topic: str, values: list[bytes], **settings: object) -> None:
    largest = max(map(len, values))
    options = {"message.max.bytes": max(1_000_000, largest + MEBIBYTE), "queue.buffering.max.kbytes": 2_000_000, "linger.ms": 0}
    producer = Producer({**cluster.client_settings(), **options, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number if len(values) == PARTITIONS else 0)
        producer.poll(0)
    assert producer.flush(120) == 0


@pytest.mark.long
def test_large_records_many_partitions_and_a_decompression_bomb(
    cluster_factory: ClusterFactory, topic_factory: TopicFactory, config_file: ConfigFile, tmp_path: Path
) -> None:
    source = cluster_factory(java_options=BROKER_JAVA)
    target = cluster_factory(java_options=BROKER_JAVA)
    prefix = secrets.token_hex(4)
    large, stamped, many, bomb = (f"{prefix}-{name}" for name in ("large", "stamped", "many", "bomb"))
    topic_factory(source, config=LARGE, name=large)
    topic_factory(source, config=LARGE | {"message.timestamp.type": "LogAppendTime"}, name=stamped)
    topic_factory(source, partitions=PARTITIONS, name=many)
    topic_factory(source, config={"message.timestamp.type": "LogAppendTime"}, name=bomb)
    block = os.urandom(RECORD_BYTES)
    produce(source, large, [block] * 4)
    produce(source, stamped, [block[: RECORD_BYTES - number] for number in range(2)], **{"compression.type": "zstd"})
    produce(source, many, [block[number : number + 450_000] for number in range(PARTITIONS)])
    produce(source, bomb, [b"before", bytes(200 * MEBIBYTE)], **{"compression.type": "zstd"})
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    lines = (f"A->B.topics = {prefix}.*", f"ferry.memory.mb = {MEMORY_MB}", "ferry.lanes = 4", "emit.heartbeats.enabled = false")
    config = config_file(*lines, source=source, target=target)
    flow = load_config(config).flows[0].name
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(scratch), "TMPDIR": str(scratch)}
    command = [str(Path(sys.executable).with_name("ferry")), "run", str(config), "--flow", flow, "--master", "local[1]", "--json"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process,
        Watched(process.pid, scratch) as watched,
    ):
        output, errors = process.communicate(timeout=RUN_SECONDS)
    report = json.loads(output)
    (failed,) = report["failed"]
    assert (failed["topic"], failed["error"], process.returncode) == (bomb, "BatchTooLarge", 5), errors
    assert "ferry.memory.mb" in failed["problem"]
    copied = {part["topic"]: 0 for part in report["partitions"]}
    for part in report["partitions"]:
        copied[part["topic"]] += part["records"]
    assert copied == {large: 4, stamped: 2, many: PARTITIONS, bomb: 1}
    assert watched.workers
    most = max(watched.memory[worker] for worker in watched.workers)
    assert most < (MEMORY_MB + ITSELF_MB) * MEBIBYTE, f"{most / MEBIBYTE:.0f} MiB"
    # The records go through memory only: what Spark writes is its own few files.
    assert max(watched.written[worker] for worker in watched.workers) < MEBIBYTE
    assert watched.scratch < 16 * MEBIBYTE
