"""A cursor under fetches, answers, refusals, commits and aborts in any order, beside a model of what is committed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.copying.cursors import BACKFILLED, COPIED, seed_at, task, unit

from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Segment
from ferry.ledger.receipts import Receipt, ReceiptKind, covered
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.ranges import outside

pytestmark = pytest.mark.unit


@dataclass
class Target:
    """What the target would hold: offsets in log order, and the ledger."""

    log: list[int]
    ledger: list[Receipt]


def handled_unit(start: int, end: int) -> ProduceBatch | None:
    """What a handler that drops every other pair of offsets leaves of [start, end); None: nothing."""
    kept = [offset for offset in range(start, end) if offset & 2]
    runs = tuple((offset, 1) for offset in kept)
    if not kept:
        return None
    return replace(unit(start, end, runs=runs), kind="handled", places=tuple(range(len(kept))), dropped=end - start - len(kept))


class CursorMachine(RuleBasedStateMachine):
    """Fetches, answers, refusals, commits and aborts in any order; the model holds the committed log."""

    segments = (Segment(COPIED, 40, 60), Segment(BACKFILLED, 0, 12), Segment(BACKFILLED, 20, 30))

    def __init__(self) -> None:
        super().__init__()
        self.cursor = PartitionCursor(task(*self.segments, position=40, seed=seed_at(40)))
        self.log_start = 0
        self.waiting: list[ProduceBatch] = []
        self.committed = Target([], [])
        self.open = Target([], [])

    @rule(size=st.integers(1, 15))
    def fetch(self, size: int) -> None:
        segment = self.cursor.segment
        if not self.cursor.wants_fetch or segment is None:
            return
        if self.cursor.fetched < self.log_start:
            if not self.waiting:
                self.cursor.settle_fetched()
                self.cursor.lose(self.log_start, "gone")
            return
        start, end = self.cursor.fetched, min(self.cursor.fetched + size, segment.end)
        left = handled_unit(start, end)
        self.cursor.fetched_to(end, 1)
        if left:
            self.waiting.append(left)
        else:
            self.cursor.note_dropped(end - start)

    @precondition(lambda self: self.waiting)
    @rule()
    def answer(self) -> None:
        taken = self.waiting.pop(0)
        base = len(self.committed.log) + len(self.open.log)
        self.open.log += [offset for offset, _ in taken.runs]
        self.cursor.accept(taken, base)

    @precondition(lambda self: self.waiting and self.waiting[0].count == 1)
    @rule()
    def refuse(self) -> None:
        self.cursor.skip(self.waiting.pop(0), "refused")

    @rule()
    def settle(self) -> None:
        if not self.waiting:
            self.cursor.settle_fetched()

    @rule(until=st.integers(0, 70))
    def expire(self, until: int) -> None:
        self.log_start = max(self.log_start, until)

    @rule()
    def commit(self) -> None:
        if self.cursor.touched:
            self.committed.ledger += self.cursor.receipts("run")
            self.committed.log += self.open.log
            self.open.log = []
            self.cursor.confirm()

    @rule()
    def abandon(self) -> None:
        self.waiting, self.open.log = [], []
        self.cursor.revert()

    @rule()
    def commit_with_a_lost_answer(self) -> None:
        """The recovery confirms what was committed, and drops what was fetched ahead."""
        self.commit()
        self.abandon()

    @invariant()
    def marks_are_in_order(self) -> None:
        cursor = self.cursor
        assert cursor.settled <= cursor.fetched
        assert cursor.committed_position <= cursor.position
        segment = cursor.segment
        assert segment is None or segment.start <= cursor.settled <= cursor.fetched <= segment.end

    @invariant()
    def the_ledger_explains_the_log(self) -> None:
        explained: dict[int, int] = {}
        for receipt in self.committed.ledger:
            for upstream, downstream, count in receipt.runs:
                explained.update({downstream + index: upstream + index for index in range(count)})
        assert [explained[offset] for offset in range(len(self.committed.log))] == self.committed.log
        assert len(explained) == len(self.committed.log)
        assert len(set(self.committed.log)) == len(self.committed.log)
        assert sum(receipt.kind is ReceiptKind.SEED for receipt in self.committed.ledger) <= 1

    def teardown(self) -> None:
        """Whatever happened, the rest can be copied, and then every wanted range is covered, exactly."""
        for _ in range(200):
            if self.cursor.done and not self.waiting:
                break
            self.fetch(15)
            if self.waiting:
                self.answer()
            self.settle()
        self.commit()
        assert self.cursor.done
        for segment in self.segments:
            assert outside(covered(self.committed.ledger), segment.start, segment.end) == ()
        settled = sum(entry.upstream_end - entry.upstream_start for entry in self.committed.ledger)
        assert settled == sum(segment.end - segment.start for segment in self.segments)
        gone = sum(entry.upstream_end - entry.upstream_start for entry in self.committed.ledger if entry.reason == "gone")
        refused = sum(entry.reason == "refused" for entry in self.committed.ledger)
        assert sum(entry.counters.records + entry.counters.dropped for entry in self.committed.ledger) + refused + gone == settled


TestCursorMachine = CursorMachine.TestCase
TestCursorMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
