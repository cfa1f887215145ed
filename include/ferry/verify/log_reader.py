"""Reads a part of one partition's log as raw batches, as a read_committed consumer would see it.

It sends full fetches by topic id, one at a time, and skips long unwanted stretches. It checks checksums. Of control batches and aborted
data it gives only the headers. It raises a typed error if the topic was recreated or deleted.

If a broker asks for a pause because of a quota (KIP-219), the reader pauses as long as asked; such a pause is no error.
"""

from collections.abc import Iterator
from uuid import UUID

from kafka.future import Future

from ferry import clock
from ferry.clusters.logs.fetching import Fetched, FetchPosition, fetch_request, fetched_partitions, log_bounds, without_leader
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import FETCH, Action
from ferry.clusters.net.leaders import NO_TOPIC_ID, Leaders
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import LogChanged, PartitionError, PartitionUnavailable, UnreadableBatch
from ferry.verify.log_side import Batch
from ferry.wire.aborted import AbortedTracker
from ferry.wire.batch import MalformedBatch, crc_is_valid, iterate_batches
from ferry.wire.ranges import Ranges, next_start

# The most bytes of one response. The readers of both sides have two responses each in memory.
FETCH_BYTES = 8 << 20
# Shorter gaps between wanted offsets are read too: another fetch would cost more.
LEAP_OFFSETS = 20_000
PAUSE_SECONDS = 0.1
# Interval of checks for the end of a quota's pause; the fetch of the other side waits as long.
THROTTLE_CHECK_SECONDS = 0.05


class LogMoved(Exception):
    """Retention has dropped the offset to read."""


class LogReader:
    """Reads the wanted offsets of a partition in order. Call `request`, then `receive`, until `done`. `topic_id`: by the plan."""

    def __init__(self, connection: ClusterConnection, leaders: Leaders, key: TopicPartition, topic_id: UUID, wanted: Ranges) -> None:
        self._connection = connection
        self._leaders = leaders
        self._key = key
        self._topic_id = topic_id
        self._wanted = wanted
        self._at = wanted[0][0] if wanted else 0
        self._end = wanted[-1][1] if wanted else 0
        self._pending: tuple[FetchPosition, Future | None] | None = None
        self._troubled_since = 0.0

    @property
    def done(self) -> bool:
        return self._at >= self._end

    @property
    def in_flight(self) -> bool:
        return self._pending is not None

    def request(self) -> None:
        """Send the next fetch, unless one is in flight or nothing is left."""
        if self.done or self._pending is not None:
            return
        position = FetchPosition(*self._key, self._at, -1)
        node = self._node
        if node < 0 or self._connection.throttled(node):
            self._pending = (position, None)
            return
        request = fetch_request([position], self._leaders, total_bytes=FETCH_BYTES, partition_bytes=FETCH_BYTES)
        self._pending = (position, self._connection.submit(request, node))

    async def receive(self) -> list[Batch]:
        """The batches of the fetch in flight; none after a transient error, after which this waits.

        LogMoved, LogChanged, UnreadableBatch, PartitionUnavailable, PartitionError, NotAuthorized, ClusterUnreachable.
        """
        if self._pending is None:
            raise RuntimeError(f"{self._key.topic}-{self._key.partition}: nothing was asked for")
        (position, future), self._pending = self._pending, None
        try:
            if future is None:  # the partition has no leader, or a quota asks for a pause
                if self._node < 0:
                    raise without_leader(self._connection, self._leaders, *self._key)
                began = clock.monotonic()
                await self._connection.loop.sleep(THROTTLE_CHECK_SECONDS)
                self._troubled_since += clock.monotonic() - began if self._troubled_since else 0.0
                return []
            answer = await self._connection.answer_to(future)
            found = fetched_partitions(answer, [position], self._leaders)
            if found and not found[0].error:
                return await self._take(found[0])
            if found:
                await self._refused(found[0].error)
            elif not answer.throttle_time_ms:  # a broker over its quota answers without any partition
                await self._wait("it is left out of the answer")
        except (RequestNotSent, RequestLost) as problem:
            self._connection.require_answers()
            await self._wait(str(problem))
        return []

    @property
    def _node(self) -> int:
        return self._leaders.of(*self._key).node

    async def _take(self, fetched: Fetched) -> list[Batch]:
        before = self._at
        try:
            batches = list(self._batches(fetched))
        except MalformedBatch as problem:
            raise self._failure(UnreadableBatch, str(problem)) from problem
        if self._at > before:
            self._troubled_since = 0.0
            following = next_start(self._wanted, self._at)
            if following >= self._end or following - self._at > LEAP_OFFSETS:
                self._at = min(following, self._end)
        elif not len(fetched.records) and 0 <= fetched.last_stable_offset < self._end:
            start, end = await log_bounds(self._connection, self._leaders, *self._key)
            if end < self._end and start <= self._at:
                raise self._failure(LogChanged, f"the log ends at {end}, and held more: it was truncated")
            await self._wait(f"its last stable offset is {fetched.last_stable_offset}")
        else:
            await self._wait("nothing was answered")
        return batches

    def _batches(self, fetched: Fetched) -> Iterator[Batch]:
        tracker = AbortedTracker(fetched.aborted)
        for header, view in iterate_batches(fetched.records):
            if not crc_is_valid(view):
                raise MalformedBatch(f"the batch at offset {header.base_offset} does not match its checksum")
            dropped = tracker.drop(header, view)
            if header.base_offset >= self._end and header.count >= 0:
                self._at = self._end
                return
            self._at = max(self._at, header.next_offset)
            if dropped or header.is_control:
                yield Batch(header, memoryview(b""))
            elif header.count:  # compaction has emptied the others
                yield Batch(header, view)

    async def _refused(self, code: int) -> None:
        match FETCH.action(code):
            case Action.BOUNDS:
                start, end = await log_bounds(self._connection, self._leaders, *self._key)
                if self._at < start:
                    raise LogMoved
                if self._at > end:
                    raise self._failure(LogChanged, f"the log ends at {end}, before offset {self._at}: it was truncated")
                await self._wait(FETCH.told(code))
            case Action.DENIED:
                raise self._connection.denied(f"reading topic {self._key.topic}", FETCH.right(code, topic=self._key.topic))
            case Action.REFUSED:
                problem = f"cluster {self._connection.alias} answers at offset {self._at}: {FETCH.told(code)}"
                raise UnreadableBatch(*self._key, problem)
            case _:
                await self._wait(FETCH.told(code))

    async def _wait(self, problem: str) -> None:
        now = clock.monotonic()
        self._troubled_since = self._troubled_since or now
        if now - self._troubled_since > PATIENCE_SECONDS:
            raise self._failure(PartitionUnavailable, f"not readable for {PATIENCE_SECONDS:.0f} s: {problem}")
        await self._connection.loop.sleep(PAUSE_SECONDS)
        try:
            await self._leaders.refresh()
        except (RequestNotSent, RequestLost):
            return
        today = self._leaders.topic_id(self._key.topic)
        if self._topic_id not in {NO_TOPIC_ID, today} and (today is not None or self._leaders.is_gone(self._key.topic)):
            raise self._failure(LogChanged, f"the topic was deleted{' and created again' if today else ''} while it was verified")

    def _failure(self, kind: type[PartitionError], text: str) -> PartitionError:
        return kind(*self._key, f"cluster {self._connection.alias}: {text}")
