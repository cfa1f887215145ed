"""The timeline of a topic and its gaps."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.partition_plan import PartitionFacts
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.monitoring.ledger_ranges import CoveredRange
from ferry.page.coverage_timeline import RANGES_A_TOPIC, MissingRange, fewer_ranges, gaps, timeline

pytestmark = pytest.mark.unit


def receipt(kind: ReceiptKind, start: int, end: int, partition: int = 0, **more: object) -> Receipt:
    return Receipt(
        kind, "t", partition, "s", "A.t", "r", start, end, counters=Counters(records=end - start, bytes=10 * (end - start)), **more
    )  # type: ignore[arg-type]


def place(log_start: int = 0, position: int = 100, excluded: tuple[tuple[int, int], ...] = ()) -> PartitionFacts:
    end = position + 50
    return PartitionFacts(
        "t", 0, UUID(int=1), "A.t", UUID(int=2), 1, 0, log_start, end, end, position, guard=PartitionGuard(excluded=excluded)
    )


KINDS = [kind for kind in ReceiptKind if kind is not ReceiptKind.SEED]
spans = st.tuples(st.integers(0, 120), st.integers(0, 30), st.sampled_from(KINDS)).map(
    lambda span: receipt(span[2], span[0], span[0] + span[1])
)


@given(st.lists(spans, max_size=12), st.integers(0, 60), st.integers(0, 120), st.integers(0, 100))
def test_gaps_are_offsets_that_no_receipt_settles(receipts: list[Receipt], log_start: int, position: int, excluded: int) -> None:
    settled = {offset for entry in receipts for offset in range(entry.upstream_start, entry.upstream_end)} | set(
        range(excluded, excluded + 5)
    )
    found = gaps(place(log_start, position, ((excluded, excluded + 5),)), receipts)
    assert [offset for start, end in found for offset in range(start, end)] == [
        offset for offset in range(log_start, position) if offset not in settled
    ]
    assert all(end < start for (_, end), (start, _) in pairwise(found))


def test_a_seed_settles_no_offset() -> None:
    assert gaps(place(10), [receipt(ReceiptKind.SEED, 40, 40), receipt(ReceiptKind.COPIED, 40, 100)]) == ((10, 40),)


def test_missing_ranges_are_listed_among_the_others() -> None:
    receipts = [receipt(ReceiptKind.SEED, 40, 40, reason="start policy latest"), receipt(ReceiptKind.COPIED, 40, 100)]
    (found,) = timeline([place()], receipts, [MissingRange(0, 3, 40, 1000, 2000)])
    assert [(entry["kind"], entry["start"], entry["end"]) for entry in found["ranges"]] == [
        ("missing", 3, 40),
        ("seed", 40, 40),
        ("copied", 40, 100),
    ]
    assert found["ranges"][0] | {"records": -1, "min_timestamp": 1000, "max_timestamp": 1999} == found["ranges"][0]
    assert (found["log_start"], found["position"], found["end"], found["merged"]) == (0, 100, 150, False)


def test_a_partition_that_the_source_lost_is_shown_as_the_ledger_knows_it() -> None:
    (found,) = timeline([], [receipt(ReceiptKind.COPIED, 0, 5, partition=7)], [])
    assert (found["partition"], found["log_start"], found["position"], len(found["ranges"])) == (7, None, None, 1)


@given(
    st.lists(st.tuples(st.sampled_from(["copied", "loss", "missing"]), st.integers(1, 20), st.integers(0, 3)), max_size=80),
    st.integers(3, 30),
)
def test_fewer_ranges_keep_bounds_and_sums(steps: list[tuple[str, int, int]], limit: int) -> None:
    ranges, at = [], 0
    for number, (kind, length, hole) in enumerate(steps):
        ranges.append(CoveredRange("t", 0, kind, at + hole, at + hole + length, length, 2 * length, number, number + 1, f"reason {number}"))
        at += hole + length
    found = fewer_ranges(ranges, limit)
    assert len(found) <= limit + 3
    for kind in ("copied", "loss", "missing"):
        before, after = ([entry for entry in entries if entry.kind == kind] for entries in (ranges, found))
        assert sum(entry.records for entry in before) == sum(entry.records for entry in after)
        assert [min((e.start for e in before), default=0), max((e.end for e in before), default=0)] == [
            min((e.start for e in after), default=0),
            max((e.end for e in after), default=0),
        ]
        assert min((e.min_timestamp for e in before), default=0) == min((e.min_timestamp for e in after), default=0)
        covered = {offset for entry in after for offset in range(entry.start, entry.end)}
        assert covered >= {offset for entry in before for offset in range(entry.start, entry.end)}


def test_an_answer_is_bounded_whatever_the_ledger_holds() -> None:
    receipts = [
        receipt(kind, 10 * step, 10 * step + 5, number) for number in range(12) for step in range(1800) for kind in (KINDS[step % 4],)
    ]
    found = timeline([], receipts, [])
    assert sum(len(entry["ranges"]) for entry in found) <= RANGES_A_TOPIC + 12 * 6
    assert all(entry["merged"] for entry in found)
