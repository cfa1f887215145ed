"""Offsets of a group in pieces that a broker can store (pure).

A coordinator stores all offsets of one request as one batch of `__consumer_offsets`, which must fit that topic's `max.message.bytes`
(CoordinatorRuntime.append, in older releases GroupMetadataManager.storeOffsets): else it stores none of them. Not every user may see that
limit, so Ferry does not ask for it: a request begins with half of Kafka's default, and is halved when the broker says that it is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ferry.clusters.answers import TOO_MANY_OFFSETS

K = TypeVar("K", bound=tuple[str, int])
V = TypeVar("V")

# Half of what brokers allow unless they are configured otherwise.
BATCH_BYTES = 512 * 1024
# Of one record beside group, topic and metadata: its framing, the versions and lengths of key and value, offset, epoch, times and topic id.
RECORD_BYTES = 80


class OffsetBatches(Generic[K, V]):
    """The offsets of one group, by (topic, partition), that are still to be stored: `take` a batch until none is left.

    `limit` in bytes, `metadata` that of one offset. A batch that was taken is either `stored` or `refused` before the next one is taken.
    """

    def __init__(self, group: str, offsets: Mapping[K, V], metadata: Callable[[V], str], limit: int = BATCH_BYTES) -> None:
        self._sizes = {
            key: RECORD_BYTES + len(group.encode()) + len(key[0].encode()) + len(metadata(offset).encode())
            for key, offset in offsets.items()
        }
        self._left = dict(offsets)
        self.limit = limit

    def take(self) -> dict[K, V]:
        """The first of those that are left, as many as fit the limit, one at least; empty when none is left."""
        batch: dict[K, V] = {}
        size = 0
        for key, offset in self._left.items():
            size += self._sizes[key]
            if batch and size > self.limit:
                break
            batch[key] = offset
        return batch

    def stored(self, batch: Mapping[K, V]) -> None:
        """The broker took `batch`."""
        for key in batch:
            del self._left[key]

    def refused(self, batch: Mapping[K, V], code: int) -> bool:
        """Whether the broker's error `code` for `batch` may be one of its size: then the next ones have at most half of it."""
        if code not in TOO_MANY_OFFSETS or len(batch) < 2:
            return False
        self.limit = sum(self._sizes[key] for key in batch) // 2
        return True
