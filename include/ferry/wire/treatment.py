"""What becomes of each fetched batch: forwarded, reframed, handled, or only passed over.

`arrange` turns one partition's fetched bytes into units, in order. A unit is what one Produce request carries for the partition: one whole
batch. The upstream ranges of the units tile [position, next position): each reaches up to the next one's start, so what was passed over
(control, aborted and empty batches, holes) is settled together with the unit before it, or with the first unit if nothing comes before.

A batch is forwarded when it is magic 2, contiguous, CreateTime, inside the bounds, and worth a request of its own. Everything else is
reframed; neighbours of one codec are merged, because a Produce request costs 65-110 us of Python, and a record about 1 us to reframe.
With a message handler, every batch is handled (ferry.wire.handled) and none is forwarded or reframed.
Every batch's CRC is checked first: forwarding and reframing write new ones, which would hide a flipped bit.

What is excluded is passed over like a control batch. Ferry's own batches are excluded as wholes, so their header decides; where a range
ends inside a batch (compaction keeps a batch's first and last offset; a person may have named the range), the rest is reframed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.wire import compression
from ferry.wire.aborted import AbortedTracker
from ferry.wire.batch import (
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
from ferry.wire.opening import opened
from ferry.wire.ranges import Range, Ranges, next_start, outside
from ferry.wire.reframe import GROWTH_PER_RECORD, Piece, Reframer, SmallBatches, assemble
from ferry.wire.unit import Arrangement, Draft, Drafts
from ferry.wire.varint import Buffer

# Smaller batches are merged with their neighbours: copying this much costs about half of what a request does.
FORWARD_MINIMUM_BYTES = 32 * 1024
# Compressed batches are worth merging only when they are smaller by this factor, by codec: decompressing and above all compressing again
# costs more than the request that it saves. (None, gzip, snappy, lz4, zstd.)
COMPRESSION_PENALTY = (1, 64, 8, 8, 16)
# A batch of this many records is forwarded whatever its size, for the same reason.
FORWARD_MINIMUM_RECORDS = 100
# Upper bound of a merged batch's records, before compression.
MERGE_LIMIT_BYTES = 512 * 1024
# Kafka's default of max.message.bytes.
MAX_BATCH_BYTES = 1_048_588


class Limits(NamedTuple):
    """Sizes that decide between forwarding and merging, in bytes (records: a number)."""

    forward_minimum_bytes: int
    forward_minimum_records: int
    merge_limit_bytes: int


def arrange(
    fetched: memoryview,
    *,
    position: int,
    end: int,
    aborted: Iterable[tuple[int, int]] = (),
    excluded: Ranges = (),
    forward_minimum_bytes: int = FORWARD_MINIMUM_BYTES,
    forward_minimum_records: int = FORWARD_MINIMUM_RECORDS,
    merge_limit_bytes: int = MERGE_LIMIT_BYTES,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    handling: PartitionHandling | None = None,
    max_opened_bytes: int = compression.LARGEST_BYTES,
) -> Arrangement:
    """The units of one partition's fetched records.

    `fetched`: the bytes of the response; units may keep views of it. `position`: the next upstream offset wanted (a fetch may start before
    it, inside a batch). `end`: exclusive bound. `aborted`: (producer id, first offset) of the response's aborted transactions.
    `excluded`: upstream offsets that are not wanted.
    `max_batch_bytes`: the target topic's max.message.bytes; merging stays below it, a single batch may not.
    `max_opened_bytes`: a batch whose records take more than this when they are decompressed counts as corrupt (OversizedBatch).
    A corrupt batch ends the arrangement before it, so that all before it is copied. If nothing before it moves the position, MalformedBatch
    is raised: the next fetch comes to that. With `handling`, every wanted batch is given to the message handler; a record that it fails at
    ends the arrangement likewise, or raises HandlerStopped.
    """
    limits = Limits(
        forward_minimum_bytes,
        forward_minimum_records,
        # Recompressing can grow bytes that do not compress by less than 1/64.
        min(merge_limit_bytes, max_batch_bytes - max_batch_bytes // 64) - HEADER_SIZE,
    )
    builder: _Builder | HandlingBuilder = (
        _Builder(position, end, limits, excluded, max_opened_bytes)
        if handling is None
        else HandlingBuilder(position, end, limits.merge_limit_bytes, excluded, handling, max_opened_bytes)
    )
    tracker = AbortedTracker(aborted)
    at = 0
    reached = position
    while at < len(fetched):
        if tracker.idle:
            at, reached = builder.gather(fetched, at, reached)
        try:
            entry = read_entry(fetched, at)
            if entry is None:
                break
            header, view = entry
            # A legacy wrapper bears its last offset: whether it begins beyond the end shows when it is opened.
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
    return Arrangement(builder.units(next_position), next_position, at, builder.epoch_at(next_position), dropped)


def _take(header: BatchHeader, view: memoryview, reached: int, builder: _Builder | HandlingBuilder, tracker: AbortedTracker) -> None:
    """Gives one batch that begins below the end to the builder, unless it is to be passed over. `reached`: where the one before ended."""
    if not crc_is_valid(view):
        raise MalformedBatch(f"the batch at offset {header.base_offset} does not match its checksum: the source's log is corrupt")
    aborted_data = tracker.drop(header, view)
    builder.pass_epoch(reached, header.leader_epoch)
    if not (aborted_data or header.is_control or not header.count or header.next_offset <= builder.position):
        builder.add(header, view)


class _Builder(Drafts):
    """Collects wanted batches into drafts, holding back small ones until it is known what they can be merged with."""

    def __init__(self, position: int, end: int, limits: Limits, excluded: Ranges, max_opened: int) -> None:
        super().__init__(position)
        self._end = end
        self._excluded = excluded
        self._limits = limits
        self._max_opened = max_opened
        # The group being merged: its records, whether it has any batch yet, their codec, and the last
        # batch as long as it is the only one and could be forwarded.
        self._group = Reframer()
        self._codec = compression.NONE
        self._open = False
        self._forwardable: tuple[BatchHeader, memoryview] | None = None
        self._small = SmallBatches(position, end, limits.forward_minimum_bytes - LENGTH_OVERHEAD, limits.forward_minimum_records)
        # Below this, whatever batch `gather` takes next fits into the merge limit.
        self._body_limit = limits.merge_limit_bytes - limits.forward_minimum_bytes - GROWTH_PER_RECORD * limits.forward_minimum_records

    def gather(self, fetched: memoryview, at: int, reached: int) -> tuple[int, int]:
        """Merges the row of small plain batches that begins at index `at` into the open group, the fast way.

        Only goes on with a group that is open: `add` begins one. Returns the index after the last that was taken and the offset reached.
        """
        if not self._open or self._codec != compression.NONE:
            return at, reached
        small = self._small
        if self._excluded:
            small = small._replace(upper=min(self._end, next_start(self._excluded, reached)))
        taken = self._group.gather(fetched, at, small, self._body_limit)
        if taken.stop > at:
            self._forwardable = None
            # A row is merged as a whole, so no unit ends inside it: the epoch of its last batch is enough.
            self.pass_epoch(reached, taken.leader_epoch)
            reached = max(reached, taken.next_offset)
        return taken.stop, reached

    def add(self, header: BatchHeader, view: memoryview) -> None:
        """Takes one batch with records that are wanted, at least in part, unless they are excluded."""
        if self._excluded and not self._wholly_wanted(header):
            self._add_wanted(header, view)
            return
        forwardable = self._can_forward(header)
        if forwardable and not self._is_small(header):
            self._flush()
            self._forward(header, view)
            return
        converted, records = opened(header, view, self._max_opened)
        self._reframe(converted, records, [(self.position, self._end)], (header, view) if forwardable else None)

    def _wholly_wanted(self, header: BatchHeader) -> bool:
        """Whether no record of the batch is excluded. A legacy wrapper does not say where it begins."""
        return header.count >= 0 and next_start(self._excluded, header.base_offset) >= header.next_offset

    def _add_wanted(self, header: BatchHeader, view: memoryview) -> None:
        """Takes what is not excluded of a batch: mostly nothing, and then it need not be decompressed."""
        if header.count >= 0 and not self._wanted(header):
            return
        converted, records = opened(header, view, self._max_opened)
        wanted = self._wanted(converted)
        if wanted:
            self._reframe(converted, records, wanted, None)

    def _wanted(self, header: BatchHeader) -> Ranges:
        return outside(self._excluded, max(self.position, header.base_offset), min(self._end, header.next_offset))

    def _reframe(
        self, header: BatchHeader, records: Buffer, wanted: Iterable[Range], forwardable: tuple[BatchHeader, memoryview] | None
    ) -> None:
        """Puts the wanted offsets of a decompressed batch into the group; `forwardable`: the batch as it came, if it need not be."""
        size = len(records) + GROWTH_PER_RECORD * header.count
        if header.codec != self._codec or len(self._group.body) + size > self._limits.merge_limit_bytes:
            self._flush()
        for lower, upper in wanted:
            self._group.add(Piece(header, records, lower, upper))
        self._forwardable = forwardable if not self._open else None
        self._open = True
        self._codec = header.codec

    def finish(self) -> int:
        """Ends the open group; nothing is ever dropped without a draft that counts it."""
        self._flush()
        return 0

    def _can_forward(self, header: BatchHeader) -> bool:
        return (
            header.magic == 2
            and not header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON)
            and header.contiguous
            and header.base_offset >= self.position
            and header.next_offset <= self._end
        )

    def _is_small(self, header: BatchHeader) -> bool:
        limits = self._limits
        weight = header.size * COMPRESSION_PENALTY[header.codec]
        return weight < limits.forward_minimum_bytes and header.count < limits.forward_minimum_records

    def _forward(self, header: BatchHeader, view: memoryview) -> None:
        self._drafts.append(
            Draft(
                kind="forwarded",
                payload=view,
                count=header.count,
                runs=((header.base_offset, header.count),),
                upstream_start=header.base_offset,
                min_timestamp=header.base_timestamp,
                max_timestamp=header.max_timestamp,
            )
        )

    def _flush(self) -> None:
        """Ends the open group. A batch that found nothing to be merged with is forwarded after all, if it can be."""
        if self._forwardable is not None:
            self._forward(*self._forwardable)
        elif self._group.count:
            reframed = self._group.finish()
            self._drafts.append(
                Draft(
                    kind="reframed",
                    payload=memoryview(assemble(reframed, self._codec)),
                    count=reframed.count,
                    runs=reframed.runs,
                    upstream_start=reframed.runs[0][0],
                    min_timestamp=reframed.base_timestamp,
                    max_timestamp=reframed.max_timestamp,
                )
            )
        # Without records there is no unit: all of the group lay in holes or beyond a bound.
        self._group = Reframer()
        self._forwardable = None
        self._open = False
