"""The reading half of a lane: fetches ahead for its cursors, and transforms what arrives into batches to produce.

One fetch is in flight for each source broker. The next one is sent before the batches of the last are appended, so that reading and
appending overlap. The feed handles what the source answers for each partition: if the partition is gone, recreated, truncated or
unreadable, it stops with a named error; expired ranges become losses; if a leader moved, the new one is asked.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka.future import Future

from ferry import clock
from ferry.clusters.logs.fetching import (
    FETCH_WAIT_MILLISECONDS,
    Fetched,
    FetchPosition,
    fetch_request,
    fetched_partitions,
    log_bounds,
    without_leader,
)
from ferry.clusters.logs.leader_epochs import ReadTo, divergence_of
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import FETCH, Action
from ferry.clusters.net.event_loop import EventLoop, Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.copying.buffer_limits import BufferLimits, RateLimiter
from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.following import Following
from ferry.copying.guard_tail import GuardTail
from ferry.copying.id_rewriting import handle_of
from ferry.copying.lane_messages import OPEN_END, Segment
from ferry.copying.planned_ends import PlannedEnds
from ferry.errors import (
    BatchTooLarge,
    FerryError,
    NotAuthorized,
    PartitionError,
    PartitionUnavailable,
    SourceMissing,
    SourceRecreated,
    SourceTruncated,
    UnreadableBatch,
    UnreadableRecord,
)
from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.handling.loading import Handle
from ferry.ledger.run_report import EXPIRED
from ferry.wire.batch import MalformedBatch, OversizedBatch
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.ranges import union
from ferry.wire.transform import transform

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
# A lane that follows asks again at this interval if nothing arrives. A broker answers at once when records arrive, except for a partition
# that was not in the request, because its leader had changed.
FOLLOW_WAIT_MILLISECONDS = 2_500
# A lane that follows asks for leaders at this interval. A broker that is cut off from the others but not from Ferry goes on as leader:
# nothing arrives in its log, and none of its answers shows this.
LOOK_SECONDS = 10.0
# The lane cannot name the offset: only the ledger shows which records of the old log were copied.
WHERE_A_RESTART_GOES_ON = "ferry plan names the offset at which ferry.on.recreate=restart goes on"


class SourceFeed:
    def __init__(  # noqa: PLR0917 - connections, then what is fetched
        self,
        loop: EventLoop,
        connection: ClusterConnection,
        leaders: Leaders,
        wakeup: Wakeup,
        cursors: CursorGroups,
        handle: Handle | None,
        limits: BufferLimits,
        rate_limiter: RateLimiter,
        following: Following,
        guard: GuardTail | None = None,
        codec: int | None = None,
        reroute: Mapping[str, int] | None = None,
    ) -> None:
        """`codec`: of the batches that are handed on (None: each keeps its own). `reroute`: as of PartitionHandling."""
        self._loop, self._following, self._guard, self._codec = loop, following, guard, codec
        self._connection, self._leaders, self._wakeup, self._groups = connection, leaders, wakeup, cursors
        # Cursors that may want a fetch, the one that has waited longest first. A cursor in flight comes back with the answer.
        self._waiting = cursors.news()
        self._in_flight: set[PartitionCursor] = set()
        self._cursors: dict[tuple[str, int], PartitionCursor] = {cursor.task.key: cursor for cursor in cursors.all}
        handles = {key: handle_of(handle, key[0]) for key in self._cursors}
        self._handlings = {key: PartitionHandling(found, *key, reroute) for key, found in handles.items() if found is not None}
        self._limits, self._rate_limiter = limits, rate_limiter
        # Bytes that a response may have: it holds one whole batch, even if the request asked for less.
        self._largest = max((cursor.task.batch_limit for cursor in self._cursors.values()), default=0)
        self._fetching: dict[int, list[PartitionCursor]] = {}
        # The third: whether the guard knows what the other flow wrote among these records.
        self._arrived: deque[tuple[list[FetchPosition], Future, bool]] = deque()
        self._ends = PlannedEnds(loop, connection, leaders, self._cursors)
        self._generation = 0
        self._stale = False

    def pump(self, held: int) -> None:
        """Send a fetch to every broker that has none in flight and leads a partition that wants one, within memory and rate limits.

        `held`: bytes of data that this lane, and lanes beside it, have in memory.
        """
        now, least = clock.monotonic(), self._fetch_bytes(len(self._cursors))  # there are no more brokers than partitions
        if not self._rate_limiter.allows(now) or not self._has_room(held, least):
            return
        if self._following.rests(now, self._groups):
            return
        by_node: dict[int, list[PartitionCursor]] = {}
        self._groups.sort()
        for cursor in tuple(self._waiting):
            cursor.pass_excluded()
            if not cursor.wants_fetch or cursor in self._in_flight:
                del self._waiting[cursor]
            elif now >= cursor.not_before:
                node = self._leaders.of(cursor.task.topic, cursor.task.partition).node
                if node < 0:
                    self._without_leader(cursor)
                elif node not in self._fetching and not self._connection.throttled(node):
                    by_node.setdefault(node, []).append(cursor)
        size = self._fetch_bytes(len(self._fetching.keys() | by_node.keys()))
        for node, wanted in by_node.items():
            if self._has_room(held, size):
                self._submit(node, wanted, size)
                self._following.fetches(now)

    @property
    def asking(self) -> bool:
        """Whether brokers have not answered yet."""
        return bool(self._fetching)

    def _fetch_bytes(self, brokers: int) -> int:
        """How many bytes a fetch asks for. Brokers of lanes that follow wait for records: so each has a response of each lane at a time."""
        lanes = max(1, len(self._connection.meter.own))
        waiting = 2 * brokers * lanes if self._following.goes_on else 1
        return min(self._limits.fetch, self._limits.held // max(1, waiting))

    def _has_room(self, held: int, size: int) -> bool:
        """Whether there is memory for the response of one more fetch that asks for `size` bytes."""
        reserved = self._connection.meter.reserved
        return not (held or reserved) or held + reserved + max(size, self._largest) <= self._limits.held

    def abandon(self) -> None:
        """Forget the fetches in flight: the cursors have gone back."""
        self._generation += 1
        self._fetching.clear()
        self._arrived.clear()
        self._in_flight.clear()
        self._waiting |= dict.fromkeys(self._groups.all)

    def arrivals(self) -> list[tuple[PartitionCursor, list[ProduceBatch]]]:
        """The batches of the responses that have arrived, in upstream order per partition. Moves the cursors on."""
        found = []
        while self._arrived:
            asked, future, known = self._arrived.popleft()
            cursors = [self._cursors[position.topic, position.partition] for position in asked]
            self._in_flight.difference_update(cursors)
            for cursor in cursors[1:] + cursors[:1]:  # the next fetch begins with another one
                self._waiting.pop(cursor, None)
                self._waiting[cursor] = None
            if future.exception is not None:
                self._lost(asked, self._connection.classified(future.exception))
                continue
            answers = [
                (self._cursors[fetched.asked.topic, fetched.asked.partition], fetched)
                for fetched in fetched_partitions(future.value, asked, self._leaders)
            ]
            taken = [(cursor, self._take(cursor, fetched, known=known)) for cursor, fetched in answers]
            found += [(cursor, batches) for cursor, batches in taken if batches]
            self._note_silence(answers)
        return found

    def _note_silence(self, answers: Sequence[tuple[PartitionCursor, Fetched]]) -> None:
        """Postpone partitions that got no whole batch although the source has more, unless other partitions filled the response."""
        if any(cursor.fetched > fetched.asked.offset for cursor, fetched in answers):
            return
        for cursor, fetched in answers:
            unsaid = not fetched.error and cursor.failure is None and not cursor.doubted and cursor.fetched == fetched.asked.offset
            if unsaid and fetched.last_stable_offset > cursor.fetched:
                what = f"offset {cursor.fetched}, although its last stable offset is {fetched.last_stable_offset}"
                self._postpone(cursor, f"the source sends no whole batch at {what}")

    async def mend(self, idle: Iterable[PartitionCursor]) -> None:
        """Refresh leaders if needed, and check offsets that the source contradicts. `idle`: cursors with nothing in flight."""
        old = self._following.goes_on and self._leaders.age > LOOK_SECONDS
        if (self._stale or old) and self._leaders.rested and not self._connection.all_throttled():
            with suppress(RequestNotSent, RequestLost):  # the next round asks again
                await self._leaders.refresh()
                self._stale = False
                self.check_identities()
                self._leave_old_leaders()
        doubted = [cursor for cursor in idle if cursor.doubted and cursor.failure is None]
        if doubted and not self._connection.all_throttled():
            looks = [self._loop.start(self._look_at_source, cursor) for cursor in doubted]
            for look in looks:
                await look

    def _leave_old_leaders(self) -> None:
        """Where a leader has moved, do not wait for the answer of the old one: it may hang."""
        for node, cursors in self._fetching.items():
            moved = [cursor for cursor in cursors if self._leaders.of(cursor.task.topic, cursor.task.partition).node != node]
            self._in_flight.difference_update(moved)
            self._waiting |= dict.fromkeys(moved)

    def _submit(self, node: int, cursors: list[PartitionCursor], size: int) -> None:
        generation, limits, meter = self._generation, self._limits, self._connection.meter
        wanted, needed = [cursor.fetch_position() for cursor in cursors], max(size, self._largest)
        self._in_flight.update(cursors)
        for cursor in cursors:
            del self._waiting[cursor]
        request = fetch_request(
            wanted,
            self._leaders,
            total_bytes=size,
            partition_bytes=min(limits.partition_fetch, size),
            wait_milliseconds=FOLLOW_WAIT_MILLISECONDS if self._following.goes_on else FETCH_WAIT_MILLISECONDS,
        )
        self._fetching[node] = cursors
        meter.reserved += needed
        future = self._connection.submit(request, node)

        def answered(_: Any) -> None:
            meter.reserved -= needed
            self._loop.start(self._arrive, generation, node, wanted, future)

        future.add_both(answered)

    async def _arrive(self, generation: int, node: int, asked: list[FetchPosition], future: Future) -> None:
        """Let the response arrive, when it is known which planned ends are right, and which of its records the other flow wrote."""
        known = False
        if future.exception is None:
            passed = {} if self._following.goes_on else self._ends.passed(asked, future.value)
            if passed:
                await self._ends.confirm(passed, node)
            if self._guard is not None and self._must_catch_up(self._guard, asked, future.value):
                known = await self._caught_up(self._guard, generation, asked)
        if generation == self._generation:
            self._fetching.pop(node, None)
            self._arrived.append((asked, future, known))
            self._wakeup.fire()

    def _must_catch_up(self, guard: GuardTail, asked: Iterable[FetchPosition], answer: Any) -> bool:
        """Whether the plan does not know what the other flow wrote among these records."""
        tasks = ((self._cursors[position.topic, position.partition].task, position.offset) for position in asked)
        beyond = any(task.key in guard and offset >= task.planned_end for task, offset in tasks)
        has_records = any(part.records for topic in answer.responses or () for part in topic.partitions or ())
        return beyond and (has_records or guard.is_old)

    async def _caught_up(self, guard: GuardTail, generation: int, asked: list[FetchPosition]) -> bool:
        """Wait until it is known which records the other flow wrote. Whether it is: not if nobody wants the response any more."""
        cursors = [self._cursors[position.topic, position.partition] for position in asked]
        known = False
        while not known and generation == self._generation and any(cursor.failure is None for cursor in cursors):
            try:
                await guard.catch_up()
                known = True
            except Exception as problem:
                if not isinstance(problem, FerryError | RequestNotSent | RequestLost):
                    log.exception("reading the ledger of the other flow")
                    problem = UnreadableRecord(f"reading the ledger of the other flow: {type(problem).__name__}: {problem}")
                self._lost(asked, problem)
                self._wakeup.fire()
                await self._loop.sleep(PAUSE_SECONDS)
        for cursor in cursors:
            if cursor.task.key in guard.declared:
                said = "an operator said which records of it came from the target"
                cursor.stop(PartitionUnavailable, f"{said}: Ferry plans it again when it next looks for new topics")
        return known

    def _take(self, cursor: PartitionCursor, fetched: Fetched, *, known: bool) -> list[ProduceBatch]:
        """`known`: whether the guard knows what the other flow wrote beyond what was planned."""
        segment = cursor.segment
        self._rate_limiter.spend(len(fetched.records))
        self._largest = max(self._largest, len(fetched.records))
        if segment is None or cursor.failure is not None or fetched.asked.offset != cursor.fetched or _is_quiet(cursor, segment, fetched):
            return []
        task = cursor.task
        if fetched.error:
            self._refused(cursor, fetched.error)
            return []
        if fetched.diverged:
            cursor.doubted = True
            return []
        end, excluded = segment.end, task.excluded
        try:
            if self._guard is not None and task.key in self._guard:
                self._guard.forget(task.key, cursor.committed_offset)
                excluded = union([*excluded, *self._guard.written(task.key, fetched.records)])
                end = end if known else min(end, task.planned_end)
            transformed = transform(
                fetched.records,
                position=cursor.fetched,
                end=end,
                aborted=fetched.aborted,
                excluded=excluded,
                max_batch_bytes=task.batch_limit,
                handling=self._handlings.get((task.topic, task.partition)),
                max_opened_bytes=self._limits.opened,
                codec=self._codec,
                max_made_bytes=LARGEST_BYTES if self._codec is None else self._limits.waiting,
            )
        except HandlerStopped as problem:
            cursor.stop(problem.error, str(problem))
            return []
        except OversizedBatch as problem:
            cursor.stop(BatchTooLarge, f"the batch at offset {cursor.fetched}: {problem}; raise ferry.memory.mb")
            return []
        except MalformedBatch as problem:
            cursor.stop(UnreadableBatch, str(problem))
            return []
        if transformed.next_position > cursor.fetched:
            cursor.fetched_to(transformed.next_position, transformed.last_leader_epoch)
            if transformed.dropped:
                cursor.note_dropped(transformed.dropped)
        else:
            self._note_nothing(cursor, segment, fetched)
        cursor.is_behind = fetched.last_stable_offset > cursor.fetched
        return transformed.batches

    def _note_nothing(self, cursor: PartitionCursor, segment: Segment, fetched: Fetched) -> None:
        """A response without a whole batch."""
        if segment.end == OPEN_END and fetched.last_stable_offset == cursor.fetched:
            cursor.troubled_since = 0.0
        elif not len(fetched.records) and fetched.last_stable_offset <= cursor.fetched:
            self._postpone(cursor, f"its last stable offset went back to {fetched.last_stable_offset}")
            cursor.doubted = fetched.last_stable_offset < cursor.fetched

    def _without_leader(self, cursor: PartitionCursor) -> None:
        match without_leader(self._connection, self._leaders, *cursor.task.key):
            case NotAuthorized() as problem:
                cursor.stop(PartitionError, str(problem))
            case PartitionError() as problem:
                cursor.fail(problem)
            case _:
                self._postpone(cursor, "it has no leader")

    def _refused(self, cursor: PartitionCursor, code: int) -> None:
        match FETCH.action(code):
            case Action.BOUNDS:
                cursor.doubted = True
            case Action.DENIED:
                granting = self._connection.granting(FETCH.right(code, topic=cursor.task.topic))
                cursor.stop(PartitionError, f"the source refuses to read it: {granting}")
            case Action.REFUSED:
                cursor.stop(UnreadableBatch, f"the source answers at offset {cursor.fetched}: {FETCH.told(code)}")
            case _:
                self._postpone(cursor, FETCH.told(code))

    def _lost(self, asked: list[FetchPosition], problem: Exception) -> None:
        self._stale = True
        for position in asked:
            cursor = self._cursors[position.topic, position.partition]
            if isinstance(problem, FerryError):
                cursor.fail(problem)
            else:
                self._postpone(cursor, str(problem))

    def _postpone(self, cursor: PartitionCursor, problem: str) -> None:
        now = clock.monotonic()
        self._stale = True
        cursor.not_before = now + PAUSE_SECONDS
        cursor.troubled_since = cursor.troubled_since or now
        if now - cursor.troubled_since > PATIENCE_SECONDS:
            cursor.stop(PartitionUnavailable, f"not readable for {PATIENCE_SECONDS:.0f} s: {problem}")

    def check_identities(self) -> None:
        """Stop the cursors whose topic was deleted, or created again. Call it after every refresh of the leaders."""
        for cursor in self._cursors.values():
            task, found = cursor.task, self._leaders.topic_id(cursor.task.topic)
            if found is not None and found != task.topic_id:
                cursor.stop(SourceRecreated, f"its topic id was {task.topic_id} and is {found} now; see ferry.on.recreate")
            elif cursor.troubled_since and self._leaders.is_gone(task.topic):
                cursor.stop(SourceMissing, "the source topic was deleted while it was copied")

    async def _look_at_source(self, cursor: PartitionCursor) -> None:
        """Ask the source whether its log begins after the offset, or was truncated before it. If neither, fetch from the offset again.

        Only leader epochs prove a truncation. If they do not prove it and the log seems to end before the offset, the feed asks again for
        PATIENCE_SECONDS; then the next run decides.
        """
        key, epoch, diverged = cursor.task.key, cursor.fetch_position().last_epoch, None
        try:
            start, end = await log_bounds(self._connection, self._leaders, *key)
            if cursor.fetched < start and self._guard is not None:
                await self._guard.catch_up()
            if epoch >= 0 and start <= cursor.fetched:
                diverged = await divergence_of(self._connection, self._leaders, key, ReadTo(cursor.fetched, epoch))
        except (RequestNotSent, RequestLost) as problem:
            self._postpone(cursor, str(problem))
            await self._loop.sleep(PAUSE_SECONDS)
            return
        except FerryError as problem:
            cursor.fail(problem)
            return
        cursor.doubted = False
        if cursor.fetched < start:
            written = self._guard.ever_written(key) if self._guard is not None else ()
            cursor.lose(start, EXPIRED.format(start), written)
        elif diverged is not None and diverged.proven:
            text = f"the source log was truncated to offset {diverged.end}; copied up to {cursor.fetched}"
            cursor.stop(SourceTruncated, f"{text}; {WHERE_A_RESTART_GOES_ON}")
        elif cursor.fetched > end:  # a leader that lags behind gives such an end too
            self._postpone(cursor, f"the source log ends at {end}, before the position {cursor.fetched}")
        elif epoch >= 0:
            cursor.forget_epoch()
        else:
            self._postpone(cursor, f"the source does not give offset {cursor.fetched}, although its log goes from {start} to {end}")


def _is_quiet(cursor: PartitionCursor, segment: Segment, fetched: Fetched) -> bool:
    """Whether nothing has arrived in a partition whose lane follows. Most answers of a quiet flow are of this kind."""
    quiet = segment.end == OPEN_END and not (fetched.error or fetched.diverged or len(fetched.records))
    if not quiet or fetched.last_stable_offset != cursor.fetched:
        return False
    cursor.troubled_since, cursor.is_behind = 0.0, False
    return True
