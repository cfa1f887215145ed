"""Reading an internal topic completely: every record that was committed when the read began.

Commit markers reach partitions one by one, and another writer's open transaction hides later records. So a read_committed reader is done
only when its last stable offset has passed the high watermark that it captured at its start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from ferry.clusters.failures import explained, made
from ferry.clusters.kept import lent
from ferry.clusters.offset_listing import EARLIEST, LATEST, OffsetListing
from ferry.clusters.partitions import TopicPartition
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable, FerryError

# Longer than 60 s: after that time a broker aborts an abandoned transaction of Ferry, which may hold the last stable offset back.
STALLED_SECONDS = 90.0
# After this a cluster that has never answered is unreachable.
CONTACT_MILLISECONDS = 15_000
# For learning the leaders; a consumer that knows them begins at once.
CONNECT_SECONDS = 3.0
# A leader that hangs is given up after this (librdkafka's default is a minute), and the new one is asked. Fetches wait for nothing.
ANSWER_MILLISECONDS = 10_000
# How long a poll waits for a first record: between two polls Ferry checks its deadlines.
POLL_SECONDS = 0.03
MESSAGES_A_POLL = 5_000
# Reading so many records takes less time than a seek to another offset.
READ_ON = 5_000
# Above every offset: the read ends where the partition does.
UNBOUNDED = 1 << 63
# A topic that was deleted since it was listed.
_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001 - public names


class InternalRecord(NamedTuple):
    """One record of an internal topic; `value` None is a tombstone, `timestamp` in ms, `epoch` the leader's (-1: not known)."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    epoch: int = -1


class Span(NamedTuple):
    """Offsets `[start, end)` of a partition."""

    partition: int
    start: int
    end: int


class _Clients:
    """A consumer that joins no group, and a connection for questions about offsets."""

    def __init__(self, cluster: Cluster, role: ClientRole, *, committed: bool) -> None:
        settings = {"socket.timeout.ms": ANSWER_MILLISECONDS, **cluster.librdkafka(role)}
        settings |= {
            "group.id": "ferry-internal-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
            "log_level": 2,
        }
        self.consumer = made(cluster, role, partial(Consumer, settings))
        self.offsets = OffsetListing(cluster, role, CONTACT_MILLISECONDS)

    def close(self) -> None:
        self.consumer.close()
        self.offsets.close()


