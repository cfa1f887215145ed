"""The api-server's side of the reader processes: one started when it is needed, kept for the next read, ended when it takes too long.

Not one thread's or read's trouble is another's: each process carries out one read at a time. A process that did not answer in time, or
died, is replaced. Idle ones end after a while, so that a page that nobody looks at costs nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ferry.page.frames import ReadRequest, decode_answer, receive, request_frame
from ferry.page.problem import Problem, ReaderDied, ReadTimedOut, problem_of

log = logging.getLogger(__name__)

# A page that is looked at reads every 15 s; starting a process costs a second of CPU time.
IDLE_SECONDS = 60.0
# Ended by the kernel at once: nothing of a reader needs to be tidied up.
GONE_SECONDS = 5.0
# Reads are many small waits, so more processes than cores are of use; each holds some 80 MB.
READERS = 4
# After so many reads a process is replaced: whatever a client library leaks is bounded.
READS_A_PROCESS = 500
STDERR = 2

Answer = tuple[dict[str, Any] | None, Problem | None, int]


class Reader:
    """One process. Not for several threads at once."""

    def __init__(self) -> None:
        self._answers, answers = os.pipe()
        # No argument and no file holds a setting: they come over stdin.
        command = [sys.executable, "-P", "-m", "ferry.page.reader_process", str(answers)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=STDERR, env=environment, pass_fds=[answers], start_new_session=True
            )
        except OSError:
            os.close(self._answers)
            raise
        finally:
            os.close(answers)
        self.reads = 0
        self.idle_since = time.monotonic()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def read(self, request: ReadRequest, limit_seconds: float) -> Answer:
        """One read: data, or why there is none, and how many bytes it took. ReadTimedOut and ReaderDied; the process is gone then."""
        self.reads += 1
        deadline = time.monotonic() + limit_seconds
        what = f"reading {request.name} of {request.flow.name}"
        assert self._process.stdin is not None  # noqa: S101 - made with pipes
        try:
            self._process.stdin.write(request_frame(request))
            self._process.stdin.flush()
            body = receive(self._answers, deadline)
            return (*decode_answer(body), len(body))
        except TimeoutError:
            self.end()
            raise ReadTimedOut(f"{what} did not end within {limit_seconds:.0f} s") from None
        except ValueError as problem:  # too large, or no JSON
            self.end()
            raise ReaderDied(f"{what}: what its process sent cannot be taken: {problem}") from problem
        except (EOFError, BrokenPipeError) as problem:
            code = self._gone()
            self.end()
            raise ReaderDied(f"{what}: its process ended {_ending(code)}") from problem
        finally:
            self.idle_since = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it may be asked again."""
        return self._process.poll() is None

    def end(self) -> None:
        """End it now; harmless when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._gone()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1

    def _gone(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(GONE_SECONDS)
        self._process.kill()
        return self._process.wait()


class Readers:
    """A pool of at most `most` processes; `read` may be called from as many threads."""

    def __init__(self, most: int = READERS, idle_seconds: float = IDLE_SECONDS, start: Callable[[], Reader] = Reader) -> None:
        self.most = most
        self._idle_seconds = idle_seconds
        self._start = start
        self._idle: list[Reader] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def read(self, request: ReadRequest, limit_seconds: float) -> Answer:
        """The data of one read, or why there is none, and its size in bytes. Never raises."""
        try:
            reader = self._take()
        except OSError as problem:
            return None, problem_of(ReaderDied(f"a reader process cannot be started: {problem.strerror}")), 0
        try:
            return reader.read(request, limit_seconds)
        except (ReadTimedOut, ReaderDied) as problem:
            log.warning("%s", problem)
            return None, problem_of(problem), 0
        finally:
            self._give_back(reader)

    def close(self) -> None:
        """End the idle ones; those at work end when they are given back to nobody, or with this process."""
        with self._lock:
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.end()

    def _take(self) -> Reader:
        with self._lock:
            while self._idle:
                reader = self._idle.pop()
                if reader.alive:
                    return reader
                reader.end()
        return self._start()

    def _give_back(self, reader: Reader) -> None:
        if not reader.alive or reader.reads >= READS_A_PROCESS:
            reader.end()
            return
        with self._lock:
            self._idle.append(reader)
            if self._timer is None:
                self._plan_tidying()

    def _plan_tidying(self) -> None:
        self._timer = threading.Timer(self._idle_seconds, self._tidy)
        self._timer.daemon = True
        self._timer.start()

    def _tidy(self) -> None:
        with self._lock:
            limit = time.monotonic() - self._idle_seconds
            old = [reader for reader in self._idle if reader.idle_since <= limit]
            self._idle = [reader for reader in self._idle if reader.idle_since > limit]
            self._timer = None
            if self._idle:
                self._plan_tidying()
        for reader in old:
            reader.end()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-code).name}"
    return f"with code {code}"
