"""Splits offsets of a group into batches that a broker can store (pure).

A coordinator stores all offsets of one request as one batch of `__consumer_offsets`. If the batch exceeds `max.message.bytes` of that
topic, it stores none of them (CoordinatorRuntime.append, in older releases GroupMetadataManager.storeOffsets). Not every user may see that
limit, so Ferry does not ask for it: it begins with half of Kafka's default, and halves a request when the broker says that it is too large.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ferry.clusters.answers import TOO_MANY_OFFSETS

K = TypeVar("K", bound=tuple[str, int])
V = TypeVar("V")

# Half of what brokers allow by default.
BATCH_BYTES = 512 * 1024
# Size of a record without group, topic and metadata: framing, versions and lengths of key and value, offset, epoch, times, topic id.
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
        """The first offsets that are left, as many as fit the limit, at least one; empty if none is left."""
        batch: dict[K, V] = {}
        size = 0
        for key, offset in self._left.items():
            size += self._sizes[key]
            if batch and size > self.limit:
                break
            batch[key] = offset
        return batch

    def stored(self, batch: Mapping[K, V]) -> None:
        """The broker stored `batch`."""
        for key in batch:
            del self._left[key]

    def refused(self, batch: Mapping[K, V], code: int) -> bool:
        """Whether the broker's error `code` may mean that `batch` is too large. Then the next batches have at most half of its size."""
        if code not in TOO_MANY_OFFSETS or len(batch) < 2:
            return False
        self.limit = sum(self._sizes[key] for key in batch) // 2
        return True
