"""Batches as a Produce request carries them, and the builder that makes them of one partition's fetched bytes."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import crc32c

from ferry.wire.batch import CODEC_MASK, LENGTH_OVERHEAD, TRANSACTIONAL, BatchHeader
from ferry.wire.ranges import Ranges, outside

BatchKind = Literal["forwarded", "reframed", "handled"]

# Base offset 0, length; leader epoch -1, magic 2; CRC.
_HEAD = struct.Struct(">qiibI")
# The last offset delta and both timestamps follow the attributes and stay as they are. Then producer id, epoch and base sequence.
_KEPT = slice(23, 43)
_PRODUCER = struct.Struct(">qhi")
_RECORDS_FROM = 57


class Rerouted(NamedTuple):
    """A message handler sends a batch `to` a topic and partition of the target, not to the remote partition of its source `origin`."""

    origin: tuple[str, int]
    to: tuple[str, int]


@dataclass(frozen=True, slots=True)
class ProduceBatch:
    """One batch to produce; `encode` writes its producer in. `size`: bytes on the wire. Timestamps are in ms."""

    kind: BatchKind
    payload: memoryview
    # Records in the batch. Without a message handler, those of all runs.
    count: int
    # The upstream offsets of its records in order: (first offset, number of records). In a handled batch the runs count source records.
    # Records that the handler added are in no run.
    runs: tuple[tuple[int, int], ...]
    # The upstream range [start, end) that is settled once the target has accepted this batch.
    upstream_start: int
    upstream_end: int
    # In a forwarded batch the timestamp of the first record, which is enough for reports.
    min_timestamp: int
    max_timestamp: int
    # The leader epoch with which to fetch from `upstream_end`, so that the leader detects truncation (KIP-320). It is the source's leader
    # epoch of the entry that ends there, also of one that was not copied. After a hole it is the epoch of the entry after the hole: the
    # entry before may be older than an epoch that began inside the hole. -1: not known (magic 0 and 1).
    last_leader_epoch: int
    # In a handled batch: for each run the index, within the batch, of its first record.
    places: tuple[int, ...] = ()
    # Source records of the batch's range that have no record in it: the handler dropped them.
    dropped: int = 0
    rerouted: Rerouted | None = None

    @property
    def size(self) -> int:
        return len(self.payload)

    @property
    def own(self) -> int:
        """Bytes in memory beside the fetched ones."""
        return 0 if self.kind == "forwarded" else len(self.payload)

    @property
    def added(self) -> int:
        """Records that the handler added beyond one for each source record."""
        return self.count - sum(count for _, count in self.runs) if self.places else 0

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes, memoryview]:
        """The whole batch for this producer from `base_sequence` on, in two buffers: a new head, and the rest, which is not copied.

        Of the attributes only the codec stays: the timestamp type becomes CreateTime; control, delete-horizon and reserved bits become 0
        (a broker would store a delete horizon and read it as a deletion time). The source's CRC, which is replaced here, was checked
        before, and offsets are contiguous. The broker checks base offset 0 and the CRC (storage/.../log/LogValidator.java), and stores the
        batch as it is where the topic has `compression.type=producer`.
        """
        view = self.payload
        attributes = (view[22] & CODEC_MASK) | (TRANSACTIONAL if transactional else 0)
        covered = attributes.to_bytes(2, "big") + view[_KEPT] + _PRODUCER.pack(producer_id, epoch, base_sequence)
        rest = view[_RECORDS_FROM:]
        checksum = crc32c.crc32c(rest, crc32c.crc32c(covered))
        return _HEAD.pack(0, len(view) - LENGTH_OVERHEAD, -1, 2, checksum) + covered, rest


@dataclass(frozen=True, slots=True)
class Transformed:
    """The batches to produce of one partition's fetched bytes."""

    batches: list[ProduceBatch]
    # The upstream offset to fetch next, at most `end`. It moves on even if there are no batches.
    next_position: int
    # The leader epoch with which to fetch from `next_position`, as in ProduceBatch.
    last_leader_epoch: int = -1
    # Records that a handler dropped and that no batch counts, because no batch follows them.
    dropped: int = 0


class BatchBuilder(ABC):
    """Collects batches in upstream order from `position` on, and the leader epochs of all entries that were read.

    `end`: exclusive upstream bound. `body_limit`: most bytes of a new batch's records, before compression. `excluded`: upstream offsets
    that are not wanted. `max_opened`: most bytes of one batch's records when they are decompressed. `codec`: of all batches (None: of those
    that they are made of).
    """

    def __init__(self, position: int, end: int, *, body_limit: int, excluded: Ranges, max_opened: int, codec: int | None) -> None:
        self.position, self._end, self._body_limit, self._excluded, self._max_opened = position, end, body_limit, excluded, max_opened
        self._wanted_codec = codec
        # Bytes of the batches that are not as they were fetched.
        self.made = 0
        # (upstream offset of the first record, what makes the batch): its upstream range reaches up to the next batch's first record.
        self._batches: list[tuple[int, Callable[..., ProduceBatch]]] = []
        # (offset, epoch): after this offset positions have this epoch, as far as was read. Epochs change rarely, so the list stays short.
        self._epochs: list[tuple[int, int]] = []

    def pass_epoch(self, reached: int, epoch: int) -> None:
        """Note the leader epoch of an entry of any kind, and of the hole before it. `reached`: where the entry before ended.

        No batch holds records of two epochs: if the source loses the later ones, the earlier ones are still copied (truncation.py).
        """
        if not self._epochs or self.epoch != epoch:
            self.finish()
            self._epochs.append((reached, epoch))

    @property
    def epoch(self) -> int:
        """The leader epoch of the last entry."""
        return self._epochs[-1][1]

    @abstractmethod
    def finish(self) -> int:
        """End the open batch, if there is one. Returns how many records a handler dropped that no batch counts."""

    def epoch_at(self, position: int) -> int:
        """The leader epoch with which to fetch from `position` (-1: not known), as in ProduceBatch."""
        return next((epoch for offset, epoch in reversed(self._epochs) if offset < position), -1)

    def batches(self, next_position: int) -> list[ProduceBatch]:
        """The batches; their upstream ranges tile [position, next_position)."""
        bounds = [self.position, *(start for start, _ in self._batches[1:]), next_position]
        return [
            make(upstream_start=start, upstream_end=stop, last_leader_epoch=self.epoch_at(stop))
            for (_, make), start, stop in zip(self._batches, bounds, bounds[1:], strict=False)
        ]

    def _codec_of(self, header: BatchHeader) -> int:
        """The codec of the batch that gets the records of this one."""
        return header.codec if self._wanted_codec is None else self._wanted_codec

    def _wanted(self, header: BatchHeader) -> Ranges:
        return outside(self._excluded, max(self.position, header.base_offset), min(self._end, header.next_offset))

    def _keep(self, kind: BatchKind, payload: memoryview, runs: tuple[tuple[int, int], ...], **more: Any) -> None:
        """Keep the fields of a batch (`more`: the others), but for its upstream range and the leader epoch there, which are known later."""
        self.made += 0 if kind == "forwarded" else len(payload)
        self._batches.append((runs[0][0], partial(ProduceBatch, kind=kind, payload=payload, runs=runs, **more)))
