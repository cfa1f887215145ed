"""Whatever two writers do to a log, the guard leaves out exactly what the other flow wrote."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.ledger_compaction import merge_receipts
from ferry.copying.loop_guard import GuardDraft, PartitionGuard, both_ways, tells_of, unexplained_partitions
from ferry.copying.partition_plan import PartitionFacts, PlanRules, plan_partitions
from ferry.ledger.counters import ZERO, Counters
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.ledger.state import Head
from ferry.ledger.topic_ids import NO_ID, PartitionPair
from ferry.wire.ranges import NO_END, Ranges, within

pytestmark = pytest.mark.unit

A_ID, B_ID = str(UUID(int=1)), str(UUID(int=2))
PAIR = PartitionPair("t", 0, UUID(A_ID), "t", UUID(B_ID))
BLANK = Receipt(ReceiptKind.COPIED, "t", 0, B_ID, "t", A_ID, 0, 0)


@dataclass
class Log:
    """A partition on A: which of its offsets the flow from B wrote, and the receipts that say so."""

    end: int = 0
    ours: set[int] = field(default_factory=set)
    local: set[int] = field(default_factory=set)
    receipts: list[Receipt] = field(default_factory=list)
    upstream: int = 0
    # Leader epochs of the log and where they begin, as its leader remembers them.
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def elect(self, lost: int) -> None:
        """A leader goes on that has not got the last `lost` offsets, under a later epoch."""
        self.end = max(0, self.end - lost)
        self.ours = {offset for offset in self.ours if offset < self.end}
        self.local = {offset for offset in self.local if offset < self.end}
        self.epochs = [*(entry for entry in self.epochs if entry[1] < self.end), (self.epochs[-1][0] + 1, self.end)]

    def ends(self) -> dict[int, int]:
        """What ferry.clusters.logs.leader_epochs.epoch_ends would say of every epoch there ever was."""
        behind = [*(start for _, start in self.epochs[1:]), self.end]
        return dict.fromkeys(range(self.epochs[-1][0]), 0) | {epoch: end for (epoch, _), end in zip(self.epochs, behind, strict=True)}

    def produce(self, count: int) -> None:
        self.local.update(range(self.end, self.end + count))
        self.end += count

    def transaction(self, pieces: list[tuple[int, int, int]], *, backfill: bool) -> None:
        """Each piece: records of the flow with a hole before them at B, local records behind them; one marker at the end.

        More than 4 records stand for a batch that a message handler made of 1.
        """
        start, runs, written, records = self.upstream, [], [], 0
        for hole, count, between in pieces:
            self.upstream += hole
            self.ours.update(range(self.end, self.end + count))
            if count > 4:
                written.append((self.end, self.end + count))
            inputs = 1 if count > 4 else count
            runs.append((self.upstream, self.end, inputs))
            self.upstream, self.end, records = self.upstream + inputs, self.end + count, records + count
            self.produce(between)
        last = max(self.ours) + 1
        self.end += 1
        kind = ReceiptKind.BACKFILLED if backfill else ReceiptKind.COPIED
        added = Counters(handled=1, added=1) if written else ZERO
        self.receipts.append(
            replace(
                BLANK,
                kind=kind,
                upstream_start=start,
                upstream_end=self.upstream,
                downstream_end=last,
                runs=tuple(runs),
                counters=Counters(records, transactions=1) + added,
                written=tuple(written),
                remote_epoch=self.epochs[-1][0],
            )
        )


PIECES = st.lists(st.tuples(st.sampled_from([0, 0, 2]), st.integers(1, 7), st.sampled_from([0, 0, 3])), min_size=1, max_size=4)
STEPS = st.lists(st.integers(1, 5) | st.tuples(PIECES, st.booleans()), max_size=10)
# Negative: so many offsets are lost in an unclean election.
UNCLEAN = st.lists(st.integers(-12, 5) | st.tuples(PIECES, st.booleans()), max_size=10)


def log_of(steps: list[int | tuple[list[tuple[int, int, int]], bool]]) -> Log:
    log = Log()
    for step in steps:
        if isinstance(step, int) and step < 0:
            log.elect(-step)
        elif isinstance(step, int):
            log.produce(step)
        else:
            log.transaction(step[0], backfill=step[1])
    return log


def excluded(receipts: list[Receipt], low: int = 0, ends: dict[int, int] | None = None) -> Ranges:
    draft = GuardDraft(low)
    for receipt in receipts:
        read = decode_receipt(*encode_receipt(receipt))
        draft.add(read)
        draft.declare(read)
    return draft.finish(ends)[0]


def offsets(ranges: Ranges) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


@given(STEPS, st.integers(0, 40))
def test_exactly_what_the_other_flow_wrote(steps: list[int | tuple[list[tuple[int, int, int]], bool]], low: int) -> None:
    log = log_of(steps)
    assert offsets(excluded(log.receipts)) == log.ours
    assert offsets(within(excluded(log.receipts, low), low, 1 << 40)) == {offset for offset in log.ours if offset >= low}


@given(UNCLEAN, st.booleans())
def test_offsets_that_were_given_again_are_not_left_out(steps: list[int | tuple[list[tuple[int, int, int]], bool]], tidied: bool) -> None:
    log = log_of(steps)
    done = merge_receipts(log.receipts, {})
    replaced = {(receipt.kind, receipt.upstream_start) for receipt in (*done.replaced, *done.merged)} if tidied else set()
    left = [entry for entry in log.receipts if (entry.kind, entry.upstream_start) not in replaced]
    assert offsets(excluded([*left, *(done.merged if tidied else ())], ends=log.ends())) == log.ours


def test_what_an_epoch_says_of_a_receipt() -> None:
    written = replace(
        BLANK, upstream_end=20, downstream_end=120, runs=((0, 100, 20),), counters=Counters(20, transactions=1), remote_epoch=3
    )
    assert excluded([written], ends={3: 105}) == ((100, 105),)
    assert excluded([written], ends={3: 0}) == ()
    assert excluded([written], ends={3: NO_END}) == excluded([written], ends={2: 0}) == ((100, 120),)
    draft = GuardDraft(120)
    draft.add(written)
    assert draft.epochs == frozenset(), "what does not matter is not asked for"
    assert excluded([replace(written, remote_epoch=-1)], ends={3: 0}) == ((100, 120),), "it was written before receipts said it"


@given(STEPS, st.integers(0, 60), st.data())
def test_upkeep_takes_nothing_that_the_log_still_serves(
    steps: list[int | tuple[list[tuple[int, int, int]], bool]], log_start: int, data: st.DataObject
) -> None:
    """The ledger as a reader meets it: merged or not yet, old receipts compacted away or not yet."""
    log = log_of(steps)
    done = merge_receipts(log.receipts, {("t", 0): log_start})
    replaced = {(receipt.kind, receipt.upstream_start) for receipt in (*done.replaced, *done.merged)}
    left = [entry for entry in log.receipts if (entry.kind, entry.upstream_start) not in replaced or data.draw(st.booleans())]
    served = {offset for offset in offsets(excluded([*left, *done.merged])) if offset >= log_start}
    assert served == {offset for offset in log.ours if offset >= log_start}


def test_what_was_copied_twice_stays_known() -> None:
    """A position was taken back; compaction keeps the newest of every key."""
    first = replace(BLANK, upstream_end=9, downstream_end=9, runs=((0, 0, 9),))
    again = replace(first, downstream_end=40, runs=((0, 31, 9),), series="seed-2")
    compacted = {encode_receipt(entry)[0]: entry for entry in (first, again)}
    assert excluded(list(compacted.values())) == ((0, 9), (31, 40))
    assert merge_receipts([first, again], {}).replaced == ()


def test_declared_records_came_from_the_other_side() -> None:
    foreign = replace(BLANK, kind=ReceiptKind.FOREIGN, upstream_end=5, downstream_end=30)
    copied = replace(BLANK, upstream_start=5, upstream_end=9, downstream_end=44, runs=((5, 40, 4),))
    assert excluded([foreign, copied]) == ((0, 30), (40, 44))
    corrected = replace(foreign, downstream_end=20)
    assert excluded([foreign, copied, corrected]) == ((0, 20), (40, 44))


def test_the_ends_of_declarations() -> None:
    assert excluded([replace(BLANK, kind=ReceiptKind.FOREIGN, downstream_end=1)]) == ((0, 1),)
    draft = GuardDraft()
    assert draft.finish() == ((), 0)
    draft.declare(replace(BLANK, kind=ReceiptKind.SEED, found=0))
    assert draft.finish() == ((), 0)


@pytest.mark.parametrize(("foreign_end", "unclear"), [(-1, 25), (24, 25), (25, 0), (30, 0)])
def test_what_a_seed_found_is_unclear_until_it_is_declared(foreign_end: int, unclear: int) -> None:
    draft = GuardDraft()
    draft.declare(replace(BLANK, kind=ReceiptKind.SEED, found=25))
    draft.declare(replace(BLANK, kind=ReceiptKind.SEED, upstream_start=3, upstream_end=3))
    if foreign_end > 0:
        draft.declare(replace(BLANK, kind=ReceiptKind.FOREIGN, downstream_end=foreign_end))
    assert draft.finish()[1] == unclear


def head(partition: int = 0, *, remote_id: str = A_ID, source_id: str = B_ID, ledger: str = "l") -> Head:
    return Head("t", partition, 5, source_id, "t", remote_id, ledger)


def test_heads_count_between_todays_topics_only() -> None:
    pairs = {"t": PAIR}
    assert both_ways([head()], pairs) == {"t"}
    assert both_ways([head(remote_id="older"), head(source_id="older")], pairs) == frozenset()
    assert both_ways([Head("t", 0, 5, B_ID, "B.t", A_ID)], pairs) == frozenset(), "the other flow gives it another name"
    assert unexplained_partitions([head(0), head(1, ledger="gone"), head(2, remote_id="older", ledger="gone")], pairs, "l") == {("t", 1)}


def test_receipts_count_between_todays_topics_only() -> None:
    assert tells_of(BLANK, PAIR)
    assert tells_of(replace(BLANK, source_topic_id=NO_ID), PAIR), "the target had no topic ids then"
    assert tells_of(replace(BLANK, topic="other", source_topic_id="another id"), PAIR), "the other flow gives it another name"
    assert not tells_of(replace(BLANK, remote_topic_id="older"), PAIR)
    assert not tells_of(replace(BLANK, source_topic_id="older"), PAIR), "what came from a deleted topic is not on today's"


LEDGER = "ledger"
FACTS = PartitionFacts(
    topic="t",
    partition=0,
    topic_id=UUID(int=1),
    remote_topic="t",
    remote_topic_id=UUID(int=2),
    remote_partitions=1,
    remote_end=40,
    log_start=10,
    end=100,
    stable_end=100,
    start=10,
    ledger_topic_id=LEDGER,
)
RULES = PlanRules("A->B", "run-1")


def test_records_that_nobody_explains_stop_the_first_run_until_somebody_says_what_they_are() -> None:
    (refused,) = plan_partitions([FACTS], RULES)
    assert refused.failure.error == "PositionDisagrees"
    assert "ferry.on.unexplained=local" in refused.failure.problem
    (local,) = plan_partitions([FACTS], replace(RULES, on_unexplained="local"))
    (known,) = plan_partitions([replace(FACTS, guard=PartitionGuard(two_way=True))], RULES)
    for plan in (local, known):
        assert (plan.failure, plan.position, plan.offsets) == (None, 10, 90)
        assert plan.seed is not None
        assert plan.seed.reason == "start policy earliest; what is below 40 was produced there"


def test_what_came_from_the_target_is_not_to_go() -> None:
    guard = PartitionGuard(excluded=((0, 30), (50, 60), (95, 200)), two_way=True)
    (plan,) = plan_partitions([replace(FACTS, guard=guard)], RULES)
    assert (plan.offsets, plan.from_target) == (90 - 20 - 10 - 5, 35)
    (note,) = plan.notes
    assert "35 offsets" in note


@pytest.mark.parametrize(
    ("guard", "policy", "stops"),
    [
        (PartitionGuard(broken=True, two_way=True), "local", True),
        (PartitionGuard(unclear_below=11, two_way=True), "fail", True),
        (PartitionGuard(unclear_below=10, two_way=True), "fail", False),  # retention has taken them
        (PartitionGuard(unclear_below=99, two_way=True), "local", False),
    ],
)
def test_an_unclear_origin_stops_the_partition(guard: PartitionGuard, policy: str, stops: bool) -> None:
    (plan,) = plan_partitions([replace(FACTS, guard=guard)], replace(RULES, on_unexplained="local", on_unclear=policy))  # type: ignore[arg-type]
    assert (plan.failure is not None and plan.failure.error == "OriginUnclear") is stops
    assert plan.has_work is not stops


def test_a_leader_that_does_not_tell_stops_the_partition_for_now() -> None:
    (plan,) = plan_partitions([replace(FACTS, guard=PartitionGuard(unasked=True, two_way=True))], RULES)
    assert plan.failure is not None
    assert plan.failure.error == "PartitionUnavailable"
