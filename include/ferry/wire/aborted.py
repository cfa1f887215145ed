"""Finds the batches of aborted transactions, which a read_committed reader must not see.

A Fetch response under read_committed lists the aborted transactions that overlap it, as (producer id, first offset). A transaction's data
ends at its producer's abort marker, a control batch. So the tracker goes through the batches in order and decides about each as a whole,
without decompressing it (clients/.../consumer/internals/CompletedFetch.java: consumeAbortedTransactionsUpTo, containsAbortMarker,
isBatchAborted).
"""

import struct
from collections.abc import Iterable

from ferry.wire import varint
from ferry.wire.batch import CONTROL, HEADER_SIZE, TRANSACTIONAL, BatchHeader, MalformedBatch

ABORT = 0
# Key of a control record: version, type (clients/.../record/ControlRecordType.java).
_CONTROL_KEY = struct.Struct(">hh")


def control_type(view: memoryview) -> int | None:
    """The type of a control batch (0 abort, 1 commit; there are others); None if compaction has emptied it. `view`: the whole batch."""
    if len(view) <= HEADER_SIZE:
        return None
    try:
        at = varint.decode(view, HEADER_SIZE)[1] + 1  # length, then the attributes byte
        at = varint.decode(view, at)[1]  # timestamp delta
        at = varint.decode(view, at)[1]  # offset delta
        length, at = varint.decode(view, at)
        if length < _CONTROL_KEY.size:
            raise MalformedBatch(f"a control record whose key has {length} bytes")
        kind: int = _CONTROL_KEY.unpack_from(view, at)[1]
    except (ValueError, struct.error) as error:
        raise MalformedBatch(f"an unreadable control record: {error}") from error
    return kind


class AbortedTracker:
    """Follows the aborted transactions of one partition through one Fetch response."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """`aborted`: (producer id, first offset of the transaction), in any order."""
        # The earliest last, so that it can be popped.
        self._waiting = sorted(((first_offset, producer_id) for producer_id, first_offset in aborted), reverse=True)
        self._open: set[int] = set()

    @property
    def idle(self) -> bool:
        """Whether no aborted transaction is open or comes later: then nothing more is dropped."""
        return not self._waiting and not self._open

    def drop(self, header: BatchHeader, view: memoryview) -> bool:
        """Whether this is a data batch of an aborted transaction. Call it for every batch in order, control batches too (False)."""
        if self.idle or header.producer_id < 0:
            return False
        waiting = self._waiting
        last_offset = header.last_offset
        while waiting and waiting[-1][0] <= last_offset:
            self._open.add(waiting.pop()[1])
        if header.attributes & CONTROL:
            if control_type(view) == ABORT:
                self._open.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL) and header.producer_id in self._open
