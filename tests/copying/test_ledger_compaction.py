"""Merging receipts changes neither what is covered nor how offsets map."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.ledger_compaction import (
    COMPACTION_RECORDS,
    YOUNG_MILLISECONDS,
    LedgerCompaction,
    is_due,
    merge_receipts,
    mergeable,
    records_of,
)
from ferry.ledger.counters import ONE_TRANSACTION, Counters, MinMeanMax
from ferry.ledger.receipts import REFUSED, RUNS_PER_RECEIPT, Receipt, ReceiptKind, covered, decode_receipt, encode_receipt
from ferry.ledger.state import FlowRecord

pytestmark = pytest.mark.unit

KINDS = st.sampled_from([ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.LOSS, ReceiptKind.SEED])


def receipt(kind: ReceiptKind, start: int, end: int, downstream: int) -> Receipt:
    count = end - start
    runs = ((start, downstream, count),) if kind in {ReceiptKind.COPIED, ReceiptKind.BACKFILLED} and count else ()
    place, counters = downstream + count if runs else -1, Counters(count, transactions=1)
    return Receipt(kind, "t", 0, "s", "A.t", "r", start, end, downstream_end=place, runs=runs, counters=counters, run_id="x")


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
    done = merge_receipts(receipts, {("A.t", 0): log_start})
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
    assert sum(entry.counters.records for entry in tidied) == sum(entry.counters.records for entry in receipts)


@given(ledgers(), st.integers(0, 40))
def test_tidying_twice_changes_nothing_more(receipts: list[Receipt], log_start: int) -> None:
    tidied = after(receipts, log_start)
    assert merge_receipts(tidied, {("A.t", 0): log_start}).merged == ()


def test_a_long_row_of_receipts_becomes_one() -> None:
    row = [receipt(ReceiptKind.COPIED, start, start + 10, start) for start in range(0, 1000, 10)]
    tidied = after(row, 0)
    assert [(entry.upstream_start, entry.upstream_end, entry.runs) for entry in tidied] == [(0, 1000, ((0, 0, 1000),))]


def test_what_a_handler_has_seen_stays_apart_from_what_was_copied_as_it_was() -> None:
    row = [
        replace(receipt(ReceiptKind.COPIED, at, at + 1, at), counters=Counters(handled=handled))
        for at, handled in enumerate((0, 0, 2, 3, 0, 0))
    ]
    row[3] = replace(row[3], counters=Counters(handled=0, dropped=1))
    tidied = sorted(after(row, 0), key=lambda entry: entry.upstream_start)
    assert [(entry.upstream_start, entry.upstream_end, entry.counters.by_handler) for entry in tidied] == [
        (0, 2, False),
        (2, 4, True),
        (4, 6, False),
    ]


def test_a_range_without_records_joins_the_first_records_of_the_log() -> None:
    empty = replace(receipt(ReceiptKind.COPIED, 0, 5, 0), runs=(), downstream_end=-1, counters=ONE_TRANSACTION)
    row = [empty, receipt(ReceiptKind.COPIED, 5, 9, 0)]
    assert [(entry.upstream_start, entry.upstream_end, entry.runs) for entry in after(row, 0)] == [(0, 9, ((5, 0, 4),))]


def test_where_the_log_begins_must_be_known_for_runs_to_be_dropped() -> None:
    row = [receipt(ReceiptKind.COPIED, 0, 1, 0), receipt(ReceiptKind.COPIED, 1, 2, 1)]
    assert [entry.runs for entry in merge_receipts(row, {}).merged] == [((0, 0, 2),)]
    assert [entry.runs for entry in merge_receipts(row, {("A.t", 0): 2}).merged] == [()]


def test_receipts_whose_records_have_left_the_log_fill_no_receipt() -> None:
    """They keep no runs, however many they had."""
    apart = tuple((2 * index, 2 * index, 1) for index in range(RUNS_PER_RECEIPT // 2 + 1))
    half = 2 * len(apart)
    row = [
        replace(receipt(ReceiptKind.COPIED, start, start + half, start), runs=tuple((start + up, start + down, n) for up, down, n in apart))
        for start in (0, half, 2 * half)
    ]
    assert [len(merge_receipts(row, {("A.t", 0): log_start}).merged) for log_start in (3 * half, 0)] == [1, 0]


def test_losses_and_seeds_keep_their_own_receipts() -> None:
    receipts = [receipt(ReceiptKind.SEED, 0, 0, 0), receipt(ReceiptKind.LOSS, 0, 5, 0), receipt(ReceiptKind.LOSS, 5, 9, 0)]
    assert merge_receipts(receipts, {}).merged == ()


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


FIRST = replace(
    receipt(ReceiptKind.COPIED, 0, 5, 10),
    counters=Counters(
        records=5,
        bytes=100,
        forwarded=1,
        reframed=2,
        handled=3,
        dropped=4,
        added=5,
        transactions=6,
        from_target=7,
        record_age_ms=MinMeanMax(1, 2.0, 3, 4),
        replication_latency_ms=MinMeanMax(5, 6.0, 7, 8),
    ),
    written=((10, 20),),
    min_timestamp=40,
    max_timestamp=80,
    source_epoch=1,
)
SECOND = replace(
    FIRST,
    upstream_start=5,
    upstream_end=9,
    downstream_end=35,
    runs=((5, 30, 4),),
    counters=FIRST.counters._replace(records=9),
    written=((30, 35),),
)
SECOND = replace(SECOND, min_timestamp=0, max_timestamp=90, source_epoch=2)


def test_a_merged_receipt_is_the_sum_of_both() -> None:
    (both,) = merge_receipts([SECOND, FIRST], {("A.t", 0): 14}).merged
    assert both == replace(
        FIRST,
        upstream_end=9,
        downstream_end=35,
        runs=((0, 10, 5), (5, 30, 4)),
        counters=Counters(
            records=14,
            bytes=200,
            forwarded=2,
            reframed=4,
            handled=6,
            dropped=8,
            added=10,
            transactions=12,
            from_target=14,
            record_age_ms=None,
            replication_latency_ms=None,
        ),
        written=((10, 20), (30, 35)),
        min_timestamp=0,
        max_timestamp=90,
        source_epoch=2,
        run_id="",
    )
    nothing_timed = [replace(entry, min_timestamp=-1) for entry in (FIRST, SECOND)]
    assert merge_receipts(nothing_timed, {}).merged[0].min_timestamp == -1


@pytest.mark.parametrize(("log_start", "expired"), [(14, False), (15, True), (16, True)])
def test_a_receipt_alone_loses_what_left_the_log_and_nothing_else(log_start: int, expired: bool) -> None:
    expected = (replace(FIRST, runs=(), written=()),) if expired else ()
    assert merge_receipts([FIRST], {("A.t", 0): log_start, ("A.t", 1): 99, ("t", 0): 99}).merged == expected
    assert merge_receipts([FIRST], {("t", 0): 99}).merged == ()


@pytest.mark.parametrize(
    "other",
    [
        {"topic": "u"},
        {"partition": 1},
        {"source_topic_id": "older"},
        {"remote_topic_id": "older"},
        {"kind": ReceiptKind.BACKFILLED},
        {"remote_epoch": 3},
        {"reason": "another"},
        {"series": "run-7"},
        {"upstream_start": 6},
        {"runs": ((5, 14, 4),)},
    ],
)
def test_what_is_of_another_kind_or_place_stays_apart(other: dict[str, object]) -> None:
    assert len(merge_receipts([FIRST, SECOND], {}).merged) == 1
    assert merge_receipts([FIRST, replace(SECOND, **other)], {}).merged == ()  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [0, 1])
def test_no_more_runs_than_a_receipt_holds(more: int) -> None:
    runs = tuple((2 * number, 3 * number, 1) for number in range(RUNS_PER_RECEIPT - 1 + more))
    many = replace(FIRST, upstream_end=80_000, downstream_end=90_000, runs=runs)
    following = replace(SECOND, upstream_start=80_000, upstream_end=80_001, runs=((80_000, 90_001, 1),), downstream_end=90_002)
    assert len(merge_receipts([many, following], {}).merged) == 1 - more


def test_only_old_receipts_and_never_the_newest_of_a_partition() -> None:
    now = 10 * YOUNG_MILLISECONDS
    old = now - YOUNG_MILLISECONDS - 1
    elsewhere = replace(FIRST, partition=1)
    assert mergeable([(FIRST, old), (SECOND, old), (elsewhere, old)], now) == [FIRST]
    assert mergeable([(SECOND, old), (FIRST, old), (elsewhere, old)], now) == [FIRST]
    assert mergeable([(FIRST, old + 1), (SECOND, old)], now) == []


def test_refused_records_and_seeds_keep_their_own_receipts() -> None:
    for changed in ({"kind": ReceiptKind.SKIPPED, "reason": f"{REFUSED}: too large"}, {"kind": ReceiptKind.SEED}):
        assert merge_receipts([replace(FIRST, **changed), replace(SECOND, **changed)], {}).merged == ()  # type: ignore[arg-type]


def test_runs_that_go_on_become_one_and_three_receipts_count_together() -> None:
    going_on = replace(SECOND, runs=((5, 15, 4),), downstream_end=19, written=())
    assert merge_receipts([FIRST, going_on], {}).merged[0].runs == ((0, 10, 9),)
    half = RUNS_PER_RECEIPT // 2
    row = [
        replace(
            FIRST, upstream_start=start, upstream_end=start + 2 * half, runs=tuple((start + 2 * n, start + 3 * n, 1) for n in range(half))
        )
        for start in (0, 100_000, 200_000)
    ]
    row = [replace(entry, upstream_end=following.upstream_start) for entry, following in zip(row, [*row[1:], SECOND], strict=True)]
    row[2] = replace(row[2], upstream_end=300_000)
    assert [len(entry.runs) for entry in merge_receipts(row, {}).merged] == [2 * half]


@pytest.mark.parametrize(
    ("held_ever", "tidied", "receipts", "due"),
    [
        (COMPACTION_RECORDS - 1, 0, 0, False),
        (COMPACTION_RECORDS, 0, 0, True),
        (COMPACTION_RECORDS + 50, 51, 0, False),
        (3 * COMPACTION_RECORDS, COMPACTION_RECORDS, 2 * COMPACTION_RECORDS, True),
        (3 * COMPACTION_RECORDS, COMPACTION_RECORDS, 2 * COMPACTION_RECORDS + 1, False),
        (50, 50, 0, False),
        (49, 50, 9 * COMPACTION_RECORDS, True),
    ],
)
def test_when_it_is_worth_reading_the_ledger(held_ever: int, tidied: int, receipts: int, due: bool) -> None:
    assert is_due(held_ever, FlowRecord("A->B", 8, tidied, receipts=receipts)) == due


def test_what_is_merged_is_written_before_what_it_replaces_goes() -> None:
    assert records_of(LedgerCompaction((FIRST,), (SECOND,))) == [encode_receipt(FIRST), (encode_receipt(SECOND)[0], None)]
