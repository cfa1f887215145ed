"""Gaps of a ledger: what a seed passed over until something settles it, read as a whole or on from an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.ledger import loss_index
from ferry.ledger.gaps import CopiedPair, GapFold
from ferry.ledger.loss_index import LossFold, LossIndex
from ferry.ledger.receipts import BY_OPERATOR, BY_START_POLICY, CREATED_AGAIN, Receipt, ReceiptKind, encode_receipt
from ferry.ledger.state import FlowRecord, decode_state, encode_state
from ferry.wire.ranges import Ranges, outside, union

pytestmark = pytest.mark.unit

LEDGER = "11111111-1111-1111-1111-111111111111"
COPIED = Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 0, 10, downstream_end=10)
PAIR = CopiedPair("t", 0, "s", "r")


def receipt(kind: ReceiptKind, start: int, end: int, reason: str = "") -> Receipt:
    return replace(COPIED, kind=kind, upstream_start=start, upstream_end=end, reason=reason)


def first(position: int) -> Receipt:
    return receipt(ReceiptKind.SEED, position, position, f"{BY_START_POLICY} latest")


def moved(position: int) -> Receipt:
    return receipt(ReceiptKind.SEED, position, position, f"{BY_OPERATOR}: go on here")


def again(position: int) -> Receipt:
    return receipt(ReceiptKind.SEED, position, position, f"restart: remote topic A.orders {CREATED_AGAIN}")


def copied(start: int, end: int) -> Receipt:
    return receipt(ReceiptKind.COPIED, start, end)


def backfilled(start: int, end: int) -> Receipt:
    return receipt(ReceiptKind.BACKFILLED, start, end)


def gaps_of(*receipts: Receipt) -> Mapping[CopiedPair, Ranges]:
    fold = GapFold({})
    for entry in receipts:
        fold.add(entry, 0)
    return fold.gaps


@pytest.mark.parametrize(
    ("receipts", "gaps"),
    [
        ([first(7), copied(7, 20)], ()),
        ([moved(7), copied(7, 20)], ((0, 7),)),
        ([moved(7)], ((0, 7),)),
        ([again(7), copied(7, 20)], ()),
        ([first(7), copied(7, 20), moved(30), copied(30, 40)], ((20, 30),)),
        ([first(7), copied(7, 20), moved(30), copied(30, 40), backfilled(22, 25)], ((20, 22), (25, 30))),
        ([first(7), copied(7, 20), moved(30), backfilled(20, 30)], ()),
        ([first(7), copied(7, 20), moved(10), copied(10, 40)], ()),
        ([first(7), copied(7, 20), moved(2), copied(2, 40)], ()),
        ([moved(30), copied(30, 40), copied(0, 12), copied(12, 30)], ()),
        ([moved(30), receipt(ReceiptKind.FOREIGN, 0, 20), receipt(ReceiptKind.LOSS, 20, 30)], ()),
    ],
)
def test_a_seed_passes_over_what_nothing_settles(receipts: list[Receipt], gaps: Ranges) -> None:
    assert gaps_of(*receipts) == ({PAIR: gaps} if gaps else {})


def test_receipts_of_a_topic_that_was_created_again_settle_nothing_of_the_new_one() -> None:
    of_new = replace(moved(7), source_topic_id="new")
    assert gaps_of(first(0), copied(0, 20), of_new) == {PAIR._replace(source_topic_id="new"): ((0, 7),)}


class Ledger:
    """One partition of a ledger, and what a run has indexed of it."""

    def __init__(self) -> None:
        self.log: list[InternalRecord] = []
        self.end = 0
        self.index: LossIndex | None = None

    def write(self, *receipts: Receipt) -> None:
        for entry in receipts:
            self.log.append(InternalRecord(0, self.end, 0, *encode_receipt(entry), 0))
            self.end += 1

    def merge(self, kept: Iterable[Receipt], merged: Receipt) -> None:
        """As a compaction of the ledger: the neighbours go, what they settled comes last."""
        keys = {encode_receipt(entry)[0] for entry in kept}
        self.log = [record for record in self.log if record.key not in keys]
        self.write(merged)

    def read(self, index: LossIndex | None) -> LossFold:
        fold = LossFold(index.shares if index is not None else (), "the ledger")
        for record in self.log:
            if record.offset >= fold.starts.get(0, 0):
                fold.add(record)
        return self.read(None) if fold.unsure else fold

    def index_now(self) -> None:
        kept = FlowRecord("A->B", 8, losses=self.read(self.index).index(LEDGER, self.end))
        assert decode_state(*encode_state(kept)) == kept
        self.index = kept.losses


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("copy"), st.integers(1, 20)),
        st.tuples(st.just("seed"), st.integers(0, 200)),
        st.tuples(st.just("backfill"), st.integers(0, 200)),
        st.tuples(st.sampled_from(["merge", "index", "index", "older release"]), st.just(0)),
    ),
    max_size=25,
)


@given(st.integers(0, 30), STEPS)
def test_by_an_index_as_without(begin: int, steps: list[tuple[str, int]]) -> None:
    """A copy goes on at the position, a seed moves it, a backfill fills a part, merged receipts come last in the log."""
    ledger, position, settled, passed = Ledger(), begin, list[tuple[int, int]](), 0
    ledger.write(first(begin))
    last: list[Receipt] = []
    for step, number in steps:
        match step:
            case "copy":
                last.append(replace(copied(position, position + number), series=f"{len(settled)}"))
                ledger.write(last[-1])
                settled.append((position, position + number))
                position += number
            case "seed":
                ledger.write(replace(moved(number), series=f"{len(settled)}"))
                position, passed, last = number, max(passed, number), []
            case "backfill":
                missing = outside(union(settled), number, min(number + 10, position))
                ledger.write(*(backfilled(*found) for found in missing))
                settled += missing
            case "merge" if len(last) > 1:
                one = replace(last[0], upstream_end=last[-1].upstream_end)
                ledger.merge(last, one)
                last = [one]
            case "index":
                ledger.index_now()
            case "older release":
                ledger.index = None
        end = max([begin, position, passed, *(end for _, end in settled)])
        found = ledger.read(None).gaps
        assert ledger.read(ledger.index).gaps == found
        wanted = outside(union(settled), begin, end) if passed else ()
        assert found.get(PAIR, ()) == wanted


def test_a_partition_with_very_many_gaps_is_not_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_index, "MOST_GAPS", 1)
    ledger = Ledger()
    ledger.write(moved(10), copied(10, 20))
    ledger.index_now()
    assert ledger.index is not None
    assert [dict(share.gaps) for share in ledger.index.shares] == [{PAIR: ((0, 10),)}]
    ledger.write(backfilled(4, 5))
    ledger.index_now()
    assert ledger.index.shares == ()
    assert ledger.read(ledger.index).gaps == {PAIR: ((0, 4), (5, 10))}
