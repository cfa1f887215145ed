"""The log of one replica of a partition: batches, leader epochs, log start, high watermark and last stable offset.

Replicas share batches, which never change. Only a leader, and a replica that a consumer reads from, needs to know the producers: their
state is made from the log when it is asked for, and again after the log was truncated.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from tests.simulation.batches import Batch, records
from tests.simulation.epochs import Epochs
from tests.simulation.producers import Producers
from tests.simulation.segments import SegmentLimits, Segments

NO_OFFSET = -1


class Found(NamedTuple):
    """The record that a search for a time found; -1 everywhere: there is none."""

    offset: int = NO_OFFSET
    timestamp: int = -1
    epoch: int = -1


class Log:
    """One replica's log. `start`, `end`: its offsets, the end exclusive."""

    def __init__(self, limits: SegmentLimits) -> None:
        self.batches: list[Batch] = []
        self.segments = Segments(limits)
        self._next: list[int] = []  # the next offsets of all batches
        self.epochs = Epochs()
        self.start, self.end, self.high_watermark, self.size = 0, 0, 0, 0
        self._producers, self._applied = Producers(), 0  # how many batches the producers know

    @property
    def producers(self) -> Producers:
        """The state of the producers at the log's end."""
        for batch in self.batches[self._applied :]:
            self._producers.apply(batch)
        self._applied = len(self.batches)
        return self._producers

    @property
    def stable_end(self) -> int:
        """The last stable offset. As on Kafka 4, it may lie before the log's start."""
        unstable = self.producers.first_unstable(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def append(self, batch: Batch) -> None:
        """Add a batch at the end. A follower takes batches with holes before them, so the end may jump."""
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self.segments.take(batch)
        self.batches.append(batch)
        self._next.append(batch.next_offset)
        self.end = batch.next_offset
        self.size += len(batch.data)

    def read(self, offset: int, bound: int, limit: int, *, whole: bool) -> bytes:
        """What lies from the batch that holds `offset` on, before `bound`, in one segment, cut off after `limit` bytes, as brokers do.

        Nothing if not even the first batch fits the limit; `whole`: then that batch.
        """
        at = bisect_right(self._next, offset)
        if at < len(self.batches):
            bound = min(bound, self.segments.end_of(self.batches[at].base_offset))
        taken: list[bytes] = []
        size = 0
        while at < len(self.batches) and self.batches[at].base_offset < bound and size < limit:
            taken.append(self.batches[at].data)
            size += len(taken[-1])
            at += 1
        if taken and len(taken[0]) > limit:
            return taken[0] if whole else b""
        if not taken and whole and at < len(self.batches) and self.batches[at].base_offset < bound:
            return self.batches[at].data
        return b"".join(taken)[:limit]

    def bytes_between(self, offset: int, bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to `bound`."""
        at, size = bisect_right(self._next, offset), 0
        while at < len(self.batches) and self.batches[at].base_offset < bound:
            size += len(self.batches[at].data)
            at += 1
        return size

    def first_since(self, timestamp: int) -> Found:
        """The first record of that time or later, in ms: a broker looks in the first segment only that has a batch of that time."""
        bound: int | None = None
        for batch in self.batches:
            if bound is not None and batch.base_offset >= bound:
                break
            if batch.max_timestamp >= timestamp and batch.next_offset > self.start:
                bound = bound or self.segments.end_of(batch.base_offset)
                for record in records(batch):
                    if record.timestamp >= timestamp and record.offset >= self.start:
                        return Found(record.offset, record.timestamp, batch.leader_epoch)
        return Found()

    def newest(self) -> Found:
        """The first of the records with the largest timestamp (KIP-734)."""
        if not self.batches:
            return Found()
        newest = max(batch.max_timestamp for batch in self.batches)
        batch = next(batch for batch in self.batches if batch.max_timestamp == newest)
        offset = next((record.offset for record in records(batch) if record.timestamp == newest), None)
        return Found() if offset is None else Found(offset, newest, batch.leader_epoch)

    def truncate(self, end: int) -> None:
        """Remove what lies from `end` on. A batch that crosses `end` goes as a whole, and leaves a hole (LocalLog.truncateTo)."""
        if end >= self.end:
            return
        while self.batches and self.batches[-1].next_offset > end:
            self.size -= len(self.batches.pop().data)
            self._next.pop()
        self.end = max(self.start, end)
        self.segments.truncate(self.end)
        self.epochs.truncate_from(self.end)
        self.high_watermark = min(self.high_watermark, self.end)
        self._forget_producers()

    def restart(self, start: int) -> None:
        """Remove everything; the log begins at `start`."""
        self.batches.clear()
        self._next.clear()
        self.epochs.clear()
        self.segments.restart(start)
        self.start = self.end = self.high_watermark = start
        self.size = 0
        self._forget_producers()

    def delete_before(self, start: int) -> None:
        """Move the log's start (DeleteRecords). The bytes stay until their segment goes: the newest record may be one of them."""
        if start > self.start:
            self.start, self.end = start, max(self.end, start)
            self.high_watermark = max(self.high_watermark, start)
            self.epochs.truncate_to(start)

    def retain(self, since: int, size: int) -> None:
        """Delete the oldest segments (UnifiedLog.deleteOldSegments): those whose newest record is before `since`, in ms; while `size` bytes
        are left without them; and those before the log's start. Producers are not forgotten.
        """
        bases = self.segments.bases
        held = _by_segment(self.batches, bases)
        gone, left, last = 0, self.size, len(bases) - 1
        for place, batches in enumerate(held):
            end = self.end if place == last else bases[place + 1]
            own = sum(len(batch.data) for batch in batches)
            old = max((batch.max_timestamp for batch in batches), default=since) < since
            passed = place != last and end <= self.start
            if end > self.high_watermark or (place == last and not batches) or not (old or left - own >= size or passed):
                break
            gone, left = gone + 1, left - own
        if gone > last:
            self.segments.roll(self.end)
        self.segments.drop(gone)
        if gone:
            self.delete_before(self.segments.bases[0])
            self.replace(self.batches[sum(len(batches) for batches in held[:gone]) :])

    def replace(self, batches: list[Batch]) -> None:
        """Put other batches in the place of all. Producers are not forgotten."""
        known = self.producers
        self.batches, self._next = batches, [batch.next_offset for batch in batches]
        self.size = sum(len(batch.data) for batch in batches)
        self._producers, self._applied = known, len(batches)

    def clean(self, batches: list[Batch], cleaned: list[Batch]) -> None:
        """Put `cleaned` in the place of the first `batches`, and join the segments that they were in."""
        bases, reached = self.segments.bases, batches[-1].next_offset if batches else 0
        count = sum(end <= reached for end in (*bases[1:], self.end))
        self.segments.merge([sum(len(batch.data) for batch in part) for part in _by_segment(batches, bases)[:count]])
        self.replace(cleaned + self.batches[len(batches) :])

    def _forget_producers(self) -> None:
        self._producers, self._applied = Producers(), 0


def _by_segment(batches: list[Batch], bases: list[int]) -> list[list[Batch]]:
    found: list[list[Batch]] = [[] for _ in bases]
    for batch in batches:
        found[bisect_right(bases, batch.base_offset) - 1].append(batch)
    return found
