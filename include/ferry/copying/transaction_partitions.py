"""The remote partitions in a lane's open transaction, and how many there may be (pure).

The coordinator stores the names of all of them in one record (TransactionLog), and the lane writes their positions and heads before the
commit. Both have a largest size, so a transaction with too many partitions could never be committed.
"""

from collections.abc import Mapping
from typing import TypeVar

from ferry.clusters.partitions import TopicPartition

T = TypeVar("T")

# With topic names of 249 characters the coordinator's record has 250 kB; brokers allow 1 MiB by default.
MOST_PARTITIONS = 1_000


class TransactionPartitions:
    """`keys`: the partitions in the open transaction. `full`: another partition was refused, and waits for the next transaction."""

    def __init__(self, most: int | None = None) -> None:
        self._most = MOST_PARTITIONS if most is None else most
        self.keys: set[TopicPartition] = set()
        self.full = False
        self._shared = 0

    def admit(self, key: TopicPartition) -> bool:
        """Whether records of this partition may join the transaction. If so, the partition is added."""
        if key not in self.keys and len(self.keys) >= self._most:
            self.full = True
            return False
        self.keys.add(key)
        return True

    def share(self, touched: Mapping[TopicPartition, T]) -> dict[TopicPartition, T]:
        """The `touched` partitions to commit now: all that are in the transaction, and as many others as there is room for."""
        inside = {key: value for key, value in touched.items() if key in self.keys}
        others = [key for key in touched if key not in self.keys]
        shared = inside | {key: touched[key] for key in others[: max(0, self._most - len(inside))]}
        self._shared = len(shared)
        return shared

    def end(self) -> None:
        """The transaction was committed or aborted."""
        self.keys.clear()
        self.full, self._shared = False, 0

    def halve(self) -> None:
        """The transaction failed: allow half as many partitions as it held. A broker's limits may be smaller than the default."""
        held = max(len(self.keys), self._shared)
        if held:
            self._most = max(1, min(self._most, held) // 2)
        self.end()
