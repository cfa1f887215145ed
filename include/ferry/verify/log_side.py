"""One side of a comparison: batches of one log as they were read, and the records of those that had to be looked into.

Only wanted offsets are seen. Batches are opened when they must be, within a limit that holds for what they take as Python's objects too;
views of those that wait keep the response that they are part of alive.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ferry.verify.contents import Content, Contents, contents_of
from ferry.verify.digest_kind import DigestKind
from ferry.verify.digests import RangeDigest
from ferry.wire.batch import BatchHeader, MalformedBatch, OversizedBatch
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.legacy import opened
from ferry.wire.ranges import Ranges, within

# Records in a batch, and in a row of such batches that are opened together.
SMALL_BATCH, TOGETHER = 100, 2_000
# Records that are dealt with are dropped in bulk.
KEPT_BEHIND = 4_096
# What a record takes beside its bytes: two numbers, a bytes object, three places in lists.
RECORD_OVERHEAD = 140


class Batch(NamedTuple):
    """A committed data batch of magic 2, or of an older format: header and all its bytes."""

    header: BatchHeader
    view: memoryview


class LogSide:
    """A row of batches in front, a row of opened records behind them; `done` once nothing more will come.

    `cluster` is for messages. `limit`: bytes that the records of one batch may take. `digest`: what it is to be over, if one is wanted.
    """

    def __init__(self, wanted: Ranges, cluster: str = "", limit: int = LARGEST_BYTES, digest: DigestKind | None = None) -> None:
        self.wanted = wanted
        self._cluster = cluster
        self._limit = limit
        self._kind = digest
        self.digest = RangeDigest()
        self._batches: deque[Batch] = deque()
        self._records = Contents([], [], [])
        self._at = 0
        self.done = False
        self.backlog = 0
        self._opened_bytes = 0

    def add(self, batch: Batch) -> None:
        """A batch behind the last one."""
        header = batch.header
        if header.count < 0 or within(self.wanted, header.base_offset, header.next_offset):
            self._batches.append(batch)
            self.backlog += len(batch.view)
            if self._kind is DigestKind.STORED:
                self._hash_stored(batch)

    @property
    def records(self) -> Contents:
        """The opened records; those before `at` are dealt with."""
        return self._records

    @property
    def at(self) -> int:
        """Index of the next opened record."""
        return self._at

    @property
    def between_batches(self) -> bool:
        """Whether no opened record waits."""
        return self._at == len(self._records.offsets)

    @property
    def exhausted(self) -> bool:
        """Whether nothing waits and nothing will come."""
        return self.done and self.between_batches and not self._batches

    @property
    def first_batch(self) -> Batch | None:
        """The batch that comes next, if it is there."""
        return self._batches[0] if self._batches else None

    def wants_all(self, header: BatchHeader) -> bool:
        """Whether every offset of a batch is wanted."""
        return within(self.wanted, header.base_offset, header.next_offset) == ((header.base_offset, header.next_offset),)

    def pass_batch(self, same: Contents | None = None) -> Contents | None:
        """The next batch is dealt with as a whole; its records, if they had to be looked at. `same`: those of an equal batch."""
        batch = self._batches.popleft()
        self.backlog -= len(batch.view)
        if self._kind is not DigestKind.RECORDS:
            return None
        found = same or self._contents(batch)
        self.digest.add_records(found)
        return found

    def pass_records(self, count: int) -> None:
        """So many opened records are dealt with."""
        self._at += count
        if self.between_batches:
            self._records, self._at, self._opened_bytes = Contents([], [], []), 0, 0
        elif self._at > KEPT_BEHIND:
            for row in self._records:
                del row[: self._at]
            self._at = 0

    def has_record(self) -> bool:
        """Whether a next record is there; opens the next batch if it must."""
        while self.between_batches and self._batches:
            self._open()
            # Small batches are rarely stored alike on both sides: a row of them is compared at once.
            while self._batches and 0 <= self._batches[0].header.count < SMALL_BATCH and len(self._records.offsets) < TOGETHER:
                self._open()
        return not self.between_batches

    def has_ahead(self, records: int, size: int) -> bool:
        """Whether so many records, or so many bytes of them, are opened; or all there will ever be."""
        while len(self._records.offsets) - self._at < records and self._opened_bytes < size:
            if not self._batches:
                return self.done
            self._open()
        return True

    def ahead(self, records: int) -> tuple[list[int], list[Content]]:
        """Offsets and contents of the next opened records, at most so many."""
        stop = self._at + records
        contents = list(zip(self._records.timestamps[self._at : stop], self._records.payloads[self._at : stop], strict=True))
        return self._records.offsets[self._at : stop], contents

    def _open(self) -> None:
        batch = self._batches.popleft()
        self.backlog -= len(batch.view)
        found = self._contents(batch)
        if self._kind is DigestKind.RECORDS:
            self.digest.add_records(found)
        self._opened_bytes += sum(map(len, found.payloads))
        if self.between_batches:
            self._records, self._at = found, 0
            return
        self._records.offsets.extend(found.offsets)
        self._records.timestamps.extend(found.timestamps)
        self._records.payloads.extend(found.payloads)

    def _hash_stored(self, batch: Batch) -> None:
        if batch.header.magic == 2 and self.wants_all(batch.header):
            self.digest.add_batch(*batch)
        else:
            self.digest.add_records(self._contents(batch))

    def _contents(self, batch: Batch) -> Contents:
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
        return found if parts == ((header.base_offset, header.next_offset),) else _chosen(found, parts)

    def _check_count(self, header: BatchHeader) -> None:
        if header.count * RECORD_OVERHEAD > self._limit:
            raise OversizedBatch(f"its {header.count:,} records take more than the {self._limit:,} bytes that there are for one batch")


def _chosen(found: Contents, parts: Ranges) -> Contents:
    kept = [index for index, offset in enumerate(found.offsets) if any(low <= offset < high for low, high in parts)]
    return Contents(
        [found.offsets[index] for index in kept], [found.timestamps[index] for index in kept], [found.payloads[index] for index in kept]
    )
