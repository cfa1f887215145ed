"""When a copy began to arrive, and when all of it had arrived.

The last stable offsets of the remote partitions tell: they move when a transaction commits. Transactions leave markers, each of which
takes an offset too, so an end at or past the number of records is necessary, but not sufficient; therefore the copy counts as caught up at
the last change, once nothing has changed for `settle` seconds or the copier has ended. Whether it is all there is counted afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

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
    """`first` and `last`: perf_counter seconds when the first and the last record were seen committed."""

    expected: int
    first: float | None = None
    last: float | None = None
    ends: dict[Partition, int] = field(default_factory=dict)

    def see(self, ends: dict[Partition, int], now: float) -> Self:
        """Take in one sample."""
        if sum(ends.values()) != sum(self.ends.values()):
            self.first = now if self.first is None else self.first
            self.last = now
        self.ends = ends
        return self

    @property
    def enough(self) -> bool:
        """Whether the offsets reach the number of records."""
        return sum(self.ends.values()) >= self.expected


def watch(
    bootstrap: str,
    partitions: Iterable[Partition],
    expected: int,
    *,
    running: Callable[[], bool],
    on_change: Callable[[], None],
    settle: float,
) -> Progress:
    """Watch until all is there; `on_change` is called after every change. CopyFailed when the copier ends or is stuck before."""
    wanted = list(partitions)
    progress = Progress(expected)
    began = time.perf_counter()
    with Ends(bootstrap, wanted) as ends:
        while True:
            alive = running()
            now = time.perf_counter()
            last = progress.last
            progress.see(ends.read(), now)
            if progress.last != last:
                on_change()
            quiet = now - (progress.last or began)
            if progress.enough and (not alive or quiet > settle):
                return progress
            if not alive or quiet > STUCK_SECONDS:
                raise CopyFailed(f"{'stuck' if alive else 'ended'} at {sum(progress.ends.values())} of {expected} records")
            time.sleep(SAMPLE_SECONDS if len(wanted) <= MANY_PARTITIONS else MANY_SAMPLE_SECONDS)
