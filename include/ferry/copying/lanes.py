"""Which lane writes which partition, and which task runs which lanes (pure).

A run gives each partition a lane when it plans, and keeps it. Another run may give it another one, and have another number of lanes: every
run fences all lanes that an earlier run used. The number of tasks changes only the speed.
"""

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeVar


class Weighted(Protocol):
    @property
    def weight(self) -> int: ...


T = TypeVar("T", bound=Weighted)

# The most partitions of one transaction: with names of 249 characters the coordinator's record has 250 kB; brokers' default is 1 MiB.
MOST_PARTITIONS = 1_000
# If the config gives no number, there are at least this many.
FEWEST_LANES = 8
# And at most this many: every later run calls InitProducerId for each, some ms of a broker's time each. With more than MOST_PARTITIONS
# partitions, a lane commits them in several transactions.
MOST_LANES = 128
# A tenth of a second of copying, longer than a transaction takes: for less, another lane costs more than it saves.
LANE_WEIGHT = 8 << 20
# About a second of copying: a Spark task takes a tenth of that to begin. A task that is done early takes the next group.
GROUP_WEIGHT, GROUPS_A_TASK = 64 << 20, 4


def number_of_lanes(partitions: int, given: int | None) -> int:
    """How many lanes a run has that copies this many partitions: `given` by the config, or one for each MOST_PARTITIONS."""
    return given or max(FEWEST_LANES, min(-(-partitions // MOST_PARTITIONS), MOST_LANES))


def spread(partitions: Sequence[T], lanes: int, transaction_bytes: int) -> list[list[T]]:
    """Partitions by lane: as few of the lanes as are worth their transactions, and each about as heavy as the others."""
    worth = min(LANE_WEIGHT, transaction_bytes)
    return balance(partitions, min(lanes, -(-sum(entry.weight for entry in partitions) // worth)))


def task_groups(lanes: Sequence[T], tasks: int, beside: int) -> list[list[T]]:
    """Groups of lanes, in the order in which tasks take them. If there is enough to do, so many that the last ones are small.

    `beside`: how many lanes a task can run side by side. If there are more groups than tasks, a group has at least `beside` lanes on
    average.
    """
    enough = sum(lane.weight for lane in lanes) // GROUP_WEIGHT
    groups = balance(lanes, max(tasks, min(enough, tasks * GROUPS_A_TASK, len(lanes) // beside)))
    return sorted(groups, key=lambda group: -sum(lane.weight for lane in group))


def balance(items: Sequence[T], groups: int) -> list[list[T]]:
    """Spread `items` over at most `groups` groups, none empty: the heaviest item first, each into the lightest group."""
    heap: list[tuple[int, int]] = [(0, index) for index in range(max(1, min(groups, len(items))))]
    spread: list[list[T]] = [[] for _ in heap]
    for item in sorted(items, key=lambda item: -item.weight):
        load, index = heapq.heappop(heap)
        spread[index].append(item)
        heapq.heappush(heap, (load + item.weight, index))
    return [group for group in spread if group]
