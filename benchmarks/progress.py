"""When a copy began to arrive, and when all of it had arrived.

It began when a high watermark of a remote partition was first seen above 0. The last stable offsets tell the rest: they move when a
transaction commits. Transactions leave markers, each of which takes an offset too, so an end at or past the number of records is necessary,
but not sufficient; so the copy counts as caught up at the last change, once nothing has changed for `settle` seconds or the copier has
ended. Whether it is all there is counted afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.topics import Ends, Partition

SAMPLE_SECONDS = 0.05
# With 1,000 partitions an answer is large: fewer samples, so that asking does not slow what is measured.
MANY_PARTITIONS = 50
MANY_SAMPLE_SECONDS = 0.25
# A copy that moves nothing for this long is stuck.
STUCK_SECONDS = 180.0


class CopyFailed(Exception):
    """The copier ended or got stuck before everything was there."""


@dataclass
class Progress:
    """Samples taken in. Times are perf_counter seconds.

    `first`: when something had been appended, which was `first_records` already; `last`: when the last stable offsets last changed.
    """

    expected: int
    first: float | None = None
    first_records: int = 0
    last: float | None = None
    ends: dict[Partition, int] = field(default_factory=dict)

    def see_appended(self, appended: int, now: float) -> None:
        """Take in the sum of the high watermarks."""
        if appended and self.first is None:
            self.first, self.first_records = now, appended

    def see_committed(self, ends: dict[Partition, int], now: float) -> bool:
        """Take in the last stable offsets; whether they changed."""
        changed = sum(ends.values()) != sum(self.ends.values())
        if changed:
            self.last = now
        self.ends = ends
        return changed

    @property
    def enough(self) -> bool:
        """Whether the offsets reach the number of records."""
        return sum(self.ends.values()) >= self.expected

    @property
    def records_per_second(self) -> float:
        """Records after the first sample that showed any, over the time from that sample to the last change."""
        if self.first is None or self.last is None or self.last <= self.first:
            return float("nan")
        return (self.expected - self.first_records) / (self.last - self.first)


def watch(
    bootstrap: str,
    partitions: Iterable[Partition],
    expected: int,
    *,
    running: Callable[[], bool],
    on_change: Callable[[], object],
    settle: float,
) -> Progress:
    """Watch until all is there; `on_change` is called after every change. CopyFailed when the copier ends or is stuck before."""
    wanted = list(partitions)
    pause = SAMPLE_SECONDS if len(wanted) <= MANY_PARTITIONS else MANY_SAMPLE_SECONDS
    progress = Progress(expected)
    began = time.perf_counter()
    with Ends(bootstrap, wanted) as committed, Ends(bootstrap, wanted, committed=False) as appended:
        while True:
            alive = running()
            if progress.first is None:
                progress.see_appended(sum(appended.read().values()), time.perf_counter())
            now = time.perf_counter()
            if progress.see_committed(committed.read(), now):
                on_change()
            quiet = now - (progress.last or began)
            if progress.enough and (not alive or quiet > settle):
                return progress
            if not alive or quiet > STUCK_SECONDS:
                raise CopyFailed(f"{'stuck' if alive else 'ended'} at {sum(progress.ends.values())} of {expected} records")
            time.sleep(pause)
