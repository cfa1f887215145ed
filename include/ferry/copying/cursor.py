"""The progress of one source partition in a lane: how far it is fetched, settled and committed.

Always committed <= settled <= fetched. `settled` moves when the target accepts a batch, or when everything fetched so far is accepted
(control records and aborted data make no batch). A commit sets committed to settled; an abandoned transaction sets both others back.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ferry import clock
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.logs.fetching import FetchPosition
from ferry.copying.joined_receipts import grown
from ferry.copying.lane_messages import OPEN_END, Failure, PartitionOutcome, PartitionTask, Segment
from ferry.errors import FerryError, PartitionError
from ferry.ledger.counters import ONE_TRANSACTION, ZERO, Counters, MinMeanMax
from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.ranges import Range, Ranges, end_of_range_at, next_start, outside, size, union, within
from ferry.wire.runs import OffsetRun

# Before excluded offsets, a fetch asks for this many bytes for each offset up to them, and at least for the smallest fetch: a broker always
# sends one whole batch, and bytes of excluded offsets would be fetched for nothing.
BYTES_AN_OFFSET = 16 << 10
SMALLEST_FETCH_BYTES = 64 << 10


@dataclass
class ReceiptDraft:
    """The receipt of the records of one segment that the open transaction holds so far."""

    segment: Segment
    start: int
    runs: list[OffsetRun] = field(default_factory=list)
    counters: Counters = ONE_TRANSACTION
    written: list[Range] = field(default_factory=list)
    downstream_end: int = -1
    max_timestamp: int = -1
    timestamps: MinMeanMax | None = None
    source_epoch: int = -1
    repeated: list[Range] = field(default_factory=list)

    def add(self, batch: ProduceBatch, base_offset: int) -> None:
        """Count a batch that the target appended with the downstream offset `base_offset`."""
        if batch.rerouted is not None:  # to another topic: for the remote partition its source records are dropped
            dropped = batch.dropped + sum(count for _, count in batch.runs)
            self.counters += Counters(handled=1, dropped=dropped, rerouted=batch.count)
            self.source_epoch = max(self.source_epoch, batch.last_leader_epoch)
            return
        downstream, places = base_offset, batch.places
        for index, (upstream, count) in enumerate(batch.runs):
            if places:
                downstream = base_offset + places[index]
            last = self.runs[-1] if self.runs else None
            if last and last[0] + last[2] == upstream and last[1] + last[2] == downstream:
                self.runs[-1] = (last[0], last[1], last[2] + count)
            else:
                self.runs.append((upstream, downstream, count))
            downstream += count
        self.downstream_end = base_offset + batch.count
        if batch.added:
            self.written.append((base_offset, self.downstream_end))
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        age = None
        if batch.min_timestamp >= 0:
            middle = (batch.min_timestamp + batch.max_timestamp) / 2
            timestamps = MinMeanMax(batch.min_timestamp, middle, batch.max_timestamp, batch.count)
            self.timestamps = timestamps if self.timestamps is None else timestamps + self.timestamps
            age = timestamps.until(clock.time_ms())
        self.counters += Counters(
            records=batch.count,
            bytes=batch.size,
            forwarded=batch.kind == "forwarded",
            reframed=batch.kind == "reframed",
            handled=batch.kind == "handled",
            dropped=batch.dropped,
            added=batch.added,
            record_age_ms=age,
        )
        self.source_epoch = max(self.source_epoch, batch.last_leader_epoch)


@dataclass(frozen=True)
class _Committed:
    """The state after the last confirmed commit."""

    position: int
    segment: int  # its index
    offset: int  # in the segment
    epoch: int  # the leader epoch of the last record
    declared: bool
    explained_end: int  # where the remote records end that receipts explain


T = TypeVar("T")


class _Noted(Generic[T]):
    """A field of a cursor. If it gets another value, the cursor is noted as changed."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, cursor: "PartitionCursor", _: type) -> T:
        value: T = getattr(cursor, self._name)
        return value

    def __set__(self, cursor: "PartitionCursor", value: T) -> None:
        if getattr(cursor, self._name, None) != value:  # a poll without records sets the same values in all partitions
            setattr(cursor, self._name, value)
            cursor.changes[cursor] = None


