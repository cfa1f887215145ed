"""One topic on two clusters, copied both ways: a reader that changes sides misses nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.translation.offset_map import LogBounds, OffsetMap, merged
from ferry.translation.translated import Inexact
from ferry.wire.runs import OffsetRun

pytestmark = pytest.mark.unit


@dataclass
class Side:
    """One cluster: its log (a record's name, or None for what no reader sees), and what was copied into it from the other side."""

    log: list[str | None] = field(default_factory=list)
    position: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    def offset_of(self, name: str) -> int:
        return self.log.index(name)

    def names(self, start: int = 0) -> list[str]:
        return [name for name in self.log[start:] if name is not None]


BLANK = Receipt(ReceiptKind.COPIED, "t", 0, "source-id", "t", "remote-id", 0, 0)


def copy(source: Side, target: Side, count: int, aborted: int) -> None:
    """One transaction: the next `count` offsets, without what came from the other side."""
    if aborted:
        target.log += [None] * (aborted + 1)
    start, end = target.position, min(target.position + count, len(source.log))
    came_back = set(target.names())
    runs: list[OffsetRun] = []
    for offset in range(start, end):
        name = source.log[offset]
        if name is not None and name not in came_back:
            runs.append((offset, len(target.log), 1))
            target.log.append(name)
    if end > start:
        put = {"runs": tuple(runs), "counters": Counters(len(runs), transactions=1), "downstream_end": len(target.log)} if runs else {}
        target.receipts.append(replace(BLANK, upstream_start=start, upstream_end=end, **put))
        target.position = end
    if runs:
        target.log.append(None)


Sides = tuple[Side, Side]


def played(steps: list[tuple[str, int, int]]) -> Sides:
    here, there = Side(), Side()
    for side in (here, there):
        side.receipts.append(replace(BLANK, kind=ReceiptKind.SEED))
    for number, (what, count, extra) in enumerate(steps):
        match what:
            case "here" | "there":
                side = here if what == "here" else there
                side.log += [f"{what}-{number}-{index}" for index in range(count)]
            case "over":
                copy(here, there, count, extra)
            case "back":
                copy(there, here, count, extra)
    return here, there


STEPS = st.lists(st.tuples(st.sampled_from(("here", "there", "over", "over", "back", "back")), st.integers(1, 8), st.integers(0, 1)))


def maps_of(here: Side, there: Side) -> tuple[OffsetMap, OffsetMap]:
    forward = OffsetMap(there.receipts, LogBounds(target_end=len(there.log)))
    return forward, OffsetMap(here.receipts, LogBounds(target_end=len(here.log)))


@given(STEPS.map(played))
def test_no_position_skips_a_record_and_an_exact_one_repeats_none(sides: Sides) -> None:
    here, there = sides
    forward, opposite = maps_of(here, there)
    for offset in range(len(here.log) + 1):
        said = merged(forward, opposite, offset)
        known = set(here.names()[: len(here.names()) - len(here.names(offset))])
        unread = [name for name in there.names() if name not in known]
        ahead = there.names(said.image)
        assert set(unread) <= set(ahead)
        if said.exact:
            assert [name for name in ahead if name in here.names()] == [name for name in here.names(offset) if name in there.names()]


def test_every_position_is_exact_while_only_one_side_writes() -> None:
    steps = [("here", 8, 0), ("over", 8, 0), ("here", 8, 0), ("over", 5, 0), ("back", 8, 0), ("over", 3, 0)]
    here, there = played(steps)
    forward, opposite = maps_of(here, there)
    assert opposite.position == 8  # the way back lags behind, and has nothing to bring
    said = [merged(forward, opposite, offset) for offset in range(17)]
    assert [entry.image for entry in said] == [*range(8), *range(9, 14), *range(15, 18), 18]
    assert all(entry.exact for entry in said)
    # Failed over, and everything brought back: readers of what the other side wrote go on there.
    there.log += [f"there-{number}" for number in range(4)]
    copy(there, here, 100, 0)
    forward, opposite = maps_of(here, there)
    said = [merged(forward, opposite, here.offset_of(f"there-{number}")) for number in range(4)]
    assert [(entry.image, entry.exact) for entry in said] == [(there.offset_of(f"there-{number}"), True) for number in range(4)]
    older = merged(forward, opposite, 10)
    assert (older.image, older.reason) == (there.log.index(here.log[10]), Inexact.MERGED)


def skipped(start: int, end: int) -> Receipt:
    """What came back was left out."""
    return replace(BLANK, upstream_start=start, upstream_end=end)


def test_consumers_that_only_read_records_of_the_other_side() -> None:
    here, there = played([("there", 5, 0), ("back", 5, 0), ("over", 6, 0)])
    said = [merged(*maps_of(here, there), offset) for offset in range(8)]
    assert [(entry.image, entry.reason) for entry in said[:5]] == [(offset, None) for offset in range(5)]
    assert (said[6].image, said[6].reason) == (5, None)
    # The forward flow's own reason tells more than that two images were compared.
    assert (said[7].reason, said[7].ahead) == (Inexact.AHEAD, 1)


def test_records_that_the_other_side_copied_in_another_order_are_not_exact() -> None:
    came_back = [
        replace(BLANK, upstream_start=10, upstream_end=20, runs=((10, 0, 10),), counters=Counters(10, transactions=1), downstream_end=10),
        replace(
            BLANK,
            kind=ReceiptKind.BACKFILLED,
            upstream_end=10,
            runs=((0, 11, 10),),
            counters=Counters(10, transactions=1),
            downstream_end=21,
        ),
    ]
    forward = OffsetMap([skipped(0, 22)], LogBounds(target_end=20))
    said = merged(forward, OffsetMap(came_back, LogBounds(target_end=22)), 5)
    assert (said.image, said.reason) == (0, Inexact.MERGED)


def test_records_that_returned_after_the_end_was_captured_are_read_again() -> None:
    came_back = replace(BLANK, upstream_end=5, runs=((0, 0, 5),), counters=Counters(5, transactions=1), downstream_end=5)
    forward = OffsetMap([skipped(0, 6)], LogBounds(target_end=0))
    said = merged(forward, OffsetMap([came_back], LogBounds(target_end=6)), 6)
    assert (said.image, said.reason) == (0, Inexact.MERGED)


def test_copies_that_expired_hide_no_records() -> None:
    forgotten = replace(BLANK, upstream_end=10, counters=Counters(10, transactions=1), downstream_end=10)
    later = replace(BLANK, upstream_start=10, upstream_end=15, runs=((10, 11, 5),), counters=Counters(5, transactions=1), downstream_end=16)
    forward = OffsetMap([forgotten, later], LogBounds(target_start=10, target_end=17))
    said = merged(forward, OffsetMap([skipped(0, 17)], LogBounds(target_end=15)), 12)
    assert (said.image, said.reason) == (13, None)
