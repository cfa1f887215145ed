"""Two sequences in step: what one has and the other lacks, what stands in another order, what is altered. Pure.

Memory is bounded by `window` items of each side. Where the sides differ, the nearest place where they agree again is looked for within the
window, so that one lost item is one difference and not all that follow.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
WINDOW = 256


class Step(StrEnum):
    """How one place compares."""

    SAME = "same"
    MISSING = "missing"
    EXTRA = "extra"
    ORDER = "order"
    ALTERED = "altered"


@dataclass(frozen=True)
class Aligned(Generic[T]):
    """One place: its position in the wanted sequence (of an extra item: in the found one), and what stands there."""

    step: Step
    position: int
    wanted: T | None
    found: T | None


@dataclass
class _Side(Generic[T]):
    items: Iterator[T]
    position: int = 0
    ahead: list[T] = field(default_factory=list)

    def fill(self, count: int) -> list[T]:
        self.ahead += itertools.islice(self.items, max(0, count - len(self.ahead)))
        return self.ahead

    def take(self) -> tuple[int, T]:
        self.position += 1
        return self.position - 1, self.ahead.pop(0)


def align(wanted: Iterator[T], found: Iterator[T], *, window: int = WINDOW) -> Iterator[Aligned[T]]:
    """Every place of both sequences, in order."""
    left, right = _Side(wanted), _Side(found)
    while True:
        # One item ahead while all is well: a window is filled only where they differ.
        left.fill(1)
        right.fill(1)
        if not left.ahead and not right.ahead:
            return
        if left.ahead and right.ahead and left.ahead[0] == right.ahead[0]:
            yield _pair(left, right, Step.SAME)
        else:
            yield from _differing(left, right, window)


def _differing(left: _Side[T], right: _Side[T], window: int) -> Iterator[Aligned[T]]:
    ours, theirs = left.fill(window), right.fill(window)
    if (count := _reordered(ours, theirs)) is not None:
        for _ in range(count):
            yield _pair(left, right, Step.SAME if left.ahead[0] == right.ahead[0] else Step.ORDER)
        return
    skip_left, skip_right = _resynchronised(ours, theirs)
    paired = min(skip_left, skip_right)
    for _ in range(paired):
        yield _pair(left, right, Step.SAME if left.ahead[0] == right.ahead[0] else Step.ALTERED)
    for _ in range(skip_left - paired):
        yield Aligned(Step.MISSING, *left.take(), None)
    for _ in range(skip_right - paired):
        position, item = right.take()
        yield Aligned(Step.EXTRA, position, None, item)


def _pair(left: _Side[T], right: _Side[T], step: Step) -> Aligned[T]:
    (position, wanted), (_, found) = left.take(), right.take()
    return Aligned(step, position, wanted, found)


def _reordered(ours: list[T], theirs: list[T]) -> int | None:
    """The smallest count of items from here on that are the same ones in another order; None when there is none."""
    balance: Counter[T] = Counter()
    for count, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        for item, change in ((mine, 1), (other, -1)):
            balance[item] += change
            if not balance[item]:
                del balance[item]
        if not balance:
            return count
    return None


def _resynchronised(ours: list[T], theirs: list[T]) -> tuple[int, int]:
    """How many items to pass over on each side until they agree again, as few as possible; without such a place one of each side."""
    first: dict[T, int] = {}
    for index, item in enumerate(theirs):
        first.setdefault(item, index)
    # Both ends are a place too where one side has no more.
    ends = (len(ours), len(theirs)) if not ours or not theirs else (1, 1)
    places = [(index, first[item]) for index, item in enumerate(ours) if item in first]
    return min(places, key=lambda place: (sum(place), abs(place[0] - place[1]))) if places else ends
