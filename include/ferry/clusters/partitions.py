"""The key of a partition, and the grouping by topic that Kafka's requests and answers use."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class TopicPartition(NamedTuple):
    """A topic and a partition number of it; equal to the plain pair."""

    topic: str
    partition: int


def by_topic(parts: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Partition numbers, or whatever stands beside a topic, by topic in the given order: requests name each topic once."""
    found: dict[str, list[T]] = {}
    for topic, part in parts:
        found.setdefault(topic, []).append(part)
    return found


def partitions_of(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Each partition of an answer, with its key."""
    return ((TopicPartition(topic.name, part.partition_index), part) for topic in topics for part in topic.partitions)


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
