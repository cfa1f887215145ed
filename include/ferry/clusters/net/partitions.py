"""The key of a partition, and the groups in which Kafka's requests and answers hold partitions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

K = TypeVar("K")
T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A topic and a partition number of it; equal to the plain pair."""

    topic: str
    partition: int

    def share(self, shares: int) -> int:
        """Which one of `shares` shares (lanes, partitions of the ledger) it belongs to. Ferry's topics rely on it: it must never change."""
        return (crc32(self.topic.encode()) + self.partition) % shares


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """The second of each pair by the first, in the given order. So partition numbers by topic: a request names each topic once."""
    found: dict[K, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def partitions_of(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Each partition of an answer, with its key."""
    return ((TopicPartition(topic.name, part.partition_index), part) for topic in topics for part in topic.partitions)


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
