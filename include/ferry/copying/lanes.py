"""Which lane writes which partition, and which task runs which lanes (pure).

The lane of a partition depends only on topic, partition number and the number of lanes, so it stays the same within a run. The number of
tasks changes only the speed. Runs may have different numbers of lanes: a run fences every lane that an earlier run used.
"""

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeVar


class Weighted(Protocol):
    @property
    def weight(self) -> int: ...


T = TypeVar("T", bound=Weighted)

# In one transaction: with topic names of 249 characters the coordinator's record has 250 kB; brokers allow 1 MiB by default.
MOST_PARTITIONS = 1_000
# If the config gives no number, there are at least this many.
FEWEST_LANES = 8
# And at most this many: every later run calls InitProducerId for each, one after the other, some ms each. With more than MOST_PARTITIONS
# partitions, a lane commits them in several transactions.
MOST_LANES = 128


def number_of_lanes(partitions: int, given: int | None) -> int:
    """How many lanes a run has that copies this many partitions: `given` by the config, or one for each MOST_PARTITIONS."""
    return given or max(FEWEST_LANES, min(-(-partitions // MOST_PARTITIONS), MOST_LANES))


def balance(items: Sequence[T], groups: int) -> list[list[T]]:
    """Spread `items` over at most `groups` groups, none empty: the heaviest item first, each into the lightest group."""
    heap: list[tuple[int, int]] = [(0, index) for index in range(max(1, min(groups, len(items))))]
    spread: list[list[T]] = [[] for _ in heap]
    for item in sorted(items, key=lambda item: -item.weight):
        load, index = heapq.heappop(heap)
        spread[index].append(item)
        heapq.heappush(heap, (load + item.weight, index))
    return [group for group in spread if group]
