"""One measured command of `ferry`, as a user types it: wall time, CPU of its processes and of both brokers, memory by kind of process."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.ferry_side import HERE
from benchmarks.process_tree import ProcessTree
from benchmarks.scale.landscape import Landscape

POLL_SECONDS = 0.02
# A first copy of 10,000 partitions on a busy machine takes minutes; this hangs.
STEP_SECONDS = 1800.0


@dataclass(frozen=True)
class Step:
    """What a command cost. `limit`: wall seconds that it must stay under on two quiet cores (None: none is set)."""

    name: str
    seconds: float
    cpu_seconds: float
    broker_cpu_seconds: float
    peaks_mib: dict[str, float]
    peak_mib: float
    said: str
    limit: float | None = None

    @property
    def met(self) -> bool:
        """Whether the limit was kept."""
        return self.limit is None or self.seconds < self.limit


class StepFailed(RuntimeError):
    """A command that did not do what it was to do."""


def properties(found: Landscape) -> Path:
    """The mm2.properties of the flow: nothing tuned, and groups are synced."""
    path = found.directory / "scale.properties"
    lines = (
        "clusters = A, B",
        f"A.bootstrap.servers = {found.source.bootstrap}",
        f"B.bootstrap.servers = {found.target.bootstrap}",
        "A->B.enabled = true",
        "A->B.topics = scale-.*",
        "sync.group.offsets.enabled = true",
        "replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "heartbeats.topic.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        "ferry.internal.topics.replication.factor = 1",
    )
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return path


def measured(found: Landscape, name: str, *arguments: str, limit: float | None = None) -> tuple[Step, dict[str, Any]]:
    """Run `ferry` with `arguments` (which make it print JSON); the step and the document. StepFailed when it does not end with 0."""
    log = found.directory / f"{name.replace(' ', '-')}.log"
    out = log.with_suffix(".json")
    brokers = [psutil.Process(cluster.pid) for cluster in (found.source, found.target)]
    before = sum(map(_cpu, brokers))
    # stdout is the document; the tree's own output goes to the log.
    command = ["/bin/sh", "-c", 'out="$1"; shift; exec "$@" >"$out"', "sh", str(out), str(HERE), *arguments, "--json"]
    tree = ProcessTree(command, log)
    deadline = time.monotonic() + STEP_SECONDS
    try:
        while tree.running:
            if time.monotonic() > deadline:
                raise StepFailed(f"{name}: not done after {STEP_SECONDS:.0f} s; see {log}")
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - tree.started
    finally:
        tree.finish()
    if tree.exit_code != 0:
        raise StepFailed(f"{name}: ended with {tree.exit_code}; see {log}")
    cost = tree.cost()
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    step = Step(
        name,
        seconds,
        cost.cpu_seconds,
        sum(map(_cpu, brokers)) - before,
        {kind: size / 2**20 for kind, size in cost.peaks.items()},
        cost.peak_bytes / 2**20,
        "",
        limit,
    )
    return step, document


def disk_bytes(directory: Path) -> int:
    """What a directory takes on the disk (sparse files count for what they hold)."""
    return int(subprocess.run(["du", "-s", "--block-size=1", str(directory)], capture_output=True, text=True, check=True).stdout.split()[0])


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
