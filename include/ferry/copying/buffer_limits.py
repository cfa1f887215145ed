"""What a lane may hold in memory and send at a time, from the flow's settings (pure).

Of `ferry.memory.mb`, 5/16 is for data that is held: responses of the source that anything still refers to, and batches that Ferry wrote
itself and that wait or are in flight. The rest is for the batch at hand: at worst four copies of its records exist for a moment
(decompressed, contiguous, with new deltas, assembled), so one batch may have a sixth; a message handler makes twice as many.
A fetch is sent only when what it may bring still fits, or when nothing is held at all: a batch that is larger than all of it still comes
through, alone.
"""

from __future__ import annotations

from typing import NamedTuple

# One response: enough to keep four produce requests busy, little enough that several copies of it fit a worker.
FETCH_BYTES = 16 << 20
PARTITION_FETCH_BYTES = 8 << 20
# Fetched but not yet sent: more does not make a copy faster.
WAITING_BYTES = 24 << 20
# Per broker: four requests of 4 MiB.
WINDOW_BYTES = 16 << 20
SMALLEST_BYTES = 64 << 10
# With a bandwidth budget, so much of it at a time: a smooth flow, and a transaction that closes need not wait for its last bytes.
SLICE_SECONDS = 0.25


class BufferLimits(NamedTuple):
    """Bytes: of one fetch response and of one partition in it, under way to a broker, waiting to be sent, held in all, and of one batch's
    records when they are decompressed."""

    fetch: int
    partition_fetch: int
    window: int
    waiting: int
    held: int
    opened: int


def allowance_of(memory: int, bytes_per_second: float | None, *, handled: bool) -> BufferLimits:
    """For a worker with `memory` bytes for data and, if limited, this bandwidth. `handled`: a message handler sees every record."""
    held = memory * 5 // 16
    part = held if bytes_per_second is None else max(SMALLEST_BYTES, int(bytes_per_second * SLICE_SECONDS))
    return BufferLimits(
        fetch=min(FETCH_BYTES, held // 4, part * 2),
        partition_fetch=min(PARTITION_FETCH_BYTES, held // 4, part * 2),
        window=min(WINDOW_BYTES, held // 4, part),
        waiting=min(WAITING_BYTES, held // 4, part * 2),
        held=held,
        opened=memory // (12 if handled else 6),
    )
