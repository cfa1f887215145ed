"""Least, mean and greatest of many values in ms, without keeping the values: for delays and timestamps of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class MinMeanMax:
    """Of `count` values (at least one), in ms."""

    least: int
    mean: float
    greatest: int
    count: int

    def __add__(self, other: MinMeanMax) -> MinMeanMax:
        """Of the values of both."""
        count = self.count + other.count
        mean = (self.mean * self.count + other.mean * other.count) / count
        return MinMeanMax(min(self.least, other.least), mean, max(self.greatest, other.greatest), count)

    def until(self, moment: int) -> MinMeanMax:
        """For timestamps: their ages at `moment`."""
        return MinMeanMax(moment - self.greatest, moment - self.mean, moment - self.least, self.count)

    def parts(self) -> list[float]:
        """For a record of the ledger; the inverse of `of_parts`."""
        return [self.least, round(self.mean, 1), self.greatest, self.count]

    @classmethod
    def of_parts(cls, parts: list[float]) -> Self:
        """ValueError unless there are four numbers."""
        least, mean, greatest, count = parts
        return cls(int(least), float(mean), int(greatest), int(count))
