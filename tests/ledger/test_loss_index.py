"""Who reads a ledger by an index finds what the whole ledger says, whatever has become of it since the index was made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.logs.internal_reader import READ_ON, InternalRecord, spans_of
from ferry.errors import NewerFormat, UnreadableRecord
from ferry.ledger import loss_index
from ferry.ledger.counters import Counters
from ferry.ledger.loss_index import NEW_RECORDS, IndexedShare, LossFold, LossIndex, is_due
from ferry.ledger.receipts import REFUSED, Receipt, ReceiptKind, decode_receipt, encode_receipt, is_loss
from ferry.ledger.state import FlowRecord, decode_state, encode_state

pytestmark = pytest.mark.unit

LEDGER = "11111111-1111-1111-1111-111111111111"
LOST = Receipt(ReceiptKind.LOSS, "t", 0, "s", "A.t", "r", 0, 5, reason='gone; the "log" began at 5')
REFUSAL = Receipt(ReceiptKind.SKIPPED, "t", 0, "s", "A.t", "r", 0, 1, reason=f"{REFUSED}: too large")
GONE = replace(REFUSAL, reason="gone when the backfill came")
COPIED = replace(LOST, kind=ReceiptKind.COPIED, counters=Counters(5, transactions=1), runs=((0, 0, 5),), downstream_end=5)
WRITTEN = st.tuples(st.sampled_from([LOST, REFUSAL, GONE, COPIED, COPIED, COPIED]), st.integers(0, 5), st.booleans())


@dataclass
class Ledger:
    """Two compacted partitions, as readers of committed records see them."""

    logs: dict[int, list[InternalRecord]] = field(default_factory=lambda: {0: [], 1: []})
    ends: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})

    def commit(self, written: list[tuple[Receipt, int, bool]], *, aborted: bool) -> None:
        """A transaction; keys are few, so receipts replace each other. True: a tombstone."""
        for receipt, start, removed in written:
            key, value = encode_receipt(replace(receipt, upstream_start=start, partition=start % 2))
            if not aborted:
                epoch = self.ends[start % 2] // 5
                self.logs[start % 2].append(InternalRecord(start % 2, self.ends[start % 2], 0, key, None if removed else value, epoch))
            self.ends[start % 2] += 1
        for partition in {start % 2 for _, start, _ in written}:
            self.ends[partition] += 1  # the marker

    def compact(self, *, tombstones: bool) -> None:
        """Only the newest of each key stays, and of removed ones, after a day, nothing."""
        for partition, log in self.logs.items():
            newest = {record.key: record.offset for record in log}
            self.logs[partition] = [
                record for record in log if newest[record.key] == record.offset and not (tombstones and record.value is None)
            ]

    def losses(self) -> set[Receipt]:
        """The newest of every key, if it is a loss."""
        newest = {record.key: record.value for log in self.logs.values() for record in log}
        receipts = (decode_receipt(key, value) for key, value in newest.items() if value is not None)
        return {receipt for receipt in receipts if is_loss(receipt)}

    def read(self, index: LossIndex | None) -> LossFold:
        fold = LossFold(index.shares if index is not None else (), "the ledger")
        for partition, log in self.logs.items():
            for record in (record for record in log if record.offset in fold.listed.get(partition, ())):
                fold.add(record)
        for partition, log in self.logs.items():
            for record in (record for record in log if record.offset >= fold.starts.get(partition, 0)):
                fold.add(record)
        return fold


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.lists(WRITTEN, min_size=1, max_size=6)),
    st.tuples(st.just("commit"), st.lists(WRITTEN, min_size=1, max_size=6)),
    st.tuples(st.just("abort"), st.lists(WRITTEN, min_size=1, max_size=6)),
    st.tuples(st.sampled_from(["compact", "compact and remove", "index", "index by an older run", "older release"]), st.just([])),
)


@given(st.lists(STEPS, max_size=25), st.sampled_from([1, 2, 3, 100]))
def test_by_an_index_as_without(steps: list[tuple[str, list[tuple[Receipt, int, bool]]]], most: int) -> None:
    ledger = Ledger()
    index: LossIndex | None = None
    made: list[LossIndex] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_index, "MOST_LISTED", most)
        for step, written in steps:
            match step:
                case "commit" | "abort":
                    ledger.commit(written, aborted=step == "abort")
                case "compact" | "compact and remove":
                    ledger.compact(tombstones=step == "compact and remove")
                case "index":
                    kept = FlowRecord("A->B", 8, losses=ledger.read(index).index(LEDGER, sum(ledger.ends.values())))
                    again = decode_state(*encode_state(kept))
                    assert again == kept
                    index = kept.losses
                    made += [kept.losses] if kept.losses is not None else []
                case "index by an older run":
                    index = made[0] if made else None
                case _:
                    index = None
            assert set(ledger.read(index).losses) == set(ledger.read(None).losses) == ledger.losses()


def test_only_what_is_new_and_what_was_lost_is_read() -> None:
    ledger = Ledger()
    ledger.commit([(COPIED, 2 * number, False) for number in range(1000)], aborted=False)
    ledger.commit([(LOST, 2, False), (LOST, 4, False), (LOST, 4, True)], aborted=False)
    index = ledger.read(None).index(LEDGER, 1_005)
    assert index == LossIndex(LEDGER, 1_005, (IndexedShare(0, 1_004, 200, (1_001,)),))
    ledger.commit([(COPIED, 4_000, False), (LOST, 4_002, False)], aborted=False)
    fold = ledger.read(index)
    assert (fold.listed, fold.starts) == ({0: (1_001,)}, {0: 1_004})
    assert sorted(loss.upstream_start for loss in fold.losses) == [2, 4_002]


def test_more_losses_than_are_listed_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_index, "MOST_LISTED", 2)
    ledger = Ledger()
    ledger.commit([(LOST, start, False) for start in (0, 2, 4)], aborted=False)
    index = ledger.read(None).index(LEDGER, 4)
    assert index.shares == (IndexedShare(0, 2, 0, (0, 1)),)


def test_where_the_leader_epoch_is_not_known_nothing_is_indexed() -> None:
    fold = LossFold((), "the ledger")
    fold.add(InternalRecord(0, 7, 0, *encode_receipt(LOST)))
    assert fold.index(LEDGER, 8).shares == ()


def test_what_cannot_be_read_is_refused_with_its_place() -> None:
    key, value = encode_receipt(COPIED)
    fold = LossFold((), "cluster B: topic ledger")
    with pytest.raises(NewerFormat, match="cluster B: topic ledger"):
        fold.add(InternalRecord(0, 0, 0, key, value.replace(b'"version":1', b'"version":2'), 0))


@pytest.mark.parametrize(("held_ever", "indexed", "due"), [(NEW_RECORDS - 1, None, False), (NEW_RECORDS, None, True)])
@pytest.mark.parametrize("before", [0, 70])
def test_an_index_is_made_where_enough_is_new(held_ever: int, indexed: None, due: bool, before: int) -> None:
    index = LossIndex(LEDGER, before) if before else indexed
    assert is_due(held_ever + before, index) == due


def test_a_ledger_that_was_created_anew_is_indexed_anew() -> None:
    assert is_due(69, LossIndex(LEDGER, 70))
    assert not is_due(70, LossIndex(LEDGER, 70))


def test_an_index_of_another_version_is_none() -> None:
    key, value = encode_state(FlowRecord("A->B", 8, losses=LossIndex(LEDGER, 9, (IndexedShare(1, 9, 0, (3, 8)),))))
    document = json.loads(value)
    assert document["losses"] == {"version": 2, "ledger_id": LEDGER, "held": 9, "shares": [[1, 9, 0, [3, 5], []]]}
    newer = {**document, "losses": {"version": 3, "all": "different"}}
    assert decode_state(key, json.dumps(newer).encode()) == FlowRecord("A->B", 8)


@pytest.mark.parametrize("losses", [[], {}, {"version": 2}, {"version": 2, "ledger_id": "x", "held": 1, "shares": []}, 7])
def test_a_damaged_index_is_refused(losses: object) -> None:
    key, value = encode_state(FlowRecord("A->B", 8))
    with pytest.raises(UnreadableRecord):
        decode_state(key, json.dumps({**json.loads(value), "losses": losses}).encode())


def test_offsets_near_each_other_are_read_in_one_span() -> None:
    assert spans_of([5, 6, 6 + READ_ON, 7 + 2 * READ_ON]) == [(5, 7 + READ_ON), (7 + 2 * READ_ON, 8 + 2 * READ_ON)]
    assert spans_of([]) == []
