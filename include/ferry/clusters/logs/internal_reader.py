"""Reading an internal topic completely: every record that was committed when the read began. Also the first records of any topic.

Commit markers reach partitions one by one, and another writer's open transaction hides later records. So a read_committed reader is done
only when its last stable offset has passed the high watermark that it captured at its start.

Compaction may remove a record before the reader comes to it, because a newer record of the same key is behind that high watermark. So the
reader goes on to the end that its last answer names: every record that was removed until then has a successor below that end. No config of
the topic (min.compaction.lag.ms) is needed for this.
"""

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from ferry import clock
from ferry.clusters.logs.fetch_round import ANSWER_BYTES, FetchRound, Told, key_of
from ferry.clusters.logs.fetching import Fetched
from ferry.clusters.logs.offset_listing import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, Found, OffsetListing
from ferry.clusters.net.error_policy import FETCH, Action
from ferry.clusters.net.failures import explained
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked, ConnectedCluster
from ferry.config import ClientRole
from ferry.errors import ClusterUnreachable, FerryError, UnreadableRecord
from ferry.wire.aborted import AbortedTracker
from ferry.wire.batch import MalformedBatch, crc_is_valid, iterate_batches
from ferry.wire.legacy import opened
from ferry.wire.ranges import NO_END, Range
from ferry.wire.records import keys_and_values

# Longer than 60 s: after that time a broker aborts an abandoned transaction of Ferry, which may hold the last stable offset back.
STALLED_SECONDS = 90.0
# After this a cluster that has never answered is unreachable.
CONTACT_MILLISECONDS = 15_000
# How long a broker may wait for an open transaction to end before it answers without records.
OPEN_WAIT_MILLISECONDS = 100
# Between two rounds of requests without news, for instance while a leader is elected.
PAUSE_SECONDS = 0.05
# The most bytes of one partition's answer. A whole batch always comes.
PARTITION_BYTES = 1 << 20
# The same if only the first record counts: a batch of usual size. A larger round takes longer to encode than it saves.
FIRST_BYTES, FIRSTS_A_ROUND, FEW_FIRSTS = 64 << 10, 500, 20
# Reading this many records takes less time than a seek to another offset.
READ_ON = 5_000
# The read ends at the high watermark of now, which Ferry asks the leader for. The number is above every offset.
NOW = 1 << 64
# A topic that was deleted since it was listed.
_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})

# The spans to read of a topic with these partitions; none if the topic is gone.
SpansOf = Callable[[Iterable[int]], Mapping[TopicPartition, Range]]


