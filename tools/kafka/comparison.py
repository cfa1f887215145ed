"""Are two topics equal? An answer by clients that share no code with what copied them (librdkafka).

Both sides are read by read_committed consumers, partition by partition, to the last stable offset of the beginning, in step, so memory is
bounded. Compared are order, key, value, headers (order, duplicates, nulls), timestamp and its type, and the partitions themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from tools.kafka.alignment import Aligned, Step, align
from tools.kafka.reading import Address, RecordSeen, partition_bounds, read_partition

DIFFERENCES_A_PARTITION = 5
# A partition that one side does not have.
NOTHING = (0, 0)
FIELDS = ("key", "value", "headers", "timestamp", "timestamp_type")


@dataclass(frozen=True)
class Difference:
    """One place that differs.

    kind: missing, extra, order; or the one field that differs (key, value, headers, timestamp, timestamp_type), or record for several.
    position: counts records from the start of the partition of the source topic, for an extra record of the remote topic.
    """

    topic: str
    partition: int
    position: int
    kind: str
    source: RecordSeen | None
    target: RecordSeen | None


@dataclass
class Comparison:
    """The outcome over all topics. `records`: places that were compared; where both sides are equal, the records of the source.

    A partition is left after its first few differences.
    """

    topics: int = 0
    records: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return not self.differences


@dataclass(frozen=True)
class _Compared:
    """A record, equal by content only."""

    content: tuple[object, ...]
    record: RecordSeen = field(compare=False)


def compare_topics(source: Address, target: Address, pairs: Mapping[str, str]) -> Comparison:
    """Compare each source topic with its remote topic (`pairs`). NotReadable when one is not there: nothing is not equal to nothing."""
    source_bounds = {topic: partition_bounds(source, topic) for topic in pairs}
    target_bounds = {remote: partition_bounds(target, remote) for remote in pairs.values()}
    outcome = Comparison(topics=len(pairs))
    for topic, remote in pairs.items():
        for partition in sorted({*source_bounds[topic], *target_bounds[remote]}):
            wanted = read_partition(source, topic, partition, source_bounds[topic].get(partition, NOTHING))
            found = read_partition(target, remote, partition, target_bounds[remote].get(partition, NOTHING))
            differences = (difference for difference in _places(outcome, topic, partition, wanted, found) if difference)
            outcome.differences += itertools.islice(differences, DIFFERENCES_A_PARTITION)
    return outcome


def _places(
    outcome: Comparison, topic: str, partition: int, wanted: Iterator[RecordSeen], found: Iterator[RecordSeen]
) -> Iterator[Difference | None]:
    as_wanted = (_compared(record._replace(timestamp_type=_copied_type(record.timestamp_type))) for record in wanted)
    for place in align(as_wanted, (_compared(record) for record in found)):
        outcome.records += 1
        yield None if place.step is Step.SAME else _difference(topic, partition, place)


def _difference(topic: str, partition: int, place: Aligned[_Compared]) -> Difference:
    source = place.wanted.record if place.wanted else None
    target = place.found.record if place.found else None
    kind = place.step.value
    if place.step is Step.ALTERED and source and target:
        differing = [name for name in FIELDS if getattr(source, name) != getattr(target, name)]
        kind = differing[0] if len(differing) == 1 else "record"
    return Difference(topic, partition, place.position, kind, source, target)


def _compared(record: RecordSeen) -> _Compared:
    return _Compared(tuple(getattr(record, name) for name in FIELDS), record)


def _copied_type(kind: int) -> int:
    """The broker's append time at the source arrives as the record's own: the target's append time would be another one."""
    return TIMESTAMP_CREATE_TIME if kind == TIMESTAMP_LOG_APPEND_TIME else kind
