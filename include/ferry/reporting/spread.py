"""Least, mean and greatest of many values without keeping them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Of `count` values (at least one), in ms."""

    least: int
    mean: float
    greatest: int
    count: int

    def parts(self) -> list[float]:
        """For a record of the ledger; the inverse of `spread_of_parts`."""
        return [self.least, round(self.mean, 1), self.greatest, self.count]


def spread_of_parts(parts: Iterable[float] | None) -> Spread | None:
    """None stays None: older records have no spread. ValueError for anything else than four numbers."""
    if not parts:
        return None
    least, mean, greatest, count = parts
    return Spread(int(least), float(mean), int(greatest), int(count))


def merged(first: Spread | None, second: Spread | None) -> Spread | None:
    """Of the values of both."""
    if first is None or second is None:
        return first or second
    count = first.count + second.count
    mean = (first.mean * first.count + second.mean * second.count) / count
    return Spread(min(first.least, second.least), mean, max(first.greatest, second.greatest), count)
