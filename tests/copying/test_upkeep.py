"""Merging receipts changes neither what is covered nor how offsets map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.coverage import covered
from ferry.copying.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.copying.upkeep import tidy

pytestmark = pytest.mark.unit

KINDS = st.sampled_from([ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.LOSS, ReceiptKind.SEED])


def receipt(kind: ReceiptKind, start: int, end: int, downstream: int) -> Receipt:
    count = end - start
    runs = ((start, downstream, count),) if kind in {ReceiptKind.COPIED, ReceiptKind.BACKFILLED} and count else ()
    return Receipt(
        kind, "t", 0, "s", "A.t", "r", start, end, downstream_end=downstream + count if runs else -1, runs=runs, records=count, run_id="x"
    )


@st.composite
def ledgers(draw: st.DrawFn) -> list[Receipt]:
    found, upstream, downstream = [], 0, 0
    for _ in range(draw(st.integers(0, 12))):
        upstream += draw(st.sampled_from([0, 0, 3]))
        downstream += draw(st.integers(0, 2))
        kind, size = draw(KINDS), draw(st.integers(1, 5))
        found.append(receipt(kind, upstream, upstream if kind is ReceiptKind.SEED else upstream + size, downstream))
        if kind is not ReceiptKind.SEED:
            upstream += size
            downstream += size
    return found


def after(receipts: list[Receipt], log_start: int) -> list[Receipt]:
    done = tidy(receipts, {("A.t", 0): log_start})
    by_key = {(entry.kind, entry.upstream_start): entry for entry in receipts}
    for entry in done.replaced:
        del by_key[entry.kind, entry.upstream_start]
    by_key.update({(entry.kind, entry.upstream_start): entry for entry in done.merged})
    return list(by_key.values())


def mapping(receipts: list[Receipt], log_start: int) -> dict[int, int]:
    pairs = {}
    for entry in receipts:
        for upstream, downstream, count in entry.runs:
            pairs.update({upstream + index: downstream + index for index in range(count) if downstream + index >= log_start})
    return pairs


@given(ledgers(), st.integers(0, 40))
def test_coverage_and_retained_mapping_stay(receipts: list[Receipt], log_start: int) -> None:
    tidied = after(receipts, log_start)
    assert covered(tidied) == covered(receipts)
    assert mapping(tidied, log_start) == mapping(receipts, log_start)
    assert sum(entry.records for entry in tidied) == sum(entry.records for entry in receipts)


@given(ledgers(), st.integers(0, 40))
def test_tidying_twice_changes_nothing_more(receipts: list[Receipt], log_start: int) -> None:
    tidied = after(receipts, log_start)
    assert tidy(tidied, {("A.t", 0): log_start}).merged == ()


def test_a_long_row_of_receipts_becomes_one() -> None:
    row = [receipt(ReceiptKind.COPIED, start, start + 10, start) for start in range(0, 1000, 10)]
    tidied = after(row, 0)
    assert [(entry.upstream_start, entry.upstream_end, entry.runs) for entry in tidied] == [(0, 1000, ((0, 0, 1000),))]


def test_losses_and_seeds_keep_their_own_receipts() -> None:
    receipts = [receipt(ReceiptKind.SEED, 0, 0, 0), receipt(ReceiptKind.LOSS, 0, 5, 0), receipt(ReceiptKind.LOSS, 5, 9, 0)]
    assert tidy(receipts, {}).merged == ()


@given(ledgers(), st.permutations(range(12)), st.integers(0, 60))
def test_backfills_in_any_order_stay_readable(receipts: list[Receipt], order: list[int], log_start: int) -> None:
    """Older records may have been appended later; nothing that the log still holds loses its run (the loop guard lives by that)."""
    moved = []
    downstream = 0
    for index in order:
        if index < len(receipts) and receipts[index].runs:
            (upstream, _, count), kind = receipts[index].runs[0], ReceiptKind.BACKFILLED
            moved.append(receipt(kind, upstream, upstream + count, downstream))
            downstream += count + 1
    tidied = after(moved, log_start)
    again = [decode_receipt(*encode_receipt(entry)) for entry in tidied]
    assert again == tidied
    assert mapping(again, log_start) == mapping(moved, log_start)
    assert covered(tidied) == covered(moved)
