"""Cursors of one partition for tests, and the batches that they accept."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import PartitionTask, Segment
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.wire.produce_batch import ProduceBatch

COPIED, BACKFILLED = ReceiptKind.COPIED, ReceiptKind.BACKFILLED
TOPIC_ID, REMOTE_ID = UUID(int=1), UUID(int=2)


def unit(start: int, end: int, *, runs: tuple[tuple[int, int], ...] | None = None, epoch: int = 3) -> ProduceBatch:
    """A unit that settles [start, end); all offsets are records unless `runs` says otherwise."""
    runs = ((start, end - start),) if runs is None else runs
    count = sum(run[1] for run in runs)
    return ProduceBatch("forwarded", memoryview(b"x" * count), count, runs, start, end, 1_000 + start, 1_000 + end, epoch)


def seed_at(position: int) -> Receipt:
    return Receipt(ReceiptKind.SEED, "t", 0, str(TOPIC_ID), "A.t", str(REMOTE_ID), position, position)


def task(*segments: Segment, position: int = 0, seed: Receipt | None = None) -> PartitionTask:
    return PartitionTask("t", 0, TOPIC_ID, "A.t", REMOTE_ID, position, segments, seed=seed)


def guarded(*segments: Segment, excluded: tuple[tuple[int, int], ...], epoch: int = 4) -> PartitionCursor:
    return PartitionCursor(replace(task(*segments, position=segments[0].start), excluded=excluded, last_epoch=epoch))
