"""Sets of offsets as sorted, disjoint, half-open ranges `[start, end)` that do not touch (pure).

A partition may have a hundred thousand such ranges to leave out of a copy: so functions that are called for each batch bisect.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

Range = tuple[int, int]
Ranges = tuple[Range, ...]

# Above every offset.
NO_END = 1 << 63


def union(ranges: Iterable[Range]) -> Ranges:
    """The same offsets, sorted and joined; ranges may overlap, touch or be empty."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def end_of_range_at(ranges: Ranges, offset: int) -> int:
    """Where the range that holds `offset` ends; `offset` itself if none does."""
    index = bisect_right(ranges, (offset, NO_END)) - 1
    return max(offset, ranges[index][1]) if index >= 0 else offset


def next_start(ranges: Ranges, offset: int) -> int:
    """The first offset at or after `offset` that a range holds; beyond every offset if there is none."""
    index = bisect_right(ranges, (offset, NO_END))
    if index and ranges[index - 1][1] > offset:
        return offset
    return ranges[index][0] if index < len(ranges) else NO_END


def within(ranges: Ranges, start: int, end: int) -> Ranges:
    """What of `[start, end)` the ranges hold."""
    first, last = max(0, bisect_right(ranges, (start, NO_END)) - 1), bisect_left(ranges, (end, 0))
    cut = ((max(start, low), min(end, high)) for low, high in ranges[first:last])
    return tuple((low, high) for low, high in cut if low < high)


def outside(ranges: Ranges, start: int, end: int) -> Ranges:
    """The part of `[start, end)` that is in no range."""
    edges = [start, *(edge for found in within(ranges, start, end) for edge in found), end]
    return tuple((low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high)


def size(ranges: Ranges) -> int:
    """How many offsets the ranges hold."""
    return sum(end - start for start, end in ranges)
