"""The runs of one partition, sorted by both offsets, so that each question takes two look-ups.

A run (upstream start, downstream start, count) stands for `count` records with consecutive offsets on both sides. Runs may come in any
order. A record in two runs (a receipt within another) counts once. An upstream offset that was copied twice has two records.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter

from ferry.wire.runs import DOWNSTREAM, Run, once


class RunIndex:
    """Finds records by either offset. All answers are None or 0 when there are no runs."""

    def __init__(self, runs: Iterable[Run]) -> None:
        by_place = once(sorted(runs, key=itemgetter(DOWNSTREAM)), DOWNSTREAM)
        self._places = [run[1] for run in by_place]
        self._runs = by_place
        # For each run: the lowest upstream offset of it and the runs after it; the highest end of it and the runs before it.
        self._lowest_from = _running_minimum([run[0] for run in by_place])
        self._highest_to = list(accumulate((run[0] + run[2] for run in by_place), max))
        self.ordered_from = _ordered_from(by_place)
        by_offset = by_place if not self.ordered_from else _first_copies(by_place)
        self._offsets = [run[0] for run in by_offset]
        self._copies = by_offset
        self._place_from = _running_minimum([run[1] for run in by_offset])

    def first_downstream(self, upstream: int) -> int | None:
        """The smallest downstream offset of a record whose upstream offset is `upstream` or higher."""
        at = bisect_right(self._offsets, upstream)
        later = self._place_from[at] if at < len(self._copies) else None
        if at and upstream < self._copies[at - 1][0] + self._copies[at - 1][2]:
            here = self._copies[at - 1][1] + upstream - self._copies[at - 1][0]
            return here if later is None else min(here, later)
        return later

    def first_upstream(self, downstream: int) -> int | None:
        """The smallest upstream offset of a record whose downstream offset is `downstream` or higher."""
        at = bisect_right(self._places, downstream)
        later = self._lowest_from[at] if at < len(self._runs) else None
        if at and downstream < _end(self._runs[at - 1]):
            here = self._runs[at - 1][0] + downstream - self._runs[at - 1][1]
            return here if later is None else min(here, later)
        return later

    def upstream_before(self, downstream: int) -> int:
        """The end (exclusive) of the upstream offsets of all records before `downstream`; 0 when there are none."""
        at = bisect_right(self._places, downstream - 1)
        if not at:
            return 0
        upstream, place, count = self._runs[at - 1]
        here = upstream + min(count, downstream - place)
        return max(here, self._highest_to[at - 2]) if at > 1 else here

    @property
    def first(self) -> int | None:
        """The downstream offset of the very first record."""
        return self._places[0] if self._places else None


def _end(run: Run) -> int:
    return run[1] + run[2]


def _running_minimum(values: Sequence[int]) -> list[int]:
    """For each place, the lowest value from there on."""
    return list(accumulate(reversed(values), min))[::-1]


def _ordered_from(runs: Sequence[Run]) -> int:
    """The downstream offset from which on upstream offsets only rise."""
    for index in range(len(runs) - 1, 0, -1):
        before = runs[index - 1]
        if runs[index][0] < before[0] + before[2]:
            return _end(before)
    return 0


def _first_copies(by_place: Sequence[Run]) -> list[Run]:
    """In order of upstream offsets; only the first copy of an offset that was copied twice."""
    by_offset = sorted(by_place)
    if all(left[0] + left[2] <= right[0] for left, right in pairwise(by_offset)):
        return by_offset
    starts: list[int] = []
    found: list[Run] = []
    for upstream, downstream, count in by_place:
        _insert(starts, found, (upstream, downstream, count))
    return found


def _insert(starts: list[int], found: list[Run], run: Run) -> None:
    """Add the parts of `run` whose upstream offsets are not in `found`. `starts`: where the runs of `found` begin."""
    upstream, end = run[0], run[0] + run[2]
    at = bisect_right(starts, upstream)
    if at and upstream < found[at - 1][0] + found[at - 1][2]:
        upstream = found[at - 1][0] + found[at - 1][2]
    while upstream < end:
        stop = min(end, starts[at]) if at < len(starts) else end
        if upstream < stop:
            starts.insert(at, upstream)
            found.insert(at, (upstream, run[1] + upstream - run[0], stop - upstream))
            at += 1
        if at < len(found):
            upstream = max(stop, found[at][0] + found[at][2]) if starts[at] == stop else stop
            at += 1
        else:
            upstream = stop
