"""The interval of record time that covers a range of offsets (pure, but for the two questions that it asks).

A run with the interval [from, until) begins at the first offset whose record is at or after `from`, and ends before the first one at or
after `until` (Kafka's offsetsForTimes). So `from` is the time of the range's first record, whatever the others say; and `until` is the
earliest time for which that first offset lies at or behind the range's end. Times of records need not be in order: the question itself is
monotonous in time, so doubling steps and a bisection find it.
"""

from __future__ import annotations

from collections.abc import Callable

# Offset of the first record at or after a time in ms; None: there is none.
OffsetAt = Callable[[int], int | None]
# Kafka's times are milliseconds of 63 bits; nobody's clock is beyond the year 9999.
LAST_MOMENT = 253_402_300_799_000


def interval_end(first_moment: int, end: int, offset_at: OffsetAt) -> int | None:
    """The earliest `until` > `first_moment` (ms) with no record at or after it below offset `end`; None: beyond what a calendar can say."""

    def covers(moment: int) -> bool:
        found = offset_at(moment)
        return found is None or found >= end

    low, step = first_moment, 1
    if low + step > LAST_MOMENT:  # some clients write micro- or nanoseconds
        return None
    while not covers(low + step):
        low += step
        step *= 2
        if low + step > LAST_MOMENT:
            return None
    high = low + step
    # covers(high), and not covers(low) unless low is the first moment, whose record is in the range.
    while high - low > 1:
        middle = (low + high) // 2
        if covers(middle):
            high = middle
        else:
            low = middle
    return high
