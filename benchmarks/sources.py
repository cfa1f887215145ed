"""Source topics: filled once per shape with prepared batches, read by every round of both copiers, removed at the end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.flow import Clusters
from benchmarks.produce_limit import append
from benchmarks.shapes import Shape
from benchmarks.topics import NO_CONFIG, Topics


@contextmanager
def source_topics(clusters: Clusters, shape: Shape, config: Mapping[str, str] = NO_CONFIG) -> Iterator[tuple[str, ...]]:
    """The names of the shape's topics on the source, full. `config`: of the topics."""
    with _filled(clusters.source, shape, config) as (names, _):
        yield names


def produce_limit(clusters: Clusters, shape: Shape) -> float:
    """Records/s at which the shape's own batches are appended to fresh topics of the target."""
    with _filled(clusters.target, shape) as (_, seconds):
        return shape.records / seconds


@contextmanager
def _filled(bootstrap: str, shape: Shape, config: Mapping[str, str] = NO_CONFIG) -> Iterator[tuple[tuple[str, ...], float]]:
    topics = Topics(bootstrap)
    mark = uuid.uuid4().hex[:8]
    names = [f"benchmark-{mark}-{number}" for number in range(shape.topics)]
    topics.create(names, shape.partitions, config)
    try:
        yield tuple(names), append(bootstrap, names, shape)
    finally:
        topics.delete(names)
