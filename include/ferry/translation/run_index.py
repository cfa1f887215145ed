"""The runs of one partition, in order of the target's log, so that each question takes one look-up.

A run (upstream start, downstream start, count) stands for `count` records with consecutive offsets on both sides. A receipt's runs increase
on both sides. Usually each receipt begins behind the one before it: then a question decodes only one receipt. Receipts that overlap (a
backfill, a receipt within another) are one block, and are decoded together. A record in two runs counts once. An upstream offset that was
copied twice has two records.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from ferry.wire.runs import DOWNSTREAM, OffsetRun, once


class Piece(NamedTuple):
    """Runs, at least one, that increase on both sides. The ends are exclusive: all their records are before them."""

    runs: Sequence[OffsetRun]
    upstream_end: int
    downstream_end: int


class RunIndex:
    """Finds records by either offset. All answers are None or 0 when there are no runs."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        blocks: list[_Block] = []
        for piece in sorted(pieces, key=lambda piece: piece.runs[0][1]):
            block = _Block(piece)
            while blocks and blocks[-1].overlaps(block):
                last = blocks.pop()
                last.take(block)
                block = last
            blocks.append(block)
        self._blocks = blocks
        self._upstream_ends = [block.upstream_end for block in blocks]
        self._downstream_ends = [block.downstream_end for block in blocks]
        self._places = [block.downstream_start for block in blocks]

    @cached_property
    def ordered_from(self) -> int:
        """The downstream offset from which on upstream offsets only rise."""
        return next((block.ordered_from for block in reversed(self._blocks) if block.ordered_from), 0)

    def first_downstream(self, upstream: int) -> int | None:
        """The smallest downstream offset of a record whose upstream offset is `upstream` or higher."""
        for block in self._blocks[(at := bisect_right(self._upstream_ends, upstream)) : at + 2]:
            found = block.downstream_start if upstream <= block.upstream_start else block.records.first_downstream(upstream)
            if found is not None:
                return found
        return None

    def first_upstream(self, downstream: int) -> int | None:
        """The smallest upstream offset of a record whose downstream offset is `downstream` or higher."""
        for block in self._blocks[(at := bisect_right(self._downstream_ends, downstream)) : at + 2]:
            found = block.upstream_start if downstream <= block.downstream_start else block.records.first_upstream(downstream)
            if found is not None:
                return found
        return None

    def shifted_from(self, upstream: int) -> bool:
        """Whether a record whose upstream offset is `upstream` or higher has another one downstream."""
        blocks = self._blocks[bisect_right(self._upstream_ends, upstream) :]
        return any(run[0] != run[1] and run[0] + run[2] > upstream for block in blocks for runs in block.pieces for run in runs)

    def upstream_before(self, downstream: int) -> int:
        """The end (exclusive) of the upstream offsets of all records before `downstream`; 0 when there are none."""
        at = bisect_right(self._places, downstream - 1)
        return self._blocks[at - 1].records.upstream_before(downstream) if at else 0


class _Block:
    """Pieces whose records may overlap. Earlier blocks hold only lower offsets of both sides, later blocks only higher ones."""

    def __init__(self, piece: Piece) -> None:
        self.pieces = [piece.runs]
        self.upstream_start, self.downstream_start, _ = piece.runs[0]
        self.upstream_end, self.downstream_end = piece.upstream_end, piece.downstream_end

    def overlaps(self, later: "_Block") -> bool:
        """Whether `later` begins before the end of this block on either side. On the target it does not begin before this block."""
        return later.upstream_start < self.upstream_end or later.downstream_start < self.downstream_end

    def take(self, other: "_Block") -> None:
        self.pieces += other.pieces
        self.upstream_start = min(self.upstream_start, other.upstream_start)
        self.upstream_end = max(self.upstream_end, other.upstream_end)
        self.downstream_end = max(self.downstream_end, other.downstream_end)

    @property
    def ordered_from(self) -> int:
        return self.records.ordered_from if len(self.pieces) > 1 else 0

    @cached_property
    def records(self) -> "_Records":
        return _Records(run for runs in self.pieces for run in runs)


class _Records:
    """The records of one block, decoded. The questions are those of RunIndex."""

    def __init__(self, runs: Iterable[OffsetRun]) -> None:
        self._runs = by_place = once(runs, DOWNSTREAM)
        self._places = [run[1] for run in by_place]
        # For each run: the lowest upstream offset from it on (itself and all later runs); the highest upstream end of the runs before it.
        self._lowest_from = list(accumulate((run[0] for run in reversed(by_place)), min))[::-1]
        self._highest_before = list(accumulate((run[0] + run[2] for run in by_place), max, initial=0))
        # Runs with a higher upstream end than all before. The first of these that ends behind an offset holds the first record from there.
        self._rising = [run for run, before in zip(by_place, self._highest_before, strict=False) if run[0] + run[2] > before]
        self._ends = [run[0] + run[2] for run in self._rising]

    def first_downstream(self, upstream: int) -> int | None:
        at = bisect_right(self._ends, upstream)
        if at == len(self._ends):
            return None
        start, place, _ = self._rising[at]
        return place + max(0, upstream - start)

    def first_upstream(self, downstream: int) -> int | None:
        at = bisect_right(self._places, downstream)
        later = self._lowest_from[at] if at < len(self._runs) else None
        upstream, place, count = self._runs[at - 1] if at else (0, 0, 0)
        if at and downstream < place + count:
            here = upstream + downstream - place
            return here if later is None else min(here, later)
        return later

    def upstream_before(self, downstream: int) -> int:
        at = bisect_right(self._places, downstream - 1)
        if not at:
            return 0
        upstream, place, count = self._runs[at - 1]
        return max(upstream + min(count, downstream - place), self._highest_before[at - 1])

    @property
    def ordered_from(self) -> int:
        for index in range(len(self._runs) - 1, 0, -1):
            before = self._runs[index - 1]
            if self._runs[index][0] < before[0] + before[2]:
                return before[1] + before[2]
        return 0
