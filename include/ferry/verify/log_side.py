"""One side of a comparison: the batches of one log, and the records of those batches that had to be opened.

Only wanted offsets count. Batches are opened as late as possible, within a limit that holds for their size as Python objects too. The view
of a waiting batch keeps the whole response in memory.
"""

from array import array
from bisect import bisect_right
from collections import deque
from itertools import compress
from typing import NamedTuple

from ferry.errors import count_of
from ferry.verify.contents import Content, RecordColumns, contents_of
from ferry.verify.digests import RangeDigest
from ferry.verify.request import DigestKind
from ferry.wire.batch import BatchHeader, MalformedBatch, OversizedBatch
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.legacy import opened
from ferry.wire.ranges import Ranges, within

# Batches with fewer records are small. Small batches are opened together, up to this many records.
SMALL_BATCH, TOGETHER = 100, 2_000
# Handled records are dropped in bulk, this many at a time.
KEPT_BEHIND = 4_096
# Memory that a record takes beside its bytes: two numbers, a bytes object, three places in lists.
RECORD_OVERHEAD = 140


class Batch(NamedTuple):
    """A committed data batch of magic 2, or of an older format: header and all its bytes. Of control batches and aborted data: no bytes."""

    header: BatchHeader
    view: memoryview


class LogSide:
    """A queue of batches, and the opened records in front of it. The caller sets `done` when no more batches will come.

    `cluster`: its name for messages. `limit`: bytes that the records of one batch may take. `digest`: the kind to take; None: none.
    """

    def __init__(self, wanted: Ranges, cluster: str = "", limit: int = LARGEST_BYTES, digest: DigestKind | None = None) -> None:
        self.wanted = wanted
        self._cluster = cluster
        self._limit = limit
        self._kind = digest
        self.digest = RangeDigest()
        self._batches: deque[Batch] = deque()
        # The opened records; those before index `at` are handled.
        self.records = RecordColumns([], [], [])
        self.at = 0
        self.done = False
        # The offsets before `_reached` for which the log has no batch, or a batch without the record: (starts, ends).
        self._holes = array("q"), array("q")
        self._reached = wanted[0][0] if wanted else 0
        self.backlog = 0
        self._opened_bytes = 0

    def add(self, batch: Batch) -> None:
        header = batch.header
        if header.count < 0 or not batch.view or within(self.wanted, header.base_offset, header.next_offset):
            self._batches.append(batch)
            self.backlog += len(batch.view)
            self._pass_left_out()
            if self._kind is not DigestKind.STORED or not batch.view:
                return
            if header.magic == 2 and self.wants_all(header):
                self.digest.add_batch(*batch)
            else:
                self.digest.add_records(self._contents(batch))

    def is_hole(self, offset: int) -> bool:
        """Whether compaction has removed the record of a wanted offset: nothing else leaves holes in a log. False: no, or not read yet."""
        starts, ends = self._holes
        at = bisect_right(starts, offset) - 1
        return (at >= 0 and offset < ends[at]) or (self.done and not self._batches and offset >= self._reached)

    def _reach(self, start: int, end: int) -> None:
        """Note that the log holds `[start, end)`, and nothing between the offsets before and `start`."""
        if start > self._reached:
            self._holes[0].append(self._reached)
            self._holes[1].append(start)
        self._reached = max(self._reached, end)

    def _pass_left_out(self) -> None:
        while self._batches and not self._batches[0].view:
            header = self._batches.popleft().header
            self._reach(header.base_offset, header.next_offset)

    @property
    def between_batches(self) -> bool:
        """Whether all opened records are handled."""
        return self.at == len(self.records.offsets)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left and nothing will come."""
        return self.done and self.between_batches and not self._batches

    @property
    def first_batch(self) -> Batch | None:
        return self._batches[0] if self._batches else None

    def wants_all(self, header: BatchHeader) -> bool:
        """Whether every offset of a batch is wanted."""
        return within(self.wanted, header.base_offset, header.next_offset) == ((header.base_offset, header.next_offset),)

    def pass_batch(self, same: RecordColumns | None = None) -> RecordColumns | None:
        """Skip a batch that was compared as a whole. Returns its records if the digest needs them; `same`: those of an equal batch."""
        batch = self._batches.popleft()
        self.backlog -= len(batch.view)
        self._reach(batch.header.base_offset, batch.header.next_offset)
        self._pass_left_out()
        if self._kind is not DigestKind.RECORDS:
            return None
        found = same or self._contents(batch)
        self.digest.add_records(found)
        return found

    def pass_records(self, count: int) -> None:
        """Skip the first `count` opened records, which were handled."""
        self.at += count
        if self.between_batches:
            self.records, self.at, self._opened_bytes = RecordColumns([], [], []), 0, 0
        elif self.at > KEPT_BEHIND:
            for row in self.records:
                del row[: self.at]
            self.at = 0

    def has_record(self) -> bool:
        """Whether there is a next record. Opens the next batch if necessary."""
        while self.between_batches and self._batches:
            self._open()
            # Small batches are rarely the same on both sides. So several are opened and compared together.
            while self._batches and 0 <= self._batches[0].header.count < SMALL_BATCH and len(self.records.offsets) < TOGETHER:
                self._open()
        return not self.between_batches

    def has_ahead(self, records: int, size: int) -> bool:
        """Open batches until there are `records` records or `size` bytes. Returns whether there are, or whether no more will come."""
        while len(self.records.offsets) - self.at < records and self._opened_bytes < size:
            if not self._batches:
                return self.done
            self._open()
        return True

    def ahead(self, records: int) -> tuple[list[int], list[Content]]:
        """Offsets and contents of at most `records` of the next opened records."""
        stop = self.at + records
        contents = list(zip(self.records.timestamps[self.at : stop], self.records.payloads[self.at : stop], strict=True))
        return self.records.offsets[self.at : stop], contents

    def _open(self) -> None:
        batch = self._batches.popleft()
        self.backlog -= len(batch.view)
        found = self._contents(batch)
        whole = found.offsets and found.offsets[-1] - found.offsets[0] == len(found.offsets) - 1
        for offset in found.offsets[:1] if whole else found.offsets:
            self._reach(offset, offset + (len(found.offsets) if whole else 1))
        self._pass_left_out()
        if self._kind is DigestKind.RECORDS:
            self.digest.add_records(found)
        self._opened_bytes += sum(map(len, found.payloads))
        self.records.offsets.extend(found.offsets)
        self.records.timestamps.extend(found.timestamps)
        self.records.payloads.extend(found.payloads)

    def _contents(self, batch: Batch) -> RecordColumns:
        """The wanted records of a batch."""
        try:
            self._check_count(batch.header)
            header, data = opened(*batch, self._limit)
            self._check_count(header)
            found = contents_of(header, data)
        except MalformedBatch as problem:
            text = f"cluster {self._cluster}: the batch at offset {batch.header.base_offset}: {problem}"
            raise type(problem)(text) from problem
        parts = within(self.wanted, header.base_offset, header.next_offset)
        if parts == ((header.base_offset, header.next_offset),):
            return found
        kept = [any(low <= offset < high for low, high in parts) for offset in found.offsets]
        return RecordColumns._make(list(compress(column, kept)) for column in found)

    def _check_count(self, header: BatchHeader) -> None:
        if header.count * RECORD_OVERHEAD > self._limit:
            raise OversizedBatch(
                f"its {count_of(header.count, 'record')} would take more than the {self._limit:,} bytes that there are for one batch"
            )
