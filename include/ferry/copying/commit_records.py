"""What a commit writes beside the records: receipts, heads and positions of the cursors that are in the transaction.

It is written when every answer is there, or early, while batches are in flight whose offsets are predicted (prediction.py). From then on
the lane leaves its cursors as they are until the commit: what it writes must be what it confirms.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kafka.future import Future

from ferry import clock
from ferry.clusters.groups.coordination import OutcomeUnknown
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.event_loop import EventLoop, Wakeup, ended
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.lane_messages import CopyJob
from ferry.copying.prediction import Cursors, Prediction
from ferry.copying.segment_end import Settled
from ferry.copying.transaction import AppendEpochs, TransactionPartitions
from ferry.ledger.receipts import Receipt
from ferry.wire.produce_batch import ProduceBatch

Receipts = Mapping[TopicPartition, list[Receipt]]
Prepare = Callable[[Settled], Coroutine[Any, Any, None]]


class _Early(NamedTuple):
    """What was written before the answers, and when that is done."""

    cursors: Cursors
    receipts: Receipts
    written: Future


class CommitRecords:
    """`mark`: of the open transaction."""

    def __init__(  # noqa: PLR0917 - what a lane has
        self, loop: EventLoop, wakeup: Wakeup, job: CopyJob, groups: CursorGroups, partitions: TransactionPartitions, epochs: AppendEpochs
    ) -> None:
        """`wakeup`: fires when something was written early."""
        self._loop, self._wakeup, self._job = loop, wakeup, job
        self._groups, self._partitions, self._epochs = groups, partitions, epochs
        self._cursors = {cursor.task.remote: cursor for cursor in groups.all}
        self.prediction, self.mark = Prediction(), ""
        self.early: _Early | None = None

    def begin(self) -> None:
        """A transaction begins."""
        self._epochs.begin()
        self.mark = clock.token_hex(8)

    def write_early(self, in_flight: Mapping[TopicPartition, Sequence[ProduceBatch]], prepare: Prepare) -> None:
        """Write now, if it is known where all batches in flight will be: in a transaction, and in the partitions of the cursors."""
        in_homes = self._job.flow.exactly_once and not self._job.reroute
        if in_homes and self.early is None and self.prediction.predict(in_flight, self._cursors):
            touched = self._touched()
            receipts = self._receipts(touched, {})
            written = self._loop.start(prepare, self._settled(touched, receipts)).add_both(lambda _: self._wakeup.fire())
            self.early = _Early(touched, receipts, written)

    @property
    def is_writing(self) -> bool:
        """Whether what is written early is not done yet."""
        return self.early is not None and not self.early.written.is_done

    async def write(self, epochs: Mapping[TopicPartition, int], prepare: Prepare) -> tuple[Cursors, Settled]:
        """Write everything, or correct what was written early. `epochs`: as far as known. Returns what the commit confirms, and wrote."""
        early, self.early = self.early, None
        if early is None:
            touched = self._touched()
            settled = self._settled(touched, self._receipts(touched, epochs))
            await prepare(settled)
            return touched, settled
        await early.written
        wrong = self.prediction.correct(early.cursors)
        receipts = self._receipts(wrong, epochs)
        corrected = self._job.receipts(chain(*receipts.values()))
        for place, records in self._job.receipts(chain(*(early.receipts[key] for key in wrong))).items():
            if not {key for key, _ in records} <= {key for key, _ in corrected.get(place, ())}:
                raise OutcomeUnknown("a corrected receipt has another key")
        if corrected:
            await prepare(Settled(corrected, {}, {}))
        return early.cursors, Settled({}, {}, {})

    def confirm(self, cursors: Cursors) -> None:
        """What was written is committed."""
        for cursor in cursors.values():
            cursor.confirm()
        self.prediction.committed()

    async def give_up(self) -> None:
        """Return when nothing is written any more."""
        if self.early is not None:
            await ended([self.early.written])
        self.early, self.prediction = None, Prediction()

    def _touched(self) -> Cursors:
        return self._partitions.share({cursor.task.remote: cursor for cursor in self._groups.touched})

    def _receipts(self, cursors: Cursors, epochs: Mapping[TopicPartition, int]) -> Receipts:
        return {key: cursor.receipts(self._job.run_id, epochs.get(key, -1)) for key, cursor in cursors.items()}

    def _settled(self, cursors: Cursors, receipts: Receipts) -> Settled:
        positions = {key: CommittedOffset(cursor.position, metadata=self.mark) for key, cursor in cursors.items()}
        heads = (cursor.head(self._job.run_id, self._job.ledger_topic_id) for cursor in cursors.values())
        return Settled(self._job.receipts(chain(*receipts.values())), self._job.heads(heads), positions)
