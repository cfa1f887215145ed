"""Where the segments of a log begin, and when the next one does (LogSegment.shouldRoll). Only the last segment, the active one, grows.

A broker reads from one segment at a time, searches a time in one segment only, and deletes whole segments.
"""

from __future__ import annotations

from bisect import bisect_right

from tests.simulation.batches import Batch

NO_BOUND = (1 << 63) - 1


class SegmentLimits:
    """The configs of a topic that all its logs share: bytes of a segment, and ms between the times of its first batch and its last."""

    __slots__ = ("bytes", "milliseconds")

    def __init__(self, size: int = 1 << 30, milliseconds: int = NO_BOUND) -> None:
        self.bytes, self.milliseconds = size, milliseconds


class Segments:
    """`bases`: the first offset of each segment."""

    __slots__ = ("_first", "_size", "bases", "limits")

    def __init__(self, limits: SegmentLimits) -> None:
        self.limits, self.bases = limits, [0]
        self._size, self._first = 0, 0  # of the active segment: its bytes, and the time of its first batch

    def take(self, batch: Batch) -> None:
        """A batch is appended: to the active segment, or to a new one."""
        size, limits = len(batch.data), self.limits
        late = batch.max_timestamp - self._first > limits.milliseconds
        if self._size and (late or self._size + size > limits.bytes):
            self.bases.append(batch.base_offset)
            self._size = 0
        if not self._size:
            self._first = batch.max_timestamp
        self._size += size

    def roll(self, end: int) -> None:
        """Begin an empty segment at the log's end."""
        self.bases.append(end)
        self._size = 0

    def end_of(self, offset: int) -> int:
        """Where the segment ends that holds this offset."""
        place = bisect_right(self.bases, offset)
        return self.bases[place] if place < len(self.bases) else NO_BOUND

    def truncate(self, end: int) -> None:
        """The log ends at `end`. The bytes of the segment that is active again are not counted: it may become somewhat larger."""
        while len(self.bases) > 1 and self.bases[-1] >= end:
            self.bases.pop()
            self._size = 1

    def drop(self, count: int) -> None:
        """Delete the first segments."""
        del self.bases[:count]

    def merge(self, sizes: list[int]) -> None:
        """Compaction has cleaned these first segments of so many bytes, and makes one of as many as fit (Cleaner.groupSegmentsBySize)."""
        kept, size = self.bases[:1], 0
        for base, more in zip(self.bases, sizes, strict=False):
            if base != self.bases[0] and size + more > self.limits.bytes:
                kept.append(base)
                size = 0
            size += more
        self.bases = kept + self.bases[len(sizes) :]

    def restart(self, start: int) -> None:
        self.bases, self._size = [start], 0
