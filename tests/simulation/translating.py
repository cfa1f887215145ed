"""Whether Ferry translates offsets right, in both directions: its offset map of a partition, against what the two logs themselves say.

Every record has another value, so the logs alone say which record of the target is the copy of which record of the source.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from random import Random

from tests.simulation.batches import Record

from ferry.ledger.receipts import Receipt
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.translation.translated import Inexact, Translation

# So many random positions of a partition, beside its begin and its end.
POSITIONS = 12
# A position may be so far behind the end.
AHEAD = 3


class Sides:
    """The committed records of a partition, without lost ones, and of its copy.

    `start`, `reached`: where the ledger begins and ends; None: it is empty.
    """

    def __init__(self, source: Sequence[Record], target: Sequence[Record], receipts: Sequence[Receipt], bounds: LogBounds) -> None:
        self._bounds = bounds
        self._source, self._target = [one.offset for one in source], [one.offset for one in target]
        self._wanted, self._there = [one.value for one in source], [one.value for one in target]
        places = {one.value: one.offset for one in reversed(target)}  # the first, if there are several
        last = {one.value: one.offset for one in target}
        self._pairs = [(one.offset, places[one.value], last[one.value]) for one in source if one.value in places]
        self.start = min((one.upstream_start for one in receipts), default=0)
        self.reached = max((one.upstream_end for one in receipts), default=None)

    def forward(self, offset: int, found: Translation) -> str:
        """What is wrong with the translation of a source offset; empty: nothing."""
        later = [pair for pair in self._pairs if pair[0] >= offset]
        if later:
            image = min(first for _, first, _ in later)
        elif self._pairs:
            image = 1 + max(last for _, _, last in self._pairs)
        else:
            image = self._bounds.target_end if self._bounds.exactly_once else self._bounds.target_start
        reason = Inexact.NOT_COPIED if self.reached is None else Inexact.AHEAD if offset > self.reached else None
        if not self._bounds.exactly_once or offset < self.start:
            image = found.image if found.image <= min((last for _, _, last in later), default=image) else image
            reason = reason or found.reason
        same = self._wanted[bisect_left(self._source, offset) :] == self._there[bisect_left(self._target, found.image) :]
        return self._told(f"source offset {offset}", found, Translation(image, reason), same=same)

    def back(self, offset: int, found: Translation) -> str:
        """The same of an offset of the target."""
        later = [upstream for upstream, first, _ in self._pairs if first >= offset]  # whoever stands there has read all other records
        begin = self._bounds.source_start
        image, expired = max(min(later, default=self.reached or 0), begin), min(later, default=begin) < begin
        reason = Inexact.NOT_COPIED if self.reached is None else Inexact.AHEAD if offset > self._bounds.target_end else None
        reason = reason or (Inexact.TARGET_EXPIRED if expired else None)
        if not self._bounds.exactly_once or self.start > begin:
            image, reason = min(image, found.image), found.reason or reason
        same = self._there[bisect_left(self._target, offset) :] == self._wanted[bisect_left(self._source, found.image) :]
        return self._told(f"target offset {offset}", found, Translation(image, reason), same=same)

    @staticmethod
    def _told(what: str, found: Translation, right: Translation, *, same: bool) -> str:
        if found.exact and not same:
            return f"{what} is {found.image}, and called exact, but other records follow"
        return "" if found == right else f"{what} is {found.image} ({found.reason}), not {right.image} ({right.reason})"


def mistranslated(sides: Sides, receipts: Sequence[Receipt], bounds: LogBounds) -> list[str]:
    """What is wrong with translations of random positions. `receipts`: all of the partition."""
    offset_map = OffsetMap(receipts, bounds)
    chance = Random(len(receipts) + bounds.target_end)

    def chosen(end: int) -> list[int]:
        return sorted({0, end, end + AHEAD, *(chance.randrange(end + AHEAD) for _ in range(POSITIONS))})

    found = [sides.forward(offset, offset_map.translate(offset)) for offset in chosen(sides.reached or 0)]
    found += [sides.back(offset, offset_map.invert(offset)) for offset in chosen(bounds.target_end)]
    return [problem for problem in found if problem]
