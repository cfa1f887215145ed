"""The runs of one partition, in order of the target's log, so that each question takes one look-up.

A run (upstream start, downstream start, count) stands for `count` records with consecutive offsets on both sides. Runs may come in any
order. A record in two runs (a receipt within another) counts once. An upstream offset that was copied twice has two records.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter

from ferry.wire.runs import DOWNSTREAM, OffsetRun, once


class RunIndex:
    """Finds records by either offset. All answers are None or 0 when there are no runs."""

    def __init__(self, runs: Iterable[OffsetRun]) -> None:
        self._runs = by_place = once(sorted(runs, key=itemgetter(DOWNSTREAM)), DOWNSTREAM)
        self._places = [run[1] for run in by_place]
        # For each run: the lowest upstream offset of it and the runs after it; the highest upstream end of the runs before it.
        self._lowest_from = list(accumulate((run[0] for run in reversed(by_place)), min))[::-1]
        self._highest_before = list(accumulate((run[0] + run[2] for run in by_place), max, initial=0))
        self.ordered_from = _ordered_from(by_place)
        # Runs with an upstream end higher than all before: the first one that ends behind an offset has the first record from it on.
        self._rising = [run for run, before in zip(by_place, self._highest_before, strict=False) if run[0] + run[2] > before]
        self._ends = [run[0] + run[2] for run in self._rising]

    def first_downstream(self, upstream: int) -> int | None:
        """The smallest downstream offset of a record whose upstream offset is `upstream` or higher."""
        at = bisect_right(self._ends, upstream)
        if at == len(self._ends):
            return None
        start, place, _ = self._rising[at]
        return place + max(0, upstream - start)

    def first_upstream(self, downstream: int) -> int | None:
        """The smallest upstream offset of a record whose downstream offset is `downstream` or higher."""
        at = bisect_right(self._places, downstream)
        later = self._lowest_from[at] if at < len(self._runs) else None
        upstream, place, count = self._runs[at - 1] if at else (0, 0, 0)
        if at and downstream < place + count:
            here = upstream + downstream - place
            return here if later is None else min(here, later)
        return later

    def upstream_before(self, downstream: int) -> int:
        """The end (exclusive) of the upstream offsets of all records before `downstream`; 0 when there are none."""
        at = bisect_right(self._places, downstream - 1)
        if not at:
            return 0
        upstream, place, count = self._runs[at - 1]
        return max(upstream + min(count, downstream - place), self._highest_before[at - 1])


def _ordered_from(runs: Sequence[OffsetRun]) -> int:
    """The downstream offset from which on upstream offsets only rise."""
    for index in range(len(runs) - 1, 0, -1):
        before = runs[index - 1]
        if runs[index][0] < before[0] + before[2]:
            return before[1] + before[2]
    return 0