class PartitionCursor:
    doubted = _Noted[bool]()  # the source contradicts the offset or its epoch: before the next fetch, ask for the log's bounds
    is_behind = _Noted[bool]()  # following: the source has committed records that are not fetched
    troubled_since = _Noted[float]()  # since when nothing can be read; 0: it can

    def __init__(self, task: PartitionTask) -> None:
        self.task = task
        self.changes: dict[PartitionCursor, None] = {}  # it puts itself in here whenever it changes; CursorGroups gives its own one
        self._segments = task.open_segments if task.follows else task.segments
        self.is_behind = True
        self.failure: Failure | None = None
        self.not_before = 0.0
        self.troubled_since = 0.0
        first = self._segments[0].start if self._segments else task.position
        declared = not task.declared and not task.unopened
        self._committed = _Committed(task.position, 0, first, task.last_epoch, declared, task.explained_end)
        # (offset, number): this many records before the offset are in no batch, because the handler dropped all of them.
        self._dropped: deque[tuple[int, int]] = deque()
        self._record_bytes = task.record_bytes
        self.revert()

    def revert(self) -> None:
        """Go back to the last commit: the transaction was abandoned."""
        self._segment = self._committed.segment
        self.fetched = self.settled = self._committed.offset
        self.position = self._committed.position
        self._epoch = self._committed.epoch
        self._fetched_epoch = -1 if self.segment is not None and self.segment.kind == ReceiptKind.BACKFILLED else self._epoch
        self._declared, self._explained_end = self._committed.declared, self._committed.explained_end
        self._receipts: list[Receipt] = []
        self._draft: ReceiptDraft | None = None
        self._growing: Receipt | None = None  # following: the receipt that the last commit wrote, if it may grow
        self._dropped.clear()
        self.doubted = False
        self._note_change()

    def confirm(self) -> None:
        self._declared = True
        self._committed = _Committed(self.position, self._segment, self.settled, self._epoch, True, self._explained_end)
        self._growing = self._receipts[-1] if self._receipts and self.task.follows else None
        self._receipts = []
        self._draft = None
        self._note_change()

    def _note_change(self) -> None:
        self.changes[self] = None

    def end_here(self, *, at_once: bool) -> None:
        """Follow no longer: copy nothing beyond the records that are fetched already. If not `at_once`, copy the task's segments whole."""
        if self._segments and self._segments[-1].end == OPEN_END:
            last = self._segments[-1]
            fetched = self.fetched if self.segment == last else last.start
            planned = [segment.end for segment in self.task.segments if segment.kind == ReceiptKind.COPIED and not at_once]
            self._segments = (*self._segments[:-1], replace(last, end=max(fetched, *planned, last.start)))
            self._note_change()

    @property
    def segment(self) -> Segment | None:
        """The segment that is being copied; None when nothing is left."""
        return self._segments[self._segment] if self._segment < len(self._segments) else None

    @property
    def done(self) -> bool:
        """Whether nothing more will be fetched: all segments are settled, or the partition failed."""
        return self.segment is None or self.failure is not None

    @property
    def touched(self) -> bool:
        """Whether the next commit has something to write for this partition: fetched offsets, or a seed."""
        undeclared = not self._declared and self.failure is None
        return bool(self._receipts) or self._draft is not None or undeclared

    @property
    def wants_fetch(self) -> bool:
        segment = self.segment
        return segment is not None and self.failure is None and not self.doubted and self.fetched < segment.end

    @property
    def committed_position(self) -> int:
        return self._committed.position

    @property
    def runs(self) -> int:
        """How many runs the receipt of the open transaction has so far."""
        return len(self._draft.runs) if self._draft else 0

    @property
    def committed_offset(self) -> int:
        """The next offset of the segment that is being copied, as of the last commit."""
        return self._committed.offset

    def fetch_position(self) -> FetchPosition:
        """Where to fetch next, without an epoch where none is known, as at the start of a backfilled segment."""
        limit = None
        if self.task.excluded:
            before = next_start(self.task.excluded, self.fetched) - self.fetched
            limit = max(SMALLEST_FETCH_BYTES, before * BYTES_AN_OFFSET)
        return FetchPosition(self.task.topic, self.task.partition, self.fetched, self._fetched_epoch, limit)

    def pass_excluded(self) -> None:
        """Skip excluded offsets at the fetch offset without fetching them: they may be most of a log. The epoch after them is not known."""
        segment = self.segment
        if not self.task.excluded or segment is None or self.failure is not None:
            return
        after = min(segment.end, end_of_range_at(self.task.excluded, self.fetched))
        if after > self.fetched:
            self.fetched, self._fetched_epoch = after, -1
            self._note_change()

    def fetched_to(self, offset: int, epoch: int) -> None:
        """Everything before `offset` was fetched. `epoch`: the leader epoch with which to fetch from there (-1: not known)."""
        self.fetched, self._fetched_epoch = offset, epoch
        self.troubled_since = 0.0
        self._note_change()

    def forget_epoch(self) -> None:
        """Fetch without a leader epoch next: the source's leader does not know the epoch, although its log is the one that was read."""
        self._fetched_epoch = -1

    def note_dropped(self, records: int) -> None:
        """A message handler dropped all records of the last fetch. They count as soon as the fetched offsets are settled."""
        self._dropped.append((self.fetched, records))

    def accept(self, batch: ProduceBatch, base_offset: int) -> None:
        if self._draft is not None and self._draft.source_epoch not in {-1, batch.last_leader_epoch}:
            self._close_draft()  # after a truncation, whole receipts of later leader epochs count as gone (truncation.py)
        draft = self._open_draft()
        if 0 <= self._explained_end < base_offset:
            draft.repeated.append((self._explained_end, base_offset))
        draft.add(batch, base_offset)
        # In a transaction nothing comes in between any more, but markers do.
        self._explained_end = draft.downstream_end if self.task.flushed else -1
        self._settle(batch.upstream_end, batch.last_leader_epoch)
        if self._dropped:
            self._count_dropped()

    @property
    def is_predictable(self) -> bool:
        """Whether it follows, and its topic does not keep its name: then the other flow would read receipts before the commit."""
        is_open = self.segment is not None and self.segment.end == OPEN_END and self.failure is None
        return is_open and self.task.topic != self.task.remote_topic

    def take_early(self, placed: Sequence[tuple[ProduceBatch, int]]) -> None:
        """Take batches for accepted at these offsets, and everything fetched for settled, before the target has answered."""
        draft = self._draft and replace(self._draft, runs=[*self._draft.runs], written=[*self._draft.written])
        self._before = draft, [*self._receipts], self.settled, self.position, self._epoch, self._dropped.copy()
        for batch, base_offset in placed:
            self.accept(batch, base_offset)
        self.settle_fetched()
        self._early = self.settled, self._epoch

    def take_again(self, placed: Sequence[tuple[ProduceBatch, int]]) -> None:
        """The batches of `take_early` are at other offsets."""
        self._draft, self._receipts, self.settled, self.position, self._epoch, self._dropped = self._before
        for batch, base_offset in placed:
            self.accept(batch, base_offset)
        self._settle_all(*self._early)

    def skip(self, batch: ProduceBatch, reason: str) -> None:
        """The target refused `batch`, whose records all come from one source record: it is lost, and the offsets around it are settled.

        The handler may have dropped records before and after it: so the receipts of both sides say that a handler was at work.
        """
        offset, dropped = batch.runs[0][0], batch.dropped
        if offset > self.settled:
            self._open_draft().counters += Counters(dropped=dropped)
            dropped = 0
            self._settle(offset, -1)
            self._count_dropped()
        self._close_draft()
        self._receipts.append(self._receipt(ReceiptKind.SKIPPED, offset, offset + 1, reason))
        self._settle(offset + 1, batch.last_leader_epoch)
        if batch.upstream_end > offset + 1:
            self._open_draft().counters += Counters(dropped=dropped, handled=batch.kind == "handled")
            self._settle(batch.upstream_end, batch.last_leader_epoch)

    def settle_fetched(self) -> None:
        """Everything fetched is settled, because nothing waits or is in flight. Go to the next segment if this one is done."""
        segment = self.segment
        if segment is None or self.failure is not None:
            return
        self._settle_all(self.fetched, self._fetched_epoch)
        if self.settled >= segment.end:
            self._next_segment()

    def _settle_all(self, offset: int, epoch: int) -> None:
        if offset > self.settled:
            self._open_draft()
            self._settle(offset, epoch)
            self._count_dropped()

    def lose(self, log_start: int, reason: str, excluded: Ranges = ()) -> None:
        """The source deleted `[settled, log_start)` before it was copied: within the segment a loss, unless all of it is excluded.

        There is one loss, from the first offset that is not excluded to the last one: most offsets in between hold transaction markers.
        `excluded`: offsets that are excluded beside those of the task.
        """
        segment = self.segment
        if segment is None:
            return
        end = min(log_start, segment.end)
        excluded = union([*self.task.excluded, *excluded])
        lost = outside(excluded, self.settled, end)
        if lost:
            first, last = lost[0][0], lost[-1][1]
            if first > self.settled:
                self._open_draft()
                self._settle(first, -1)
            self._close_draft()
            returned = size(within(excluded, first, last))
            reason += f"; {returned:,} of these offsets held what the flow in the other direction wrote" if returned else ""
            kind = ReceiptKind.LOSS if segment.kind == ReceiptKind.COPIED else ReceiptKind.SKIPPED
            self._receipts.append(self._receipt(kind, first, last, reason))
            self._settle(last, -1)
        if end > self.settled:
            self._open_draft()
        self.fetched, self._fetched_epoch = end, -1
        self._settle(end, -1)
        self.doubted = False
        if end >= segment.end:
            self._next_segment()

    def fail(self, error: FerryError) -> None:
        """Stop the partition. Settled offsets stay settled."""
        if self.failure is None:
            self.failure = Failure.of(error, getattr(error, "problem", ""))
            self._note_change()

    def stop(self, kind: type[PartitionError], problem: str) -> None:
        self.fail(kind(*self.task.key, problem))

    def agrees_with(self, found: CommittedOffset | None) -> bool:
        """Whether the group's position is the one that the driver read or that the lane committed, or that a seed sets anyway."""
        if self.task.replaces_offset:
            return True
        if found is None:  # the broker expires the offsets of idle groups: then the head alone counts, as in the plan
            return self.committed_position == self.task.position
        behind = self.task.flushed and found.offset < self.committed_position  # without transactions it is written last
        return behind or found.offset == self.committed_position

    def receipts(self, run_id: str, remote_epoch: int = -1) -> list[Receipt]:
        """The receipts of the open transaction: first the seed and receipts of other replicators' records, if they are not written yet.

        `remote_epoch`: of what this transaction appended (-1: not known). If the first receipt of a run that follows goes on where the last
        one ended, it takes its place: the same key, a larger end.
        """
        self._close_draft()
        self._receipts = [
            replace(receipt, remote_epoch=remote_epoch) if receipt.kind in COPIES and receipt.counters.records else receipt
            for receipt in self._receipts
        ]
        if self._growing is not None and self._receipts:
            self._receipts[0] = grown(self._growing, self._receipts[0])
        declared = () if self._declared else self.task.declared
        return [replace(receipt, run_id=run_id) for receipt in (*declared, *self._receipts)]

    def head(self, run_id: str, ledger_topic_id: str) -> Head:
        """The head of the partition as it will be after the commit."""
        task = self.task
        return Head(
            topic=task.topic,
            partition=task.partition,
            position=self.position,
            source_topic_id=str(task.topic_id),
            remote_topic=task.remote_topic,
            remote_topic_id=str(task.remote_topic_id),
            ledger_topic_id=ledger_topic_id,
            source_epoch=self._epoch,
            run_id=run_id,
            series=task.series,
            record_bytes=self._record_bytes,
            remote_end=self._explained_end,
        )

    def outcome(self) -> PartitionOutcome:
        return PartitionOutcome(self.task.topic, self.task.partition, self._committed.position, self.failure)

    def _settle(self, offset: int, epoch: int) -> None:
        """`epoch`: of exactly this offset, or -1. The epoch of an earlier offset could make the log look truncated."""
        self.settled = offset
        self._note_change()
        segment = self.segment
        if segment is not None and segment.kind == ReceiptKind.COPIED:
            self.position, self._epoch = offset, epoch

    def _count_dropped(self) -> None:
        while self._dropped and self._dropped[0][0] <= self.settled:
            self._open_draft().counters += Counters(dropped=self._dropped.popleft()[1])

    def _next_segment(self) -> None:
        self._close_draft()
        self._segment += 1
        self._note_change()
        if self.segment is not None:
            self.fetched = self.settled = self.segment.start
            self._fetched_epoch = -1

    def _open_draft(self) -> ReceiptDraft:
        if self._draft is None:
            segment = self.segment
            if segment is None:
                raise RuntimeError(f"{self.task.topic}-{self.task.partition}: accepted a batch after the last segment")
            self._draft = ReceiptDraft(segment, self.settled, counters=ZERO if self.task.flushed else ONE_TRANSACTION)
        return self._draft

    def _close_draft(self) -> None:
        draft, self._draft = self._draft, None
        if draft is None:
            return
        self._note_change()
        counters = draft.counters
        if counters.records:
            self._record_bytes = max(1, round(counters.bytes / counters.records))
        receipt = self._receipt(draft.segment.kind, draft.start, self.settled, "")
        self._receipts.append(
            replace(
                receipt,
                downstream_end=draft.downstream_end,
                runs=tuple(draft.runs),
                counters=counters._replace(
                    from_target=size(within(self.task.excluded, draft.start, self.settled)),
                    replication_latency_ms=None if draft.timestamps is None else draft.timestamps.until(clock.time_ms()),
                ),
                written=union(draft.written),
                repeated=union(draft.repeated),
                min_timestamp=-1 if draft.timestamps is None else draft.timestamps.least,
                max_timestamp=draft.max_timestamp,
                source_epoch=draft.source_epoch,
            )
        )

    def _receipt(self, kind: ReceiptKind, start: int, end: int, reason: str) -> Receipt:
        return replace(self.task.receipt(kind, start, end, reason), series=self.task.series)
