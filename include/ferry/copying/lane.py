"""One lane: copies its partitions to their ends, transaction by transaction. If the run follows, it goes on with what arrives.

Without transactions, a segment takes the place of a transaction, and a flush that of its commit (segment_end.py).

A lane runs on one event loop in one thread: it handles answers, sends batches, and always has the next fetch in flight. When a transaction
is full, the lane appends nothing more. Receipts, heads and positions are added (commit_records.py); the lane commits when all is answered.
If the outcome is unknown (a lost answer, or an answer that contradicts another one), the lane recovers: InitProducerId with the producer id
and epoch that it holds makes the broker end the old transaction. Then the lane reads the positions. They carry the mark of the transaction
that wrote them, and so show whether the old one was committed.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from ferry import clock
from ferry.clusters.groups.coordination import Fenced, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, Wakeup, together
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.abandoned_transactions import fence_zombie_requests, stop_hanging, stop_refused
from ferry.copying.appender import Accepted, Appender
from ferry.copying.buffer_limits import RateLimiter, buffer_limits
from ferry.copying.commit_records import CommitRecords
from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import Blame, CursorGroups, stop_disagreeing, stop_replaced
from ferry.copying.following import IDLE_SECONDS, Following
from ferry.copying.guard_tail import GuardTail
from ferry.copying.internal_writer import InternalWriter
from ferry.copying.lane_messages import CopyJob, Failure, LaneResult, LaneTask
from ferry.copying.plain_coordinator import coordinator_of
from ferry.copying.rerouting import HOMES_A_PLACE, ReroutingAppender
from ferry.copying.segment_end import FlushEnd, TransactionEnd
from ferry.copying.signals import StopSignals
from ferry.copying.source_feed import SourceFeed
from ferry.copying.transaction import AppendEpochs, TransactionEvent, TransactionPartitions, TransactionState, advance
from ferry.errors import BatchRefused, ClusterUnreachable, FerryError, PartitionUnavailable, Superseded
from ferry.handling.loading import Handle
from ferry.ledger.receipts import REFUSED
from ferry.wire.compression import codec_named
from ferry.wire.split import halved

log = logging.getLogger(__name__)

# At this interval a following lane that writes nothing asks the target for its topics, and whether it still holds its transactional id.
LOOK_SECONDS = 10.0
# Recoveries in a row without a commit; each may take as long as Ferry waits for a coordinator. The driver tries a failed lane again.
RECOVERIES = 6
RECOVERY_PAUSE_SECONDS = 0.2
# Up to this age of a transaction, unclear batches are sent again. The last answer may take 20 s more, and the time-out is 60 s.
UNCLEAR_SECONDS = 40.0


class Lane:
    """Runs one lane once. No other lane uses its connections meanwhile."""

    def __init__(  # noqa: PLR0917 - what lanes share, then what this one has
        self,
        loop: EventLoop,
        source: ClusterConnection,
        target: ClusterConnection,
        job: CopyJob,
        task: LaneTask,
        handle: Handle | None,
        *,
        reading: RateLimiter,
        writing: RateLimiter,
        stop_signals: StopSignals,
        beside: int,
        shared_source: ClusterConnection | None = None,
    ) -> None:
        """The lanes of a process share both rate limiters and `shared_source` (see GuardTail). `beside`: how many run at a time."""
        self._stop_signals, self._writing = stop_signals, writing
        self._loop, self._source, self._target, self._job, self._task = loop, source, target, job, task
        self._wakeup, self._meter = Wakeup(loop), source.meter
        self._limits = buffer_limits(job.flow.memory_bytes, job.bytes_per_second, handled=handle is not None, beside=beside)
        self._cursors = {partition.remote: PartitionCursor(partition) for partition in task.partitions}
        self._coordinator = coordinator_of(loop, target, job.flow, task.transactional_id)
        source_ids = {partition.topic: partition.topic_id for partition in task.partitions}
        remote_ids = {partition.remote_topic: partition.remote_topic_id for partition in task.partitions}
        self._source_leaders = Leaders(source, source_ids, source_ids)
        self._target_leaders = Leaders(target, [*remote_ids, *job.reroute, job.flow.ledger_topic, job.flow.state_topic], remote_ids)
        self._groups = CursorGroups(self._cursors.values())
        self._news = self._groups.news()
        guard = GuardTail.of(shared_source or source, job.flow, task.partitions)
        codec, from_source = codec_named(job.flow.compression_type), (loop, source, self._source_leaders, self._wakeup, self._groups)
        until = None if job.follow_until is None else clock.monotonic() + job.follow_until - clock.time()
        self._following = Following.of(until, job.flow.follow_commit_ms, grows=task.grows)
        self._feed = SourceFeed(*from_source, handle, self._limits, reading, self._following, guard, codec, job.reroute)
        self._identity, self._state = task.identity, TransactionState.READY
        self._blame, self._in_doubt, self._opened, self._sent_bytes = Blame(), False, 0.0, 0
        self._registered: set[TopicPartition] = set()
        self._transaction_partitions = TransactionPartitions(HOMES_A_PLACE + 1 if job.reroute else 1)
        self._epochs = AppendEpochs(target, self._target_leaders, task.partitions)
        self._commit_records = CommitRecords(loop, self._wakeup, job, self._groups, self._transaction_partitions, self._epochs)
        self._unchecked: set[TopicPartition] = set()  # partitions whose leader has not said yet whether an older transaction hangs there
        self._transactions_v2 = True

    async def run(self) -> LaneResult:
        """Copy until every partition is done or failed. Errors of clusters and partitions are in the result, not raised."""
        try:
            self._transactions_v2 = await self._coordinator.transactions_v2()
            await self._take()
            await self._copy_and_recover()
            if self._stop_signals.received and self._state is not TransactionState.READY:
                # Aborts, and fences batches in flight too. A batch that arrives after an EndTxn would open a transaction.
                self._identity = await self._coordinator.init(self._identity)
        except Fenced as problem:
            self._state = advance(self._state, TransactionEvent.FENCED)
            return self._result(fenced=True, failure=Failure(Superseded.__name__, str(problem), passing=False))
        except FerryError as problem:
            return self._result(failure=replace(Failure.of(problem), unreachable=isinstance(problem, ClusterUnreachable)))
        except (RequestNotSent, RequestLost, OutcomeUnknown) as problem:
            return self._result(failure=Failure(type(problem).__name__, str(problem), passing=True))
        finally:
            self._meter.own.pop(self._task.lane, None)
        return self._result()

    async def _take(self) -> None:
        """InitProducerId with the driver's producer id and epoch, then once more: from then on only this task knows the current ones."""
        self._identity = await self._prove()
        start = self._loop.start
        self._identity, *_ = await together(
            [start(self._coordinator.init, self._identity), start(self._source_leaders.refresh), start(self._target_leaders.refresh)]
        )
        self._feed.check_identities()
        self._check_remote_topics()
        await self._fresh_appenders()
        self._unchecked, positions = await together(
            [start(self._stop_hanging, self._cursors), start(self._coordinator.positions, self._cursors)]
        )
        self._adopt(self._identity)
        await self._compare_positions(positions)

    async def _stop_hanging(self, cursors: Mapping[TopicPartition, PartitionCursor]) -> set[TopicPartition]:
        """With the producer ids of all lanes: a partition may have changed its lane. Without transactions nothing joins those that hang."""
        if not self._job.flow.exactly_once:
            return set()
        producers = self._job.producers | {self._identity.producer_id}
        return await stop_hanging(self._target, self._target_leaders, cursors, producers, self._hold)

    async def _hold(self) -> None:
        self._identity = await self._prove()

    async def _prove(self) -> ProducerIdentity:
        return await self._coordinator.prove(self._identity, transactions_v2=self._transactions_v2)

    def _check_remote_topics(self) -> bool:
        return stop_replaced(self._cursors.values(), self._target_leaders)

    async def _compare_positions(self, positions: Mapping[tuple[str, int], CommittedOffset]) -> None:
        """Stop cursors whose position in the group is not the one that the driver read or that this lane committed, unless a seed sets it.

        A newer run may have moved the position: if one differs, the lane first proves that it still holds its transactional id (Fenced).
        """
        differing = {cursor: positions.get(key) for key, cursor in self._cursors.items() if not cursor.agrees_with(positions.get(key))}
        if differing:
            self._adopt(await self._prove())
        stop_disagreeing(differing, self._job.flow.position_group)

    async def _fresh_appenders(self) -> None:
        transactions_v2, transactional_id = self._transactions_v2, self._coordinator.transactional_id
        shared = (self._target, self._target_leaders, self._wakeup)
        own = (self._target, self._target_leaders, Wakeup(self._loop))  # receipts may be written while the lane waits for records
        new_ledger = partial(InternalWriter, *own, transactional_id, transactions_v2=transactions_v2)
        if transactional_id is None:
            self._ending: TransactionEnd | FlushEnd = FlushEnd(
                self._coordinator, new_ledger, partial(stop_refused, cursors=self._cursors, target=self._target)
            )
        else:
            self._ending = TransactionEnd(self._loop, self._coordinator, new_ledger(), None if transactions_v2 else self._register)
        self._records: Appender = (partial(ReroutingAppender, tasks=self._task.partitions) if self._job.reroute else Appender)(
            *shared,
            transactional_id=transactional_id,
            transactions_v2=transactions_v2,
            halve=partial(halved, limit=self._limits.opened),
            in_flight_bytes=self._limits.in_flight,
            skips=not self._job.flow.handling.abort_on_send_failure,
        )
        self._ending.adopt(self._identity)
        self._records.adopt(self._identity)

    async def _copy_and_recover(self) -> None:
        recoveries, known = 0, self._committed_total()
        blamed: TopicPartition | None = None
        while True:
            try:
                if recoveries:
                    await self._recover(blamed)
                return await self._copy()
            except (OutcomeUnknown, RequestLost, RequestNotSent) as problem:
                recoveries = 1 if self._committed_total() != known else recoveries + 1
                if recoveries > 1:
                    self._transaction_partitions.halve()  # a broker may refuse this number of partitions in one transaction
                known, blamed = self._committed_total(), getattr(problem, "partition", None)
                self._in_doubt = self._in_doubt or self._state is TransactionState.COMMITTING
                self._state = advance(self._state, TransactionEvent.OUTCOME_UNKNOWN)
                if recoveries > RECOVERIES:
                    raise ClusterUnreachable(f"lane {self._task.lane}: gave up after {RECOVERIES} recoveries: {problem}") from problem
                log.warning("lane %s: outcome unknown (%s): ending the transaction", self._task.lane, problem)

    def _committed_total(self) -> int:
        return sum(cursor.committed_position for cursor in self._cursors.values())

    async def _declare(self) -> None:
        """Without transactions, write seeds and first heads before any record: then a head always says which records have receipts."""
        self._groups.sort()
        while self._groups.touched:
            self._open()
            self._state = advance(self._state, TransactionEvent.CLOSE)
            await self._commit()
            self._groups.sort()

    async def _copy(self) -> None:
        if not self._job.flow.exactly_once:
            await self._declare()
        while not self._stop_signals.received:
            self._source.require_answers()
            self._target.require_answers()
            self._take_answers()
            if self._commit_records.early is None:
                self._take_arrivals()
                self._follow_on()
                self._stop_refused()  # before idle partitions are settled: a refused batch is not settled
                self._settle_fetched()
                await self._feed.mend(self._idle(self._groups.doubted))
            await self._mend_target()
            if self._state in {TransactionState.READY, TransactionState.OPEN}:
                await self._append()
            if self._is_closed() and await self._commits():
                continue
            self._fetch()
            if self._finished():
                await self._check_remote_topics_at_end()
                return
            pause = self._following.pause(self._state, clock.monotonic(), self._groups, waits=not self._records.idle)
            await self._wakeup.wait(pause)

    def _fetch(self) -> None:
        drains = self._following.drains(self._state, clock.monotonic(), self._groups, sending=self._records.sending)
        if self._records.waiting_bytes < self._limits.waiting and not drains:
            self._meter.own[self._task.lane] = self._records.own_bytes
            self._feed.pump(self._meter.all_held)

    def _reopen(self) -> None:
        """The target has accepted nothing so far, and would refuse a commit: go on, or end the transaction if nothing is left to send."""
        waits = any(map(self._records.busy, self._cursors))
        if not waits or clock.monotonic() - self._opened > UNCLEAR_SECONDS:
            raise OutcomeUnknown("the target has accepted nothing of the transaction")
        self._state = advance(self._state, TransactionEvent.NOTHING_ACCEPTED)

    def _follow_on(self) -> None:
        left = (self._job.follow_until or 0.0) - clock.time()
        if self._following.ends(clock.monotonic(), left, self._groups):
            for cursor in self._cursors.values():
                cursor.end_here(at_once=self._following.early)

    def _settle_fetched(self) -> None:
        self._groups.sort()
        idle = self._idle(self._news)  # a busy cursor is news again when its batches are accepted
        self._news.clear()
        for cursor in idle:
            cursor.settle_fetched()

    def _idle(self, cursors: Iterable[PartitionCursor]) -> list[PartitionCursor]:
        return [cursor for cursor in cursors if not self._records.busy(cursor.task.remote)]

    def _finished(self) -> bool:
        idle = self._state is TransactionState.READY and not self._records.unanswered
        return idle and not self._groups.unfinished and not self._groups.touched

    async def _check_remote_topics_at_end(self) -> None:
        """If a remote topic was deleted during the last commit, its records are gone. Otherwise only the next run would report it."""
        with suppress(RequestNotSent, RequestLost, ClusterUnreachable):  # everything is committed: if nobody answers, nothing has failed
            await self._target_leaders.refresh()
            self._check_remote_topics()

    def _take_answers(self) -> None:
        for answered in self._records.take_answers():
            if not isinstance(answered, Accepted):
                self._cursors[answered.key].skip(answered.batch, f"{REFUSED}: {answered.problem}")
            elif not self._commit_records.prediction.take(answered):
                self._cursors[answered.key].accept(answered.batch, answered.base_offset)

    def _take_arrivals(self) -> None:
        for cursor, batches in self._feed.arrivals():
            for batch in batches:
                self._records.enqueue(cursor.task.remote, batch)

    async def _mend_target(self) -> None:
        # If nothing arrives, the lane writes nothing, and no answer says that a remote topic was deleted, or that another run has the lane.
        old = self._following.goes_on and self._state is TransactionState.READY and self._target_leaders.age > LOOK_SECONDS
        if (self._records.leaders_stale or old) and self._target_leaders.rested:
            with suppress(RequestNotSent, RequestLost):  # the next round asks again
                await self._target_leaders.refresh()
                self._records.leaders_stale = False
                if self._check_remote_topics():
                    raise OutcomeUnknown("a remote topic was replaced")  # its batches, queued or in flight, must not be sent again
            if old:
                self._adopt(await self._prove())

    def _stop_refused(self) -> None:
        for key, refusal in self._records.refused().items():
            cursor = self._cursors[key]
            if cursor.failure is None:
                where = f"remote topic {key.topic}, source offset {cursor.settled}"
                cursor.stop(PartitionUnavailable if refusal.passing else BatchRefused, f"{where}: {refusal.problem}")

    def _is_closed(self) -> bool:
        """Close a transaction that is full, old or the last."""
        if self._state is TransactionState.OPEN and self._due():
            self._state = advance(self._state, TransactionEvent.CLOSE)
        return self._state is TransactionState.CLOSING

    def _due(self) -> bool:
        flow, now = self._job.flow, clock.monotonic()
        full = self._sent_bytes >= flow.transaction_bytes or self._groups.are_full
        if full or now - self._opened >= flow.transaction_seconds:
            return True
        if self._following.is_due(now, self._groups, asking=self._feed.asking, sending=self._records.sending):
            return True
        closed = self._transaction_partitions.full and not any(map(self._records.busy, self._transaction_partitions.keys))
        return closed or (not self._groups.unfinished and self._records.idle)

    def _open(self) -> None:
        self._state = advance(self._state, TransactionEvent.APPEND)
        self._opened, self._sent_bytes = clock.monotonic(), 0
        self._following.opens(self._opened)
        self._commit_records.begin()

    async def _append(self) -> None:
        if not self._writing.allows(clock.monotonic()):
            return
        if self._unchecked:
            await self._check_again()
        if not self._transactions_v2:
            keys = [key for key in self._records.sendable() if self._admits(key)]
            await self._register([*keys, *self._job.own_places(self._cursors[key].task.key for key in keys if key in self._cursors)])
            sent = self._records.pump(lambda key: key in self._registered and self._admits(key))
        else:
            sent = self._records.pump(self._admits)
        if self._state is TransactionState.READY and (sent or self._groups.touched):  # records, or positions that moved, or seeds
            self._open()
        self._sent_bytes += sent
        self._writing.spend(sent)

    def _admits(self, key: TopicPartition) -> bool:
        together = self._records.together(key)
        return self._unchecked.isdisjoint(together) and self._transaction_partitions.admit(together)

    def _unclear_sent_again(self) -> bool:
        """Send batches again that are not accepted, but the log may hold (see Appender), or receipts name. Whether there are any."""
        unclear = self._records.unclear if self._job.flow.exactly_once else []
        unclear += filter(self._records.busy, self._commit_records.prediction.predicted)
        if unclear and (clock.monotonic() - self._opened > UNCLEAR_SECONDS or not self._records.refusals.keys().isdisjoint(unclear)):
            topic, partition = unclear[0]
            raise OutcomeUnknown(f"{topic}-{partition} does not say whether it holds a batch that was sent", unclear[0])
        self._records.pump(lambda key: key in unclear and self._admits(key))
        return bool(unclear)

    async def _check_again(self) -> None:
        sendable = {each for key in self._records.sendable() for each in self._records.together(key)}
        due = {key for key in sendable & self._unchecked if self._target_leaders.of(*key).node >= 0}
        asked = {key: cursor for key in due if (cursor := self._cursors[key]).failure is None}
        left = await self._stop_hanging(asked)
        if any(cursor.failure is not None for cursor in asked.values()):
            raise OutcomeUnknown("an older transaction is open in a remote partition")  # its queued batches must not be sent
        self._unchecked -= asked.keys() - left
        for key in due & self._unchecked:
            self._records.postpone(key, "its leader does not say whether an older transaction is open there")

    async def _register(self, keys: Iterable[TopicPartition]) -> None:
        """Add partitions to the transaction, and first the group. The coordinator needs this before KIP-890's protocol."""
        missing = [key for key in keys if key not in self._registered]
        if missing:
            if self._state is TransactionState.READY:
                self._open()
            group = [] if self._registered else [self._loop.start(self._coordinator.add_offsets, self._identity)]
            try:
                await together([*group, self._loop.start(self._coordinator.add_partitions, self._identity, missing)])
            except PositionsRefused as problem:
                stop_refused(problem, self._cursors, self._target)
            self._registered.update(missing)

    async def _commits(self) -> bool:
        """Commit what is closed, if all that was sent is answered, and all that receipts name is accepted. Whether that is done."""
        self._commit_records.write_early(self._records.in_flight(), partial(self._ending.prepare, self._identity))
        if self._records.unanswered or self._unclear_sent_again() or self._commit_records.is_writing:
            return False
        if any(cursor.touched for cursor in self._cursors.values()):
            await self._commit()
            return True
        self._reopen()
        return False

    async def _commit(self) -> None:
        epochs, moved = await self._epochs.told(self._transaction_partitions.keys)
        self._records.leaders_stale |= moved
        try:
            touched, settled = await self._commit_records.write(epochs, partial(self._ending.prepare, self._identity))
        except PositionsRefused as problem:
            stop_refused(problem, self._cursors, self._target)
        self._state = advance(self._state, TransactionEvent.COMMIT)
        ending = self._loop.start(self._ending.end, self._identity, settled).add_both(lambda _: self._wakeup.fire())
        while not ending.is_done:
            self._fetch()
            await self._wakeup.wait(IDLE_SECONDS)
        self._adopt(await ending)
        self._state = advance(self._state, TransactionEvent.DONE)
        self._commit_records.confirm(touched)
        self._following.commits(clock.monotonic(), clock.process_time(), self._target.round_trip())

    def _adopt(self, identity: ProducerIdentity) -> None:
        self._identity = identity
        self._registered.clear()
        self._transaction_partitions.end()
        self._ending.adopt(identity)
        self._records.adopt(identity)

    async def _recover(self, blamed: TopicPartition | None) -> None:
        self._feed.abandon()
        self._target.disconnect()
        await self._commit_records.give_up()
        await self._loop.sleep(RECOVERY_PAUSE_SECONDS)
        self._identity = await self._prove()
        self._identity = await fence_zombie_requests(self._coordinator, self._identity, self._registered)
        await self._fresh_appenders()
        await self._target_leaders.refresh()
        self._check_remote_topics()
        self._unchecked = await self._stop_hanging(self._cursors)
        positions = await self._coordinator.positions(self._cursors) if self._in_doubt else {}
        for key, cursor in self._cursors.items():
            if self._in_doubt and cursor.touched and key in positions and positions[key].metadata == self._commit_records.mark:
                cursor.confirm()
            cursor.revert()  # in any case: the batches that were fetched ahead are gone with the old appender
        self._adopt(self._identity)
        self._in_doubt = False
        self._state = advance(self._state, TransactionEvent.PROVEN)
        await self._compare_positions(await self._coordinator.positions(self._cursors))
        if blamed in self._cursors:
            self._blame.note(self._cursors[blamed])

    def _result(self, *, fenced: bool = False, failure: Failure | None = None) -> LaneResult:
        outcomes = tuple(cursor.outcome() for cursor in self._cursors.values())
        return LaneResult(self._task.lane, outcomes, fenced=fenced, failure=failure, behind=self._following.fell_behind)