class InternalRecord(NamedTuple):
    """One record of an internal topic; `value` None is a tombstone, `timestamp` in ms, `epoch` the leader's (-1: not known)."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    epoch: int = -1


class InternalTopicReader:
    """Reads internal topics of one cluster. Not `committed`: also records of open and aborted transactions, only for upper bounds."""

    def __init__(self, cluster: ConnectedCluster, *, committed: bool = True) -> None:
        self._cluster, self._committed = cluster, committed
        self._offsets = OffsetListing(cluster, ClientRole.CONSUMER, CONTACT_MILLISECONDS)

    def partitions(self, topic: str) -> tuple[int, ...]:
        """Partition numbers of `topic`; empty when it does not exist. NotAuthorized when the user may not see it."""
        found = self._offsets.partitions(topic)
        if not isinstance(found, KafkaError):
            return found
        if found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return ()
        raise self._problem(topic, found)

    def ask_end_offsets(self, topic: str) -> Asked[dict[int, int]]:
        """High watermark per partition."""
        return self._offsets_of(topic, self.partitions(topic), LATEST).then(lambda found: found[0])

    def offsets_at(self, topic: str, milliseconds: int) -> dict[int, int]:
        """Per partition the offset of the first record at or after the time; the end offset if there is none."""
        partitions = self.partitions(topic)
        found, ends = self._offsets_of(topic, partitions, milliseconds, LATEST).answer()
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def read(
        self,
        topic: str,
        start: Mapping[int, int] | None = None,
        only: Collection[int] | None = None,
        *,
        complete: bool = True,
        seconds: float | None = None,
        least: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Iterator[InternalRecord]:
        """Every committed record of `topic` from `start` (offsets by partition) or the beginning, at least to the high watermarks of now.

        It sends its requests at once. So if several reads are begun before the first one is iterated, they take the time of one.
        `only`: these partitions. With `complete=False` the read ends where an open transaction begins: enough to show something, not to
        decide about data. A missing topic is empty. The read continues while records come, for any length of time: ClusterUnreachable only
        after STALLED_SECONDS of waiting without a new record. With `seconds` it ends after that time, complete or not.
        `least`: a complete read goes on to these offsets. The caller has written the records before them: a leader whose log ends earlier
        was replaced without knowing it, and in the next seconds other brokers are asked for the leader.
        """
        bound = NOW if complete else NO_END

        def spans(told: Iterable[int] = ()) -> dict[TopicPartition, Range]:
            wanted = (partition for partition in told or self.partitions(topic) if only is None or partition in only)
            return {TopicPartition(topic, partition): ((start or {}).get(partition, 0), bound) for partition in wanted}

        return (
            record for _, record in self._from(spans(), complete=complete, seconds=seconds, anew=spans if complete else None, least=least)
        )

    def records_at(self, topic: str, wanted: Mapping[int, Sequence[int]]) -> Iterator[InternalRecord]:
        """The committed records of `topic` at exactly these offsets (increasing, by partition), except those that were compacted away.

        The caller has read later records of the log before. Errors as in `read`.
        """
        spans = [[(TopicPartition(topic, partition), span) for span in spans_of(offsets)] for partition, offsets in wanted.items()]
        there = {partition: frozenset(offsets) for partition, offsets in wanted.items()}
        for together in zip_longest(*spans):  # one span of each partition at a time
            for _, record in self._from(dict(entry for entry in together if entry is not None), complete=True):
                if record.offset in there[record.partition]:
                    yield record

    def glance(self, topics: Mapping[str, int]) -> Iterator[tuple[str, InternalRecord]]:
        """Every committed record of many small topics (name → number of partitions) in one pass, with the topic's name.

        Each partition ends where an open transaction begins: enough to show something, not to decide about data.
        """
        keys = [TopicPartition(topic, partition) for topic, partitions in topics.items() for partition in range(partitions)]
        return self._from(dict.fromkeys(keys, (0, NO_END)), complete=False)

    def first_records(
        self, spans: Mapping[TopicPartition, Range], seconds: float
    ) -> dict[TopicPartition, InternalRecord | FerryError | None]:
        """The first committed record of each span of offsets; None: there is none before the end or an open transaction; or the error.

        Left out: partitions that could not be read in `seconds`, because their leader hangs or there are too many.
        """
        deadline, found = clock.monotonic() + seconds, dict[TopicPartition, InternalRecord | FerryError | None]()
        positions, size, total = {key: start for key, (start, _) in spans.items()}, FIRST_BYTES, ANSWER_BYTES
        while positions and (left := deadline - clock.monotonic()) > 0:
            asked, known = dict(islice(positions.items(), FIRSTS_A_ROUND)), len(found)
            # Half of the time that is left: a leader that hangs leaves time for the partitions of the next rounds.
            told = self._asked(asked, size, total_bytes=total, seconds=left / 2).answer()
            total = smaller(total) if told.late else total
            for part in told.fetched:
                key = key_of(part)
                first, positions[key], is_known = self._first_in(part, spans[key][1])
                if is_known:
                    found[key] = first
            if len(found) == known and all(positions[key] == offset for key, offset in asked.items()):
                clock.sleep(PAUSE_SECONDS)
            if len(found) - known < FEW_FIRSTS:  # a broker answers with one large batch at a time if the others exceed the size
                size = PARTITION_BYTES
            for key in asked:  # those that are left come last in the next rounds
                position = positions.pop(key)
                if key not in found:
                    positions[key] = position
        return found

    def _first_in(self, part: Fetched, bound: int) -> tuple[InternalRecord | FerryError | None, int, bool]:
        """The first record of an answer, or its error; the offset after the answer; whether no other answer is needed."""
        try:
            if part.error in _GONE:
                raise self._problem(part.asked.topic, KafkaError(part.error))
            records, position, end = self._taken(part, bound, complete=False)
        except FerryError as problem:
            return problem, part.asked.offset, True
        return records[0] if records else None, position, bool(records) or position >= min(end, bound)

    def _from(
        self,
        spans: Mapping[TopicPartition, Range],
        *,
        complete: bool,
        seconds: float | None = None,
        anew: SpansOf | None = None,
        least: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Iterator[tuple[str, InternalRecord]]:
        """The committed records of these spans of offsets, with the topic's name.

        `anew`: asks for the leaders too, even if they are known. The function returns the spans of the topic's partitions: there may be
        more partitions now, or none if the topic is gone.
        """
        left, size = _Left(spans, anew, least), ANSWER_BYTES

        def ask(wait: int) -> Asked[Told]:
            ending = {key for key in left.positions if left.bounds[key] == NOW}
            return self._asked(left.positions, PARTITION_BYTES, total_bytes=size, wait=wait, ending=ending, anew=left.anew is not None)

        def rounds(asked: Asked[Told]) -> Iterator[tuple[str, InternalRecord]]:
            nonlocal size
            deadline = math.inf if seconds is None else clock.monotonic() + seconds
            # Only time at the cluster counts: between two rounds the caller may take any time to decode.
            waited = 0.0
            while True:
                begun = clock.monotonic()
                told = asked.answer()
                waited += clock.monotonic() - begun + PAUSE_SECONDS
                size = smaller(size) if told.late else size
                if not left.learn(told, self._end_of):
                    return
                news = yield from self._taken_all(told, left.positions, left.bounds, complete=complete)
                waited = 0.0 if news else waited
                if not left.positions or clock.monotonic() > deadline:
                    return
                if not news:
                    clock.sleep(PAUSE_SECONDS)
                if waited > STALLED_SECONDS:
                    raise self._stalled(left.positions)
                asked = ask(OPEN_WAIT_MILLISECONDS if complete and not news else 0)

        return rounds(ask(0)) if left.positions else iter(())

    def _taken_all(
        self, told: Told, positions: dict[TopicPartition, int], bounds: Mapping[TopicPartition, int], *, complete: bool
    ) -> Generator[tuple[str, InternalRecord], None, bool]:
        """The records of a round; whether it moved any of the `positions`. Removes the positions of partitions that are read to the end."""
        news = False
        for part in told.fetched:
            key, bound = key_of(part), bounds[key_of(part)]
            records, position, end = self._taken(part, bound, complete=complete)
            if position != part.asked.offset or min(end, bound) <= position:
                news = True
                del positions[key]  # put back at the end: the next answer has other partitions first
                if position < min(end, bound):
                    positions[key] = position
            yield from ((key.topic, record) for record in records)
        return news

    def _stalled(self, positions: Iterable[TopicPartition]) -> ClusterUnreachable:
        named = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(positions))
        return ClusterUnreachable(
            f"cluster {self._cluster.alias}: {named} could not be read to the end: nothing came for {STALLED_SECONDS:.0f} s; "
            "an open transaction or a missing leader holds it back"
        )

    def _asked(self, positions: Mapping[TopicPartition, int], size: int, *, seconds: float = math.inf, **more: Any) -> Asked[Told]:
        """One round of answers, each of at most `size` bytes; `more` as of FetchRound."""
        wanted = FetchRound(positions, size, READ_COMMITTED if self._committed else READ_UNCOMMITTED, seconds=seconds, **more)
        contact = min(CONTACT_MILLISECONDS, seconds * 1000)
        return self._cluster.begin_asking(wanted.ask, role=ClientRole.CONSUMER, milliseconds=contact)

    def _taken(self, part: Fetched, bound: int, *, complete: bool) -> tuple[list[InternalRecord], int, float]:
        """The records below `bound`, the offset after them, and where the read of the partition ends. Raises errors that do not pass."""
        topic, partition, position = part.asked[:3]
        if not part.error:
            try:
                records, position = records_of(part, bound)
            except MalformedBatch as problem:
                raise UnreadableRecord(f"cluster {self._cluster.alias}: {topic}-{partition}: {problem}") from problem
            return records, position, math.inf if complete else self._end_of(part)
        if FETCH.action(part.error) is Action.BOUNDS:  # the log begins later, or ended before
            ends = self._offsets_of(topic, [partition], EARLIEST, LATEST).answer()
            first, last = (found.get(partition, position) for found in ends)
            return [], max(position, first), -1 if position > last else math.inf
        if FETCH.action(part.error) is Action.DENIED:
            raise self._problem(topic, KafkaError(part.error))
        return [], position, -1 if part.error in _GONE and not complete else math.inf

    def _end_of(self, part: Fetched) -> int:
        """The end of the partition for this reader, when its leader answered."""
        return part.last_stable_offset if self._committed else part.high_watermark

    def _offsets_of(self, topic: str, partitions: Iterable[int], *moments: int) -> Asked[list[dict[int, int]]]:
        """By partition, at EARLIEST, LATEST or times in ms; records of open and aborted transactions count."""

        def offsets(found: list[Found]) -> list[dict[int, int]]:
            for error in (error for _, problems in found for error in problems.values()):
                raise self._problem(topic, error)
            return [{key.partition: offset for key, offset in offsets.items()} for offsets, _ in found]

        keys = [TopicPartition(topic, partition) for partition in partitions]
        return self._offsets.ask(keys, [(at, False) for at in moments]).then(offsets)

    def _problem(self, topic: str, error: KafkaError) -> FerryError:
        return explained(self._cluster.cluster, f"reading {topic}", error, grant=f"Read on topic {topic}", role=ClientRole.CONSUMER)


class _Left:
    """What is left to read of spans of offsets."""

    def __init__(self, spans: Mapping[TopicPartition, Range], anew: SpansOf | None, least: Mapping[TopicPartition, int]) -> None:
        """`anew`: the partitions may be others by now, and each is read to its end of now, at least to `least`."""
        self.positions = {key: start for key, (start, bound) in spans.items() if start < bound}
        self.bounds = {key: bound for key, (_, bound) in spans.items()}
        self.anew, self._to_now, self._least = anew, anew is not None, least  # None as soon as the reader knows which partitions there are

    def learn(self, told: Told, end_of: Callable[[Fetched], int]) -> bool:
        """Take the bounds and the new partitions of an answer. Returns whether the topic is still there."""
        self.bounds.update((key, max(end, self._least.get(key, 0))) for key, end in told.ends.items())
        if self.anew is not None:
            now = self.anew(told.partitions)
            if not now:
                return False
            new = {key: span for key, span in now.items() if key not in self.bounds}
            self.positions.update({key: start for key, (start, _) in new.items()})
            self.bounds.update({key: bound for key, (_, bound) in new.items()})
            self.anew = None if told.partitions else self.anew
        if self._to_now:
            self.bounds.update({key_of(part): max(self.bounds[key_of(part)], end_of(part)) for part in told.fetched if not part.error})
        return True


def smaller(answer_bytes: int) -> int:
    """How many bytes to ask for after a broker gave no answer in time: a line with a long round trip carries little."""
    return max(FIRST_BYTES, answer_bytes // 4)


def spans_of(offsets: Iterable[int]) -> list[Range]:
    """The spans to read for these offsets (increasing); offsets with few others between them share a span (pure)."""
    spans: list[Range] = []
    for offset in offsets:
        if spans and offset - spans[-1][1] < READ_ON:
            spans[-1] = (spans[-1][0], offset + 1)
        else:
            spans.append((offset, offset + 1))
    return spans


def records_of(part: Fetched, bound: int) -> tuple[list[InternalRecord], int]:
    """The committed records of an answer below `bound`, and the offset after the last batch that was looked at.

    MalformedBatch, also if a batch does not match its checksum: Ferry would take a damaged position for a good one.
    """
    partition, position = part.asked.partition, part.asked.offset
    tracker, found = AbortedTracker(part.aborted), []
    for fetched, view in iterate_batches(part.records):
        if position >= bound:
            break
        if not crc_is_valid(view):
            raise MalformedBatch(f"the batch at offset {fetched.base_offset} does not match its checksum")
        if not tracker.drop(fetched, view) and not fetched.is_control and fetched.count and fetched.next_offset > position:
            header, body = opened(fetched, view)
            stamped = header.max_timestamp if header.is_log_append_time else None
            for offset, timestamp, key, value in keys_and_values(bytes(body), header.count):
                if position <= header.base_offset + offset < bound:
                    moment = header.base_timestamp + timestamp if stamped is None else stamped
                    found.append(InternalRecord(partition, header.base_offset + offset, moment, key or b"", value, header.leader_epoch))
        position = max(position, fetched.next_offset)
    return found, position
