"""Which lane writes which partition, and which task runs which lanes (pure).

The lane of a partition depends on nothing but its name, its number and the number of lanes, so it stays the same within a run; the number
of tasks changes nothing but speed. Runs may have different numbers of lanes: a run fences every lane that any of them used.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeVar
from zlib import crc32

from ferry.copying.transaction_partitions import MOST_PARTITIONS


class Weighted(Protocol):
    """Something with an amount of work."""

    @property
    def weight(self) -> int: ...


T = TypeVar("T", bound=Weighted)

# Where the config gives no number. At least: flows of ordinary width copy with eight writers.
FEWEST_LANES = 8
# At most: the start of every later run inits them all, one after the other, some ms each. Lanes of a wider flow end more transactions.
MOST_LANES = 128


def number_of_lanes(partitions: int, given: int | None) -> int:
    """How many lanes a run has that copies so many partitions; `given` by the config, if it is.

    A transaction holds MOST_PARTITIONS at most: a lane with so many can have them all in one, a lane with more would end them in turns.
    """
    return given or max(FEWEST_LANES, min(-(-partitions // MOST_PARTITIONS), MOST_LANES))


def lane_of(topic: str, partition: int, lanes: int) -> int:
    """The lane of a source partition, 0 <= lane < lanes."""
    return (crc32(topic.encode()) + partition) % lanes


def transactional_id(flow: str, lane: int) -> str:
    """The stable transactional id of a lane."""
    return f"ferry-{flow}-{lane}"


def run_transactional_id(flow: str) -> str:
    """The transactional id that a run holds as a whole: the first thing that it takes."""
    return f"ferry-{flow}-run"


def upkeep_transactional_id(flow: str) -> str:
    """The transactional id under which the ledger is tidied."""
    return f"ferry-{flow}-upkeep"


def balance(items: Sequence[T], groups: int) -> list[list[T]]:
    """Spread `items` over at most `groups` non-empty groups: heaviest first, always to the lightest group."""
    heap: list[tuple[int, int]] = [(0, index) for index in range(max(1, min(groups, len(items))))]
    spread: list[list[T]] = [[] for _ in heap]
    for item in sorted(items, key=lambda item: -item.weight):
        load, index = heapq.heappop(heap)
        spread[index].append(item)
        heapq.heappush(heap, (load + item.weight, index))
    return [group for group in spread if group]
