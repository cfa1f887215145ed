"""Does something grow? The samples of many hours, in pieces, and a straight line through each figure. Pure.

The line is Theil and Sen's: the median of the slopes between all pairs of samples. A few outliers (a run beside a busy neighbour, a log
just before the broker compacts it) do not move it. Caches fill at the beginning, so the first part of the samples does not count.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

# The part of the samples, from the beginning, that does not count; of a piece, where the process is new in each piece.
WARM_UP = 0.25
# Fewer say nothing.
FEWEST = 8
# Pairs of so many samples are enough for a line; more are thinned out.
MOST = 400
# Growth over all hours, as a part of the median, from which on a figure counts as growing.
GROWTH = 0.10


@dataclass(frozen=True)
class Sample:
    """`hours`: hours of work before it, without the time between pieces. `figures`: by name, with the unit in the name."""

    piece: int
    hours: float
    figures: dict[str, float]


@dataclass(frozen=True)
class Line:
    """The line through one figure. `growth`: over the span of the samples that count, in the figure's unit."""

    name: str
    samples: int
    least: float
    median: float
    most: float
    growth: float

    @property
    def grows(self) -> bool:
        """Whether it grows by more than GROWTH of the median."""
        return self.samples >= FEWEST and self.growth > GROWTH * self.median


def encoded(sample: Sample) -> str:
    """One line of JSON."""
    return json.dumps(asdict(sample))


def decoded(lines: Iterable[str]) -> list[Sample]:
    """The samples of a file of such lines."""
    return [Sample(**json.loads(line)) for line in lines]


def lines(samples: Sequence[Sample], within_pieces: Iterable[str]) -> list[Line]:
    """The line through each figure. `within_pieces`: figures of a process that each piece starts anew; only pairs of one piece count."""
    apart = frozenset(within_pieces)
    names = sorted({name for sample in samples for name in sample.figures})
    return [_line(name, [sample for sample in samples if name in sample.figures], apart=name in apart) for name in names]


def _line(name: str, samples: list[Sample], *, apart: bool) -> Line:
    pieces = sorted({sample.piece for sample in samples}) if apart else [None]
    series = [_settled([sample for sample in samples if piece in {None, sample.piece}]) for piece in pieces]
    slopes = [_slope(name, one, other) for part in series for one, other in combinations(part, 2) if other.hours > one.hours]
    counted = [sample for part in series for sample in part]
    values = [sample.figures[name] for sample in counted]
    span = max((part[-1].hours - part[0].hours for part in series if part), default=0.0)
    growth = statistics.median(slopes) * span if slopes else 0.0
    return Line(name, len(values), min(values), statistics.median(values), max(values), growth)


def _settled(samples: list[Sample]) -> list[Sample]:
    kept = samples[int(len(samples) * WARM_UP) :]
    return kept[:: max(1, len(kept) // MOST)]


def _slope(name: str, one: Sample, other: Sample) -> float:
    return (other.figures[name] - one.figures[name]) / (other.hours - one.hours)
