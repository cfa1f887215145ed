"""What became of the records of one partition: lost, doubled, out of order, or never meant to be there (pure)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise


@dataclass(frozen=True)
class Verdict:
    """Counts of records. `out_of_order`: pairs of neighbours in the wrong order; `foreign`: found, though never committed at the source."""

    records: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    foreign: int = 0

    @property
    def exact(self) -> bool:
        """Whether all of them arrived, once, in order, and nothing else."""
        return not (self.lost or self.duplicated or self.out_of_order or self.foreign)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def judge(wanted: Sequence[Hashable], found: Sequence[Hashable]) -> Verdict:
    """`found` against `wanted`, which holds every record once, in order."""
    place = {record: index for index, record in enumerate(wanted)}
    assert len(place) == len(wanted), "what is wanted holds a record twice"
    first: list[int] = []
    seen: set[Hashable] = set()
    for record in found:
        if record not in seen and record in place:
            first.append(place[record])
        seen.add(record)
    return Verdict(
        records=len(wanted),
        lost=len(place) - len(first),
        duplicated=len(found) - len(seen),
        out_of_order=sum(after < before for before, after in pairwise(first)),
        foreign=len(seen) - len(first),
    )


def histogram(latencies: Iterable[float], bounds: Sequence[float]) -> list[int]:
    """How many of them (seconds) lie up to each bound, and beyond the last."""
    counts = [0] * (len(bounds) + 1)
    for latency in latencies:
        counts[bisect_left(bounds, latency)] += 1
    return counts
