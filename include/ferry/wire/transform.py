"""Turns one partition's fetched bytes into batches to produce: each fetched batch is forwarded, reframed, handled or left out.

One Produce request carries one `ProduceBatch` for the partition. The upstream ranges of the batches tile [position, next position): each
range reaches to the start of the next one. So offsets that are left out (control, aborted and empty batches, holes) are settled together
with the batch before them, or with the first batch if none comes before.

A batch is forwarded if it is magic 2, contiguous, CreateTime, inside the bounds, and worth a request of its own. All others are reframed,
and neighbours with the same codec are merged: a Produce request costs 65-110 us of Python, reframing a record about 1 us.
With a message handler, every batch is handled (ferry.wire.handled), and none is forwarded or reframed.
LZ4 that brokers do not read (linked blocks, several frames) is not forwarded either: a source that does not check it may hold such batches.
If all batches shall have one codec, those with another one are not forwarded. Their records may take more bytes than before: so a batch is
divided where its plain records would exceed the limit of merged batches.
The CRC of every batch is checked first: the batches to produce get new CRCs, which would hide a flipped bit.

Excluded offsets are left out like control batches. Records of another flow of Ferry are usually excluded batch by batch, and then the
header decides. If a range ends inside a batch (compaction keeps a batch's first and last offset; a person may have named the range), the
other records of the batch are reframed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.wire import compression
from ferry.wire.aborted import AbortedTracker
from ferry.wire.batch import (
    DEFAULT_BATCH_LIMIT,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    BatchHeader,
    MalformedBatch,
    crc_is_valid,
    read_entry,
)
from ferry.wire.handled import HandlingBuilder
from ferry.wire.legacy import opened
from ferry.wire.produce_batch import BatchBuilder, Transformed
from ferry.wire.ranges import Range, Ranges, next_start
from ferry.wire.reframe import GROWTH_PER_RECORD, Reframer, SmallBatches, assemble, divided
from ferry.wire.varint import Buffer

# Compressed batches are worth merging only when they are smaller by this factor, by codec: decompressing and above all compressing again
# costs more than the request that it saves. (None, gzip, snappy, lz4, zstd.)
COMPRESSION_PENALTY = (1, 64, 8, 8, 16)


# Smaller batches are merged with their neighbours; copying this much costs about half of what a request does.
FORWARD_BYTES = 32 * 1024
# A batch of this many records is forwarded, also if it is small, for the same reason.
FORWARD_RECORDS = 100
# Most bytes of a merged batch, before compression.
MERGED_BYTES = 512 * 1024


def transform(
    fetched: memoryview,
    *,
    position: int,
    end: int,
    aborted: Iterable[tuple[int, int]] = (),
    excluded: Ranges = (),
    max_batch_bytes: int = DEFAULT_BATCH_LIMIT,
    handling: PartitionHandling | None = None,
    max_opened_bytes: int = compression.LARGEST_BYTES,
    codec: int | None = None,
    max_made_bytes: int = compression.LARGEST_BYTES,
) -> Transformed:
    """The batches to produce of one partition's fetched records.

    `fetched`: the bytes of the response; batches may keep views of it. `position`: the next upstream offset wanted (a fetch may start
    before it, inside a batch). `end`: exclusive bound. `aborted`: (producer id, first offset) of the response's aborted transactions.
    `excluded`: upstream offsets that are not wanted.
    `max_batch_bytes`: the target topic's max.message.bytes. A merged batch stays below it; a single fetched batch may be larger.
    `max_opened_bytes`: a batch whose records take more than this when they are decompressed counts as corrupt (OversizedBatch).
    `codec`: of all batches to produce (None: each keeps its own). `max_made_bytes`: the result ends after this many bytes of new batches.
    The result ends before a corrupt batch, so that all before it is copied. If nothing before it moves the position, MalformedBatch is
    raised: the next fetch starts there. With `handling`, every wanted batch is given to the message handler; the result ends before a
    record at which the handler fails, or HandlerStopped is raised.
    """
    # Recompressing can grow bytes that do not compress by less than 1/64.
    body_limit = min(MERGED_BYTES, max_batch_bytes - max_batch_bytes // 64) - HEADER_SIZE
    limits: dict[str, Any] = {"body_limit": body_limit, "excluded": excluded, "max_opened": max_opened_bytes, "codec": codec}
    builder: _MergingBuilder | HandlingBuilder = (
        _MergingBuilder(position, end, **limits) if handling is None else HandlingBuilder(position, end, handling, **limits)
    )
    tracker = AbortedTracker(aborted)
    at = 0
    reached = position
    while at < len(fetched) and builder.made < max_made_bytes:
        if tracker.idle:
            at, reached = builder.take_small(fetched, at, reached)
        try:
            entry = read_entry(fetched, at)
            if entry is None:
                break
            header, view = entry
            # The offset of a legacy wrapper is its last one: whether it begins at or after the end shows when it is decompressed.
            if header.base_offset >= end and header.count >= 0:
                builder.pass_epoch(reached, header.leader_epoch if crc_is_valid(view) else -1)
                reached = end
                break
            _take(header, view, reached, builder, tracker)
        except MalformedBatch:
            if reached <= position:
                raise
            break
        except HandlerStopped as problem:
            if problem.offset <= position:
                raise
            reached = problem.offset
            break
        at += len(view)
        reached = max(reached, header.next_offset)
    next_position = min(reached, end)
    dropped = builder.finish()
    return Transformed(builder.batches(next_position), next_position, builder.epoch_at(next_position), dropped)


def _take(header: BatchHeader, view: memoryview, reached: int, builder: _MergingBuilder | HandlingBuilder, tracker: AbortedTracker) -> None:
    """Give one batch that begins before the end to the builder, unless it is left out. `reached`: where the batch before ended."""
    if not crc_is_valid(view):
        raise MalformedBatch(f"the batch at offset {header.base_offset} does not match its checksum: the source's log is corrupt")
    aborted_data = tracker.drop(header, view)
    builder.pass_epoch(reached, header.leader_epoch)
    if not (aborted_data or header.is_control or not header.count or header.next_offset <= builder.position):
        builder.add(header, view)


class _MergingBuilder(BatchBuilder):
    """Forwards or reframes wanted batches. It keeps small ones back until it knows which others they can be merged with."""

    def __init__(self, position: int, end: int, *, body_limit: int, **limits: Any) -> None:
        """`limits`: the others of BatchBuilder."""
        super().__init__(position, end, body_limit=body_limit, **limits)
        # The group being merged: its records, whether it has any batch yet, their codec, and the last
        # batch as long as it is the only one and could be forwarded.
        self._group = Reframer()
        self._codec = compression.NONE
        self._open = False
        self._forwardable: tuple[BatchHeader, memoryview] | None = None
        self._small = SmallBatches(position, end, FORWARD_BYTES - LENGTH_OVERHEAD, FORWARD_RECORDS, -1)
        # Below this, any batch that `take_small` takes next fits into the merge limit.
        self._row_limit = body_limit - FORWARD_BYTES - GROWTH_PER_RECORD * FORWARD_RECORDS

    def take_small(self, fetched: memoryview, at: int, reached: int) -> tuple[int, int]:
        """Merge a row of small uncompressed batches into the group, if one is open. The index behind the row, and the offset reached."""
        if not self._open or (self._codec != compression.NONE and self._wanted_codec is None):
            return at, reached
        small = self._small._replace(epoch=self.epoch)
        if self._excluded:
            small = small._replace(upper=min(self._end, next_start(self._excluded, reached)))
        taken = self._group.take_small(fetched, at, small, self._row_limit)
        if taken.stop > at:
            self._forwardable = None
            reached = max(reached, taken.next_offset)
        return taken.stop, reached

    def add(self, header: BatchHeader, view: memoryview) -> None:
        """Take one batch with some wanted records, unless they are excluded."""
        # Whether no record of the batch is excluded. The header of a legacy wrapper does not say where it begins.
        whole = not self._excluded or (header.count >= 0 and next_start(self._excluded, header.base_offset) >= header.next_offset)
        if not whole and header.count >= 0 and not self._wanted(header):
            return  # mostly so, and then the batch is not decompressed
        forwardable = whole and self._can_forward(header, view)
        weight = header.size * COMPRESSION_PENALTY[header.codec]
        if forwardable and (weight >= FORWARD_BYTES or header.count >= FORWARD_RECORDS):
            self._flush()
            self._forward(header, view)
            return
        converted, records = opened(header, view, self._max_opened)
        wanted = ((self.position, self._end),) if whole else self._wanted(converted)
        if wanted:
            self._reframe(converted, records, wanted, (header, view) if forwardable else None)

    def _reframe(
        self, header: BatchHeader, records: Buffer, wanted: Iterable[Range], forwardable: tuple[BatchHeader, memoryview] | None
    ) -> None:
        """Put the wanted offsets of a decompressed batch into the group. `forwardable`: the batch as it came, if it could be forwarded."""
        codec = self._codec_of(header)
        size = len(records) + GROWTH_PER_RECORD * header.count
        if codec != self._codec or len(self._group.body) + size > self._body_limit:
            self._flush()
        self._codec = codec
        is_whole = codec == header.codec or size <= self._body_limit
        for part, data in [(header, records)] if is_whole else divided(header, records, self._body_limit):
            if len(self._group.body) + len(data) + GROWTH_PER_RECORD * part.count > self._body_limit and self._group.count:
                self._flush()
            for lower, upper in wanted:
                self._group.add(part, data, lower, upper)
        self._forwardable = forwardable if not self._open and is_whole else None
        self._open = True

    def finish(self) -> int:
        """End the open group. Returns how many records a handler dropped: 0, because there is no handler."""
        self._flush()
        return 0

    def _can_forward(self, header: BatchHeader, view: memoryview) -> bool:
        return (
            header.magic == 2
            and not header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON)
            and self._codec_of(header) == header.codec
            and header.contiguous
            and header.base_offset >= self.position
            and header.next_offset <= self._end
            and (header.codec != compression.LZ4 or compression.all_read_lz4(view[HEADER_SIZE:]))
        )

    def _forward(self, header: BatchHeader, view: memoryview) -> None:
        runs = ((header.base_offset, header.count),)
        self._keep("forwarded", view, runs, count=header.count, min_timestamp=header.base_timestamp, max_timestamp=header.max_timestamp)

    def _flush(self) -> None:
        """End the open group. A batch that found nothing to be merged with is forwarded after all, if it can be."""
        if self._forwardable is not None:
            self._forward(*self._forwardable)
        elif self._group.count:
            done = self._group
            times = {"min_timestamp": done.base_timestamp, "max_timestamp": done.max_timestamp}
            self._keep("reframed", memoryview(assemble(done, self._codec)), tuple(done.runs), count=done.count, **times)
        # Without records there is nothing to produce: all of the group lay in holes or outside the bounds.
        self._group = Reframer()
        self._forwardable = None
        self._open = False
