"""However a process ends, its brokers end with it; detached ones stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import until
from tools.kafka import SandboxCluster

pytestmark = pytest.mark.brokers

START = """
import os, signal, sys
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from tools.kafka import SandboxCluster
with ThreadPoolExecutor(1) as pool:
    cluster = pool.submit(SandboxCluster.start, Path(sys.argv[1]), "c", detached=sys.argv[2] == "detached").result()
print(cluster.pid, flush=True)
# Its thread has ended, and the broker still runs.
assert cluster.running
if sys.argv[3] == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif sys.argv[3] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[3] == "fork":
    # A child that lives on does not keep the parent's brokers alive.
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        signal.pause()
    os.kill(os.getpid(), signal.SIGKILL)
"""
# The guard needs a moment to look at the machine's processes.
SECONDS = 30.0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Stopped at the end, whatever the test found."""
    yield tmp_path
    cluster = SandboxCluster.load(tmp_path)
    if cluster is not None:
        cluster.stop()


def start(directory: Path, kind: str, end: str) -> tuple[int, list[str]]:
    process = subprocess.Popen([sys.executable, "-c", START, str(directory), kind, end], stdout=subprocess.PIPE, text=True)
    code = process.wait(120)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2 if end == "fork" else 1)]
    process.stdout.close()
    return code, lines


@pytest.mark.parametrize(("end", "code"), [("normal", 0), ("crash", -signal.SIGSEGV), ("kill", -signal.SIGKILL), ("fork", -signal.SIGKILL)])
def test_a_broker_ends_with_its_process(directory: Path, end: str, code: int) -> None:
    ended, lines = start(directory, "bound", end)
    assert (ended, int(lines[0]) > 0) == (code, True)
    try:
        cluster = SandboxCluster.load(directory)
        assert cluster is not None
        until(lambda: not cluster.running, lambda: "the broker outlives its process")
    finally:
        for child in lines[1:]:
            os.kill(int(child), signal.SIGKILL)


def test_a_detached_broker_stays(directory: Path) -> None:
    ended, lines = start(directory, "detached", "normal")
    assert ended == 0
    cluster = SandboxCluster.load(directory)
    assert cluster is not None
    assert (cluster.pid, cluster.running, cluster.answers()) == (int(lines[0]), True, True)
