"""Brokers of a process that dies must not outlive it: one small guard process per process waits for that.

The guard reads a pipe whose writing end only its parent holds, and from which it learns the server.properties of each broker *before*
that broker starts. However the parent ends, by SIGKILL or a crash in native code too, the pipe closes and the guard (`guard_process.py`)
kills the brokers that still run. A parent-death signal would not do: Linux sends it when the thread that started the process ends, and
clusters are started in thread pools.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

# At a normal exit there is little to kill; the guard must not hold the interpreter up.
EXIT_SECONDS = 10.0
# Its last line says that the parent ends in order.
ORDERLY = b"\n"
ROOT = Path(__file__).parents[2]


class Guard:
    """This process's guard; started with the first broker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._of_the_parent: subprocess.Popen[bytes] | None = None
        self._watched: set[Path] = set()

    def watch(self, properties: Path) -> None:
        """From now on kill the broker of that server.properties (absolute) when this process ends."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = _start()
                self._tell(*self._watched)
            if properties not in self._watched:
                self._watched.add(properties)
                self._tell(properties)

    def release(self) -> None:
        """Let it kill what still runs, and end."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
                self._process.communicate(ORDERLY, timeout=EXIT_SECONDS)

    def forget(self) -> None:
        """In a forked child: the parent's guard must not wait for this process too."""
        self._of_the_parent, self._process = self._process, None
        self._lock, self._watched = threading.Lock(), set()
        if self._of_the_parent is not None and self._of_the_parent.stdin is not None:
            self._of_the_parent.stdin.close()

    def _tell(self, *paths: Path) -> None:
        pipe = self._process.stdin if self._process is not None else None
        if pipe is not None:
            pipe.write(b"".join(os.fsencode(path) + b"\n" for path in paths))
            pipe.flush()


def _start() -> subprocess.Popen[bytes]:
    # A session of its own: ctrl-C is for the parent, and the guard acts when that has ended.
    command = [sys.executable, "-m", "tools.kafka.guard_process"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, cwd=ROOT)


guard = Guard()
atexit.register(guard.release)
os.register_at_fork(after_in_child=guard.forget)
