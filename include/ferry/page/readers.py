"""The api-server's side of the reader processes: starts one when it is needed, keeps it for the next read, and ends it.

Each process does one read at a time, so a read that fails harms no other. A process that does not answer in time, or dies, is replaced.
Idle processes end after a while, so a page that nobody looks at costs nothing. The routes of the page ask `PageService`.
"""

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ferry.config import Flow
from ferry.errors import FerryError
from ferry.page.overview import overview_from
from ferry.page.problem import Problem, ReaderDied, ReadTimedOut, problem_of
from ferry.page.reads import READS, ReadName, ReadRequest, decode_answer, receive
from ferry.page.snapshots import Outcome, ReadKey, Snapshots

log = logging.getLogger(__name__)

# An open page reads every 15 s; starting a process costs a second of CPU time.
IDLE_SECONDS = 60.0
# The kernel ends a killed process at once; a reader has nothing to clean up.
GONE_SECONDS = 5.0
# A read mostly waits, so more processes than cores help; each takes some 80 MB.
READERS = 4
# A process is replaced after this many reads, so a leak of a client library stays bounded.
READS_A_PROCESS = 500
STDERR = 2

Answer = tuple[dict[str, Any] | None, Problem | None, int]


class Reader:
    """One process. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._answers, answers = os.pipe()
        # Settings come over stdin: no argument and no file holds one.
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

    def read(self, request: ReadRequest, limit_seconds: float) -> Answer:
        """One read: its data, or why there is none, and its size in bytes. After ReadTimedOut and ReaderDied the process is gone."""
        self.reads += 1
        deadline = time.monotonic() + limit_seconds
        what = f"reading {request.name} of {request.flow.name}"
        assert self._process.stdin is not None  # noqa: S101 - made with pipes
        try:
            self._process.stdin.write(pickle.dumps(request))
            self._process.stdin.flush()
            body = receive(self._answers, deadline)
            return (*decode_answer(body), len(body))
        except TimeoutError:
            self.end()
            raise ReadTimedOut(f"{what} did not end within {limit_seconds:.0f} s") from None
        except ValueError as problem:  # too large, or no JSON
            self.end()
            raise ReaderDied(f"{what}: its process sent an answer that cannot be used: {problem}") from problem
        except (EOFError, BrokenPipeError) as problem:
            code = self._gone()
            self.end()
            raise ReaderDied(f"{what}: its process ended {_ending(code)}") from problem
        finally:
            self.idle_since = time.monotonic()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process, if it runs."""
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
    """A pool of processes: as many as threads call `read` at the same time."""

    def __init__(self) -> None:
        self._idle: list[Reader] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def read(self, request: ReadRequest, limit_seconds: float) -> Answer:
        """One read: its data, or why there is none, and its size in bytes. Never raises."""
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

    def _take(self) -> Reader:
        with self._lock:
            while self._idle:
                reader = self._idle.pop()
                if reader.alive:
                    return reader
                reader.end()
        return Reader()

    def _give_back(self, reader: Reader) -> None:
        if not reader.alive or reader.reads >= READS_A_PROCESS:
            reader.end()
            return
        with self._lock:
            self._idle.append(reader)
            if self._timer is None:
                self._end_idle_later()

    def _end_idle_later(self) -> None:
        self._timer = threading.Timer(IDLE_SECONDS, self._end_idle)
        self._timer.daemon = True
        self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            limit = time.monotonic() - IDLE_SECONDS
            old = [reader for reader in self._idle if reader.idle_since <= limit]
            self._idle = [reader for reader in self._idle if reader.idle_since > limit]
            self._timer = None
            if self._idle:
                self._end_idle_later()
        for reader in old:
            reader.end()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-code).name}"
    return f"with code {code}"


class PageService:
    """Snapshots of flows. Safe for threads; starts nothing before the first call.

    `resolve` gives a flow by name, with its logins. A thread of the cache calls it; it may raise FerryError.
    """

    def __init__(self, resolve: Callable[[str], Flow]) -> None:
        self._resolve = resolve
        self._readers = Readers()
        self._snapshots = Snapshots(READERS)

    def look(self, flow: str, name: ReadName, argument: str = "", *, again: bool = False) -> Outcome:
        """What is known now, and the read that runs, if one does. `again`: read it even if it is fresh, or has just failed."""
        key, fresh_seconds = ReadKey(flow, name.value, argument), READS[name].fresh_seconds
        return self._snapshots.get(key, lambda: self._read(flow, name, argument), fresh_seconds, again=again)

    def _read(self, flow: str, name: ReadName, argument: str) -> tuple[Any, Problem | None, int]:
        try:
            request = ReadRequest(name, self._resolve(flow), argument)
        except FerryError as problem:
            return None, problem_of(problem), 0
        data, problem_found, size = self._readers.read(request, READS[name].limit_seconds)
        return overview_from(data) if data is not None and name is ReadName.OVERVIEW else data, problem_found, size
