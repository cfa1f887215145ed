"""The key of a partition, and the grouping that Kafka's requests use."""

from collections.abc import Iterable
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic and a partition number of it; equal to the plain pair."""

    topic: str
    partition: int


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partition numbers by topic, in the given order: requests name each topic once."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found
