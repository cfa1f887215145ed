"""A cache of the last read data of every flow. It answers at once; data that is no longer fresh is read again in the background.

After a failed read the last good data stays, with its time and the problem. A flow whose reads fail is read less and less often, and takes
at most half of the readers, so a dead cluster blocks no other flow. When one read reaches the clusters again, all reads of the flow that
did not reach them are done again at once. The cache is bounded: the entry that was unused for the longest time goes first.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ferry.page.problem import Problem, TooManyReads, problem_of

T = TypeVar("T")

log = logging.getLogger(__name__)

# The pause after a failed read: it doubles with each failure, up to LONGEST_PAUSE_SECONDS.
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 120.0
# A read is repeated after four times the time that it took. So reading takes at most a fifth of the time.
REST_FACTOR = 4.0
# One flow must leave readers for the others.
READS_A_FLOW = 2
# At most this many reads of single topics and groups of a flow may wait: a person looks at one at a time.
WAITING_A_FLOW = 20
# All data as JSON; in memory it is several times as large. 10,000 partitions are 2 MB.
KEPT_BYTES = 32 << 20
KEPT = 400


@dataclass(frozen=True)
class ReadKey:
    """The key of a read. Each `flow` has its share of the readers."""

    flow: str
    name: str
    argument: str = ""


@dataclass(frozen=True)
class Snapshot(Generic[T]):
    """`read_at`: seconds since the epoch, None: never. `problem`: why the last read failed, None: it did not."""

    data: T | None = None
    read_at: float | None = None
    problem: Problem | None = None
    refreshing: bool = False

    def age(self, now: float) -> float | None:
        return None if self.read_at is None else max(0.0, now - self.read_at)


NEVER_READ: Snapshot[Any] = Snapshot()
Work = Callable[[], tuple[Any, Problem | None, int]]
Outcome = tuple[Snapshot[Any], Future[Snapshot[Any]] | None]


@dataclass
class _Job:
    key: ReadKey
    work: Work
    fresh_seconds: float
    done: Future[Snapshot[Any]] = field(default_factory=Future)


@dataclass
class _Entry:
    seen: Snapshot[Any] = NEVER_READ
    next_read: float = 0.0  # time.monotonic
    pause: float = 0.0
    size: int = 0
    job: _Job | None = None
    unanswered: _Job | None = None  # the last read, if no cluster answered it

    def snapshot(self) -> Snapshot[Any]:
        return replace(self.seen, refreshing=self.job is not None)


class Snapshots:
    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._entries: OrderedDict[ReadKey, _Entry] = OrderedDict()
        self._waiting: list[_Job] = []
        self._running: Counter[str] = Counter()
        self._troubled: set[str] = set()
        self._changed = threading.Condition()
        self._started = 0
        self._idle = 0

    def get(self, key: ReadKey, work: Work, fresh_seconds: float, *, again: bool = False) -> Outcome:
        """What is known of `key` now, and the read that runs, if one does. `again`: read it even if it is fresh, or has just failed.

        `work` returns data, or why there is none, and a size in bytes. A thread of this cache calls it, never twice at a time for a key.
        """
        with self._changed:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if entry.job is None and (again or time.monotonic() >= entry.next_read):
                if self._crowded(key):
                    if entry.seen == NEVER_READ:
                        del self._entries[key]
                    return replace(entry.snapshot(), problem=problem_of(TooManyReads(f"{key.flow}: {WAITING_A_FLOW} reads wait"))), None
                self._begin(entry, _Job(key, work, fresh_seconds))
            self._evict()
            return entry.snapshot(), None if entry.job is None else entry.job.done

    def _begin(self, entry: _Entry, job: _Job) -> None:
        entry.job = job
        job.done.set_running_or_notify_cancel()  # a caller that gives up must not cancel it for the others
        self._waiting.append(job)
        if self._idle < len(self._waiting) and self._started < self._threads:
            self._started += 1
            threading.Thread(target=self._work, name=f"ferry-page-{self._started}", daemon=True).start()
        self._changed.notify()

    def _crowded(self, key: ReadKey) -> bool:
        return bool(key.argument) and sum(job.key.flow == key.flow for job in self._waiting if job.key.argument) >= WAITING_A_FLOW

    def _evict(self) -> None:
        """Drop entries that nobody waits for; the newest stays, whatever its size."""
        idle = [key for key, entry in self._entries.items() if entry.job is None]
        total = sum(entry.size for entry in self._entries.values())
        while len(idle) > 1 and (total > KEPT_BYTES or len(self._entries) > KEPT):
            total -= self._entries.pop(idle.pop(0)).size

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while (job := self._next()) is None:
                    self._changed.wait()
                self._idle -= 1
            began = time.monotonic()
            try:
                outcome = job.work()
            except Exception as error:  # the cache has no thread to lose
                log.exception("reading %s of %s", job.key.name, job.key.flow)
                outcome = None, problem_of(error), 0
            self._finish(job, outcome, time.monotonic() - began)

    def _next(self) -> _Job | None:
        """The first waiting job whose flow may take another reader. Reads that every user sees come first."""
        troubled = sum(count for flow, count in self._running.items() if flow in self._troubled)
        for job in sorted(self._waiting, key=lambda job: bool(job.key.argument)):
            flow = job.key.flow
            if self._running[flow] >= min(READS_A_FLOW, max(1, self._threads - 1)):
                continue
            if flow in self._troubled and troubled >= max(1, self._threads // 2):
                continue
            self._waiting.remove(job)
            self._running[flow] += 1
            return job
        return None

    def _finish(self, job: _Job, outcome: tuple[Any, Problem | None, int], seconds: float) -> None:
        data, problem, size = outcome
        with self._changed:
            flow = job.key.flow
            self._running[flow] -= 1
            entry = self._entries.setdefault(job.key, _Entry())
            entry.job = None
            # A read that never failed may need only the cluster that answered all the time.
            answered_again = problem is None and (entry.unanswered is not None or entry.seen == NEVER_READ)
            entry.unanswered = job if problem is not None and problem.unreachable else None
            if problem is None:
                self._troubled.discard(flow)
                entry.seen, entry.size, entry.pause = Snapshot(data, time.time()), size, 0.0
                rest = max(job.fresh_seconds, REST_FACTOR * seconds)
            else:
                entry.seen = replace(entry.seen, problem=problem)
                if problem.unreachable:
                    self._troubled.add(flow)
                entry.pause = rest = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, entry.pause * 2))
            entry.next_read = time.monotonic() + rest
            if answered_again:
                self._read_unanswered(flow)
            snapshot = entry.snapshot()
            self._changed.notify_all()
        job.done.set_result(snapshot)

    def _read_unanswered(self, flow: str) -> None:
        """Do all reads of the flow again that no cluster answered. If too many reads wait already, the others start when somebody asks."""
        for key, entry in self._entries.items():
            if key.flow != flow or entry.unanswered is None:
                continue
            entry.next_read = entry.pause = 0.0
            if entry.job is None and not self._crowded(key):
                self._begin(entry, _Job(key, entry.unanswered.work, entry.unanswered.fresh_seconds))
