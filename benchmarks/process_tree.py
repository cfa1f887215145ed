"""What a process and all its descendants cost: CPU seconds and memory.

A thread samples the tree; a process's last sample stays after it ended. What a process did since its last sample is lost to sampling,
but not to `wait4`, which adds up every descendant that was waited for. Each sees what the other misses (`wait4` misses processes nobody
waited for, and knows nothing before the end), so the larger number counts.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# Walking the tree costs about a millisecond of the same cores that are measured.
SAMPLE_SECONDS = 0.1
# How a Spark Python worker is recognised: `python -m ferry.spark.worker_daemon` and the workers it forks.
PYTHON_WORKER = "ferry.spark.worker_daemon"
COPY_JOB = "copy_ranges.py"
# A copier that does not end by then gets SIGKILL; MM2 leaves its groups within a few seconds.
END_SECONDS = 40.0


@dataclass(frozen=True)
class Cost:
    """CPU seconds (user and system) of all processes together; peak resident bytes of the tree, and of its largest Spark Python worker.

    `peaks`: peak resident bytes of the largest process of each kind (see `kind_of`).
    """

    cpu_seconds: float
    peak_bytes: int
    worker_peak_bytes: int
    peaks: Mapping[str, int] = field(default_factory=dict)


def kind_of(command: list[str]) -> str:
    """What a process of a run is: `worker` (Spark's Python worker), `driver` (the copy job), `java` (Spark's JVM) or `ferry`."""
    if PYTHON_WORKER in command:
        return "worker"
    if command and Path(command[0]).name == "java":
        return "java"
    return "driver" if any(part.endswith(COPY_JOB) for part in command) else "ferry"


class ProcessTree:
    """Starts a command in a session of its own, output to a file, and watches it and its descendants until `finish`."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        with log.open("wb") as output:
            self.started = time.perf_counter()
            self._process = subprocess.Popen(  # reaped by wait4 below, not by Popen
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )
        self._root = psutil.Process(self._process.pid)
        self._cpu: dict[tuple[int, float], float] = {}
        self._peak = 0
        self._peaks: dict[str, int] = {}
        self._waited_cpu = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample_on, daemon=True)
        self._sampler.start()

    @property
    def running(self) -> bool:
        """Whether the process itself (not its descendants) still runs. Sets `exit_code` when it does not."""
        if self._process.returncode is None:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._ended(status, usage.ru_utime + usage.ru_stime)
        return self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        """As subprocess has it: negative for a signal; None while it runs."""
        return self._process.returncode

    def cost(self) -> Cost:
        """What it cost so far."""
        self._sample()
        with self._lock:
            cpu_seconds = max(sum(self._cpu.values()), self._waited_cpu)
            return Cost(cpu_seconds, self._peak, self._peaks.get("worker", 0), dict(self._peaks))

    def finish(self) -> None:
        """End it if it runs: SIGTERM, after END_SECONDS SIGKILL to whatever is left of the tree."""
        left = self._living()
        if self.running:
            self._process.terminate()
            deadline = time.monotonic() + END_SECONDS
            while self.running and time.monotonic() < deadline:
                time.sleep(SAMPLE_SECONDS)
        for process in [*left, *self._living()]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        while self.running:
            time.sleep(SAMPLE_SECONDS)
        self._over.set()
        self._sampler.join()

    def _ended(self, status: int, cpu_seconds: float) -> None:
        self._process.returncode = os.waitstatus_to_exitcode(status)
        with self._lock:
            self._waited_cpu = cpu_seconds

    def _sample_on(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        total = 0
        for process in self._living():
            try:
                with process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info().rss
                    kind = kind_of(process.cmdline())
            except psutil.Error:
                continue
            total += memory
            with self._lock:
                self._cpu[process.pid, process.create_time()] = times.user + times.system
                self._peaks[kind] = max(self._peaks.get(kind, 0), memory)
        with self._lock:
            self._peak = max(self._peak, total)

    def _living(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
