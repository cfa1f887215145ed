"""What a consumer reads at a translated position, held against what it would have read next at the source (pure)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.translation.histories import Content


@dataclass(frozen=True)
class Verdict:
    """Of one position. `read_again`: records that the group had read, or that come twice; `skipped`: records that it never gets."""

    read_again: int
    skipped: int
    exact: bool


def judge(wanted: Sequence[Content], read: Sequence[Content]) -> Verdict:
    """`wanted`: what the source's consumer would have read next; `read`: what the target's consumer reads."""
    read_again = (Counter(read) - Counter(wanted)).total()
    skipped = (Counter(wanted) - Counter(read)).total()
    return Verdict(read_again, skipped, list(wanted) == list(read))


@dataclass
class Tally:
    """Verdicts of one kind of position under one replicator.

    `untranslated`: the consumer would start by `auto.offset.reset`; what that costs by `earliest` and by `latest` is added up. `told`: how
    many positions the replicator itself calls inexact; None if it never says.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    untranslated: list[tuple[Verdict, Verdict]] = field(default_factory=list)
    told: int | None = None

    @property
    def positions(self) -> int:
        return len(self.verdicts) + len(self.untranslated)

    @property
    def exact(self) -> int:
        return sum(verdict.exact for verdict in self.verdicts)

    @property
    def read_again(self) -> tuple[int, int, int]:
        """Sum, median and maximum over the translated positions; the median is the lower one of two."""
        counts = [verdict.read_again for verdict in self.verdicts] or [0]
        return sum(counts), statistics.median_low(counts), max(counts)

    @property
    def skipped(self) -> int:
        return sum(verdict.skipped for verdict in self.verdicts)

    @property
    def reset(self) -> tuple[int, int]:
        """Of the untranslated: records read again by `earliest`, records skipped by `latest`."""
        return sum(early.read_again for early, _ in self.untranslated), sum(late.skipped for _, late in self.untranslated)


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    found = Tally()
    for tally in tallies:
        found.verdicts += tally.verdicts
        found.untranslated += tally.untranslated
        if tally.told is not None:
            found.told = (found.told or 0) + tally.told
    return found