class InternalTopicReader:
    """Reads internal topics of one cluster; a context manager.

    With `committed=False` it also reads records of open and aborted transactions: only for upper bounds.
    """

    def __init__(self, cluster: Cluster, *, committed: bool = True) -> None:
        self._cluster, self._role = cluster, ClientRole.CONSUMER
        self._lent = lent("internal reader", cluster, lambda: _Clients(cluster, ClientRole.CONSUMER, committed=committed), committed)
        self._clients: _Clients
        self._closed = False

    def __enter__(self) -> InternalTopicReader:
        self._clients = self._lent.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._closed = True
        self._clients.consumer.unassign()
        self._lent.__exit__(*details)

    def partitions(self, topic: str) -> tuple[int, ...]:
        """Partition numbers of `topic`; empty when it does not exist. NotAuthorized when the user may not see it."""
        found = self._clients.offsets.partitions(topic)
        if not isinstance(found, KafkaError):
            return found
        if found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return ()
        raise self._problem(topic, found)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """High watermark per partition."""
        return self._offsets_of(topic, self.partitions(topic), LATEST)

    def offsets_at(self, topic: str, milliseconds: int) -> dict[int, int]:
        """Per partition the offset of the first record at or after the time; the end offset if there is none."""
        partitions = self.partitions(topic)
        found, ends = (self._offsets_of(topic, partitions, at) for at in (milliseconds, LATEST))
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def read(
        self,
        topic: str,
        start: Mapping[int, int] | None = None,
        only: int | None = None,
        *,
        complete: bool = True,
        seconds: float | None = None,
    ) -> Iterator[InternalRecord]:
        """Every committed record of `topic` up to the high watermarks of now, from `start` (offsets by partition) or the beginning.

        `only`: one partition. With `complete=False` the read ends where an open transaction begins: enough to show something, not to decide
        about data. A missing topic is empty. The read continues while records come, however long it takes: ClusterUnreachable only after
        STALLED_SECONDS of waiting without a new record. With `seconds` it ends after that time, complete or not.
        """
        partitions = [partition for partition in self.partitions(topic) if only is None or partition == only]
        bounds = {}
        positions = []
        # A read_committed client would give the last stable offset as the end; bounds need the high watermark.
        lows, highs = (self._offsets_of(topic, partitions, at) for at in (EARLIEST, LATEST))
        for partition, high in highs.items():
            low = lows[partition]
            begin = max(low, (start or {}).get(partition, low))
            if begin < high:
                bounds[topic, partition] = high
                positions.append(Place(topic, partition, begin if begin > low else OFFSET_BEGINNING))
        for _, record in self._from(positions, bounds, complete=complete, seconds=seconds):
            yield record

    def records_at(self, topic: str, wanted: Mapping[int, Sequence[int]]) -> Iterator[InternalRecord]:
        """The committed records of `topic` at exactly these offsets (increasing, by partition), except those that were compacted away.

        The caller has seen later records. Errors as in `read`.
        """
        spans = [spans_of(partition, offsets) for partition, offsets in wanted.items()]
        there = {partition: frozenset(offsets) for partition, offsets in wanted.items()}
        for together in zip_longest(*spans):  # one span of each partition at a time
            asked = [span for span in together if span is not None]
            positions = [Place(topic, span.partition, span.start) for span in asked]
            for _, record in self._from(positions, {(topic, span.partition): span.end for span in asked}, complete=True):
                if record.offset in there[record.partition]:
                    yield record

    def glance(self, topics: Mapping[str, int]) -> Iterator[tuple[str, InternalRecord]]:
        """Every committed record of many small topics (name → number of partitions) in one pass, with the topic's name.

        Each partition ends where an open transaction begins: enough to show something, not to decide about data.
        """
        keys = [(topic, partition) for topic, partitions in topics.items() for partition in range(partitions)]
        positions = [Place(topic, partition, OFFSET_BEGINNING) for topic, partition in keys]
        yield from self._from(positions, dict.fromkeys(keys, UNBOUNDED), complete=False)

    def _from(
        self, positions: list[Place], bounds: dict[tuple[str, int], int], *, complete: bool, seconds: float | None = None
    ) -> Iterator[tuple[str, InternalRecord]]:
        if not positions:
            return
        with suppress(KafkaException):  # then the read itself connects, half a second later
            self._clients.consumer.list_topics(positions[0].topic, timeout=CONNECT_SECONDS)
        self._clients.consumer.assign(positions)
        try:
            yield from self._until(bounds, complete=complete, seconds=seconds)
        finally:
            if not self._closed:  # a reader that was left early is closed before its generator
                self._clients.consumer.unassign()

    def _until(self, bounds: dict[tuple[str, int], int], *, complete: bool, seconds: float | None) -> Iterator[tuple[str, InternalRecord]]:
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        # Only time in the client counts: between two polls the caller may take any time to decode.
        waited = 0.0
        while bounds:
            asked = time.monotonic()
            # A poll for many returns only when it has them all or its time is over; so Ferry waits for the first one alone.
            messages = self._clients.consumer.consume(1, POLL_SECONDS)
            messages += self._clients.consumer.consume(MESSAGES_A_POLL, 0) if messages else []
            waited += time.monotonic() - asked
            for message in messages:
                error, key = message.error(), (message.topic() or "", message.partition())
                if error is None:
                    if key in bounds:
                        waited = 0.0
                        yield key[0], _record(message)
                        if message.offset() + 1 >= bounds[key]:
                            del bounds[key]
                elif self._ends_here(key, message.offset() or 0, error, bounds.get(key, 0), complete=complete):
                    waited = 0.0
                    bounds.pop(key, None)
            if time.monotonic() > deadline:
                return
            if bounds and waited > STALLED_SECONDS:
                named = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(bounds))
                raise ClusterUnreachable(
                    f"cluster {self._cluster.alias}: {named} could not be read to the end: nothing came for {STALLED_SECONDS:.0f} s; "
                    "an open transaction or a missing leader holds it back"
                )

    def _ends_here(self, key: tuple[str, int], offset: int, error: KafkaError, bound: int, *, complete: bool) -> bool:
        """Whether a partition that reported `error` has no more records to read; raises errors that are not temporary."""
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
            return not complete or offset >= bound
        if error.fatal() or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self._problem(key[0], error)
        return error.code() in _GONE and not complete

    def _offsets_of(self, topic: str, partitions: Iterable[int], at: int) -> dict[int, int]:
        """By partition, at EARLIEST, LATEST or a time in ms; records of open and aborted transactions count."""
        found, problems = self._clients.offsets.offsets((TopicPartition(topic, partition) for partition in partitions), at, committed=False)
        for error in problems.values():
            raise self._problem(topic, error)
        return {key.partition: offset for key, offset in found.items()}

    def _problem(self, topic: str, error: KafkaError) -> FerryError:
        return explained(self._cluster, f"reading {topic}", error, grant=f"Read on topic {topic}", role=self._role)


def spans_of(partition: int, offsets: Iterable[int]) -> list[Span]:
    """The spans to read for these offsets (increasing); offsets with few others between them share a span (pure)."""
    spans: list[Span] = []
    for offset in offsets:
        if spans and offset - spans[-1].end < READ_ON:
            spans[-1] = spans[-1]._replace(end=offset + 1)
        else:
            spans.append(Span(partition, offset, offset + 1))
    return spans


def _record(message: Message) -> InternalRecord:
    epoch = message.leader_epoch()
    place = message.partition(), message.offset(), message.timestamp()[1]
    return InternalRecord(*place, message.key() or b"", message.value(), -1 if epoch is None else epoch)
