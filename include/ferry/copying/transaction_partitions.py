"""The remote partitions of which a lane's open transaction holds records, and how many it may hold.

The coordinator keeps the names of all of them in one record (TransactionLog), and the lane writes their positions and heads at the end.
Both have limits, so a transaction of very many partitions could never be committed. No I/O happens here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

PartitionKey = tuple[str, int]  # remote topic, partition
T = TypeVar("T")

# With names of 249 characters their record has 250 kB, a quarter of what brokers allow by default (1 MiB).
MOST_PARTITIONS = 1_000


class TransactionPartitions:
    """`keys`: the partitions of the open transaction. `full`: another partition was turned away and waits for the next transaction."""

    def __init__(self, most: int | None = None) -> None:
        self._most = MOST_PARTITIONS if most is None else most
        self.keys: set[PartitionKey] = set()
        self.full = False
        self._shared = 0

    def admit(self, key: PartitionKey) -> bool:
        """Whether records of this partition may join the transaction, which makes it a member."""
        if key not in self.keys and len(self.keys) >= self._most:
            self.full = True
            return False
        self.keys.add(key)
        return True

    def share(self, touched: Mapping[PartitionKey, T]) -> dict[PartitionKey, T]:
        """Those of the `touched` partitions to commit now: every member, and as many others as there is room for."""
        members = {key: value for key, value in touched.items() if key in self.keys}
        others = [key for key in touched if key not in self.keys]
        shared = members | {key: touched[key] for key in others[: max(0, self._most - len(members))]}
        self._shared = len(shared)
        return shared

    def end(self) -> None:
        """The transaction ended, either way."""
        self.keys.clear()
        self.full, self._shared = False, 0

    def halve(self) -> None:
        """The transaction failed: allow half as many as it held, if any. A broker may allow less than the default."""
        held = max(len(self.keys), self._shared)
        if held:
            self._most = max(1, min(self._most, held) // 2)
        self.end()
