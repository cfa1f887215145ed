"""The key of a partition."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A topic and a partition number of it; equal to the plain pair."""

    topic: str
    partition: int
