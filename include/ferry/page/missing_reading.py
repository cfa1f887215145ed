"""The missing ranges of one topic: which of its gaps hold records, and between what times. Reads the source's records; bounded in time.

For each gap the first committed record in it is read. A gap without one holds control records and compacted holes only: nothing is missing
there. A gap begins at its first record, for a run by time cannot begin in a hole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ferry.clusters.failures import explained, made
from ferry.clusters.partitions import TopicPartition as Key
from ferry.page.coverage_timeline import MissingRange
from ferry.page.record_times import interval_end

if TYPE_CHECKING:
    from ferry.clusters.admin import ClusterAdmin
    from ferry.config import Flow
    from ferry.wire.ranges import Range

# All gaps of a topic together; what is not looked at by then is told without times.
LOOK_SECONDS = 20.0
POLL_SECONDS = 0.1
GAPS_LOOKED_AT = 500
NOT_LOOKED_AT = "its times were not looked up: there are too many missing ranges, or the source is slow"
NO_TIME = "its records have no time that an interval could name: ferry backfill cannot copy them either"

Gap = tuple[int, "Range"]
First = tuple[int, int]


def missing_ranges(flow: Flow, source: ClusterAdmin, topic: str, gaps: Sequence[Gap], obstacle: str) -> list[MissingRange]:
    """The gaps (partition, range) that hold records, with the interval that closes each. `obstacle`: why a backfill would be refused."""
    deadline = time.monotonic() + LOOK_SECONDS
    firsts = _first_records(flow, topic, gaps[:GAPS_LOOKED_AT], deadline) if gaps else {}
    found = []
    for gap in gaps:
        partition, (start, end) = gap
        if gap not in firsts:
            found.append(MissingRange(partition, start, end, obstacle=obstacle or NOT_LOOKED_AT))
        elif (first := firsts[gap]) is not None:
            found.append(_timed(source, Key(topic, partition), first, end, obstacle, deadline))
    return found


def _timed(source: ClusterAdmin, key: Key, first: First, end: int, obstacle: str, deadline: float) -> MissingRange:  # noqa: PLR0917 - a range
    offset, moment = first
    if moment < 0 or time.monotonic() > deadline:
        return MissingRange(key.partition, offset, end, obstacle=obstacle or (NO_TIME if moment < 0 else NOT_LOOKED_AT))

    def offset_at(milliseconds: int) -> int | None:
        found, problems = source.offsets_for_time([key], milliseconds)
        if key not in found:
            raise KafkaException(KafkaError(KafkaError._FAIL, problems.get(key, "no answer")))  # noqa: SLF001 - a public name
        return found[key]

    try:
        until = interval_end(moment, end, offset_at)
    except KafkaException as problem:
        return MissingRange(key.partition, offset, end, obstacle=obstacle or f"its times were not found: {problem.args[0].str()}")
    if until is None:
        return MissingRange(key.partition, offset, end, obstacle=obstacle or NO_TIME)
    return MissingRange(key.partition, offset, end, moment, until, obstacle)


def _first_records(flow: Flow, topic: str, gaps: Iterable[Gap], deadline: float) -> Mapping[Gap, First | None]:
    """Offset and time of the first committed record of each gap, None where it has none; gaps that were not reached are absent."""
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    settings = {
        **flow.source.librdkafka(ClientRole.CONSUMER),
        "group.id": "ferry-page",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 20,
        "log_level": 2,
    }
    waiting: dict[int, list[Gap]] = {}
    for gap in gaps:
        waiting.setdefault(gap[0], []).append(gap)
    found: dict[Gap, First | None] = {}
    consumer: Consumer = made(flow.source, ClientRole.CONSUMER, lambda: Consumer(settings))
    try:
        while waiting and time.monotonic() < deadline:
            # One gap of every partition at once.
            look = {partition: entries.pop(0) for partition, entries in waiting.items()}
            waiting = {partition: entries for partition, entries in waiting.items() if entries}
            found |= _look(flow, consumer, topic, look, deadline)
    finally:
        consumer.close()
    return found


def _look(flow: Flow, consumer: Consumer, topic: str, gaps: Mapping[int, Gap], deadline: float) -> dict[Gap, First | None]:
    found: dict[Gap, First | None] = {}
    left = dict(gaps)
    consumer.assign([TopicPartition(topic, partition, gap[1][0]) for partition, gap in gaps.items()])
    while left and time.monotonic() < deadline:
        message = consumer.poll(POLL_SECONDS)
        if message is None:
            continue
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public name
            raise explained(flow.source, f"reading {topic}", error, grant=f"Read on topic {topic}")
        gap = left.get(-1 if partition is None else partition)
        if gap is None or partition is None:
            continue
        start, end = gap[1]
        if error is None and offset is not None and start <= offset < end:
            found[gap] = (offset, message.timestamp()[1])
        elif error is None and offset is not None and offset < start:
            continue
        else:  # the log's end, or the first record lies behind the gap
            found[gap] = None
        del left[partition]
        consumer.pause([TopicPartition(topic, partition)])
    consumer.unassign()
    return found
