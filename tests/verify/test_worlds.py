"""Random copies: a right one is equal in every place, a wrong one differs in the one place where it is wrong, whatever the ranges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verify.worlds import Record, Stored, World, compare, insert_stranger, planned, receipt, record, rewrite, wanted_offsets, worlds

from ferry.copying.ledger_compaction import merge_receipts
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import ReceiptKind
from ferry.verify.comparer import Tally
from ferry.verify.comparison import DifferenceKind, VerifyRange
from ferry.verify.unmatched import Mismatch
from ferry.verify.verify_plan import plan_partition
from ferry.wire.ranges import union

pytestmark = pytest.mark.unit

PIECES = st.sampled_from([1, 700, 1 << 30])
SEEDS = st.integers(1, 1 << 12)
STRANGER = Record(-1, 77, b"\x01\x10stranger\x00")


def findings(compared: list[tuple[VerifyRange, Tally]]) -> list[Mismatch]:
    assert not any(tally.beyond for _, tally in compared)
    return [finding for _, tally in compared for finding in tally.findings]


def records(compared: list[tuple[VerifyRange, Tally]]) -> int:
    return sum(tally.records for _, tally in compared)


@given(worlds(), SEEDS, PIECES)
def test_a_right_copy_is_equal(world: World, seed: int, piece: int) -> None:
    compared = compare(world, seed, piece)
    assert findings(compared) == []
    assert records(compared) == sum(len(stored.records) for stored in world.source)
    assert plan_partition(world.evidence()).not_covered == ()


@given(worlds())
def test_the_ranges_cover_the_target_without_gaps_and_claim_all_of_the_source(world: World) -> None:
    ranges = [wanted for wanted in planned(world, 300) if wanted.downstream[0] < wanted.downstream[1]]
    assert union(wanted.downstream for wanted in ranges) == ((world.target_start, world.target_end),)
    assert sum(end - start for start, end in (wanted.downstream for wanted in ranges)) == world.target_end - world.target_start
    assert union(span for wanted in ranges for span in wanted.claimed) == ((world.source_start, world.source_end),)


@given(st.data(), worlds(), PIECES, st.booleans())
def test_the_plan_is_the_same_whether_runs_are_decoded_or_not(data: st.DataObject, world: World, piece: int, exactly_once: bool) -> None:
    world.target_start = data.draw(st.integers(0, world.target_end))
    world.source_start = data.draw(st.integers(0, world.source_end))
    decoded = tuple(replace(entry, runs=tuple(entry.runs)) for entry in world.receipts)
    assert planned(world, piece, exactly_once=exactly_once) == planned(world, piece, exactly_once=exactly_once, receipts=decoded)


@given(st.data(), worlds(), SEEDS, PIECES)
def test_a_fault_is_found_and_nothing_else(data: st.DataObject, world: World, seed: int, piece: int) -> None:
    index = data.draw(st.sampled_from(world.faulty))
    stored = world.target[index]
    rows = [entry for _, entry in stored.records]
    at = data.draw(st.integers(0, len(rows) - 1))
    fault = data.draw(st.sampled_from(["removed", "doubled", "altered", "retimed", "swapped", "stranger"]))
    base = stored.base
    unique = len({(row.timestamp, row.payload) for row in rows}) == len(rows)
    match fault:
        case "removed" if len(rows) > 1:
            rewrite(world, index, lambda rows: rows[:at] + rows[at + 1 :])
            expected = [(DifferenceKind.MISSING, -1)]
        case "doubled":
            rewrite(world, index, lambda rows: rows[: at + 1] + rows[at:])
            expected = [(DifferenceKind.EXTRA, base + at + 1)]
        case "altered":
            rewrite(world, index, lambda rows: [*rows[:at], replace(rows[at], payload=rows[at].payload[:-2] + b"i\x01"), *rows[at + 1 :]])
            expected = [(DifferenceKind.ALTERED, base + at)]
        case "retimed":
            rewrite(world, index, lambda rows: [*rows[:at], replace(rows[at], timestamp=5), *rows[at + 1 :]])
            expected = [(DifferenceKind.ALTERED, base + at)]
        case "swapped" if at and unique:
            rewrite(world, index, lambda rows: [*rows[: at - 1], rows[at], rows[at - 1], *rows[at + 1 :]])
            expected = [(DifferenceKind.REORDERED, base + at - 1), (DifferenceKind.REORDERED, base + at)]
        case _:
            insert_stranger(world, stored.end + 1, STRANGER)
            expected = [(DifferenceKind.EXTRA, stored.end + 1)]
    found = findings(compare(world, seed, piece))
    assert [finding.kind for finding in found] == [kind for kind, _ in expected]
    if unique:
        assert [finding.downstream for finding in found] == [place for _, place in expected]
    if fault == "removed" and expected[0][0] is DifferenceKind.MISSING and unique:
        origin = {entry: offset for source in world.source for offset, entry in source.records}
        assert found[0].upstream == origin[rows[at]]


@given(st.data(), worlds(), SEEDS, PIECES)
def test_expired_records_are_not_covered_and_no_difference(data: st.DataObject, world: World, seed: int, piece: int) -> None:
    source_start = data.draw(st.integers(world.source_start, world.source_end))
    target_start = data.draw(st.integers(world.target_start, world.target_end))
    changes = {"source_start": source_start, "target_start": target_start}
    compared = compare(world, seed, piece, **changes)
    assert findings(compared) == []
    pairs = [
        (upstream + step, downstream + step)
        for entry in world.receipts
        for upstream, downstream, count in entry.runs
        for step in range(count)
    ]
    assert records(compared) == sum(upstream >= source_start and downstream >= target_start for upstream, downstream in pairs)
    plan = plan_partition(world.evidence(**changes))
    told = wanted_offsets(union((entry.start, entry.end) for entry in plan.not_covered if entry.side == "source"))
    left = {upstream for upstream, downstream in pairs if upstream < source_start or downstream < target_start}
    assert left <= told
    assert not told & {upstream for upstream, downstream in pairs if upstream >= source_start and downstream >= target_start}


@given(st.data(), worlds(), SEEDS)
def test_records_committed_behind_the_bound_are_left_for_the_next_verify(data: st.DataObject, world: World, seed: int) -> None:
    last = data.draw(st.integers(0, len(world.receipts)))
    bound = world.receipts[last - 1].downstream_end + 1 if last else world.target_start
    compared = compare(world, seed, target_end=bound)
    assert findings(compared) == []
    assert records(compared) == sum(entry.counters.records for entry in world.receipts[:last])


@given(st.data(), worlds(), SEEDS)
def test_records_that_are_declared_foreign_are_no_difference(data: st.DataObject, world: World, seed: int) -> None:
    place = data.draw(st.sampled_from([entry.downstream_end + 1 for entry in world.receipts]))
    insert_stranger(world, place, STRANGER)
    assert [(finding.kind, finding.downstream) for finding in findings(compare(world, seed))] == [(DifferenceKind.EXTRA, place)]
    count = sum(len(stored.records) for stored in world.source)
    for declared in (receipt(ReceiptKind.FOREIGN, 0, 0, downstream_end=place + 1), receipt(ReceiptKind.SEED, 0, 0, found=place + 1)):
        world.receipts.append(declared)
        compared = compare(world, seed)
        assert (findings(compared), records(compared)) == ([], count)
        world.receipts.pop()
    assert findings(compare(world, seed, local=True)) == []


@given(st.data(), worlds(), SEEDS)
def test_compaction_on_either_side_is_no_difference_and_counted(data: st.DataObject, world: World, seed: int) -> None:
    for log in (world.source, world.target):
        for index, stored in enumerate(log):
            kept = tuple(entry for entry in stored.records if data.draw(st.integers(0, 3))) or stored.records[:1]
            log[index] = replace(stored, records=kept)
    numbers = [{entry.number for stored in log for _, entry in stored.records} for log in (world.source, world.target)]
    compared = compare(world, seed)
    assert findings(compared) == []
    assert records(compared) == len(numbers[0] & numbers[1])
    assert sum(tally.only_source for _, tally in compared) == len(numbers[0] - numbers[1])
    assert sum(tally.only_target for _, tally in compared) == len(numbers[1] - numbers[0])


@given(st.data(), worlds(), SEEDS, st.sampled_from(["source", "target"]), st.booleans())
def test_only_a_hole_in_the_log_excuses_a_record(data: st.DataObject, world: World, seed: int, name: str, cleaned: bool) -> None:
    """Whatever cleanup.policy says today. Where the log holds something else (a marker, aborted data), the record was never there."""
    log = getattr(world, name)
    gone = log.pop(data.draw(st.integers(0, len(log) - 1)))
    if cleaned:
        world.cleaned = (((gone.base, gone.end),), ()) if name == "source" else ((), ((gone.base, gone.end),))
    compared = compare(world, seed)
    kind = DifferenceKind.EXTRA if name == "source" else DifferenceKind.MISSING
    assert [finding.kind for finding in findings(compared)] == ([] if cleaned else [kind] * len(gone.records))
    told = sum(tally.only_target if name == "source" else tally.only_source for _, tally in compared)
    assert told == (len(gone.records) if cleaned else 0)


@given(worlds(), SEEDS)
def test_a_record_that_no_run_names_is_missing(world: World, seed: int) -> None:
    """The copier left it out and its ledger does not even say that it is there."""
    last = world.source[-1]
    world.source[-1] = replace(last, end=last.end + 1, records=(*last.records, (last.end, record(10_000, 1))))
    if last.end == world.source_end:
        world.source_end += 1
        index = max(range(len(world.receipts)), key=lambda index: world.receipts[index].upstream_end)
        world.receipts[index] = replace(world.receipts[index], upstream_end=world.source_end)
    assert [(finding.kind, finding.upstream) for finding in findings(compare(world, seed))] == [(DifferenceKind.MISSING, last.end)]


@given(worlds(), SEEDS, PIECES, st.booleans())
def test_merged_receipts_give_the_same_ranges_also_beside_the_receipts_that_they_replace(
    world: World, seed: int, piece: int, halfway: bool
) -> None:
    """Upkeep writes merged receipts before it removes the others: a reader may find a range twice."""
    done = merge_receipts(world.receipts, {})
    keys = {(entry.kind, entry.upstream_start) for entry in (*done.merged, *(() if halfway else done.replaced))}
    world.receipts = [*(entry for entry in world.receipts if (entry.kind, entry.upstream_start) not in keys), *done.merged]
    compared = compare(world, seed, piece)
    assert findings(compared) == []
    assert records(compared) == sum(len(stored.records) for stored in world.source)


@given(st.data(), worlds(), SEEDS, PIECES)
def test_receipts_whose_runs_compaction_dropped_claim_nothing(data: st.DataObject, world: World, seed: int, piece: int) -> None:
    start = data.draw(st.sampled_from([entry.downstream_end for entry in world.receipts]))
    before = compare(world, seed, piece, target_start=start)
    done = merge_receipts(world.receipts, {("r", 0): start})
    keys = {(entry.kind, entry.upstream_start) for entry in (*done.merged, *done.replaced)}
    world.receipts = [*(entry for entry in world.receipts if (entry.kind, entry.upstream_start) not in keys), *done.merged]
    compared = compare(world, seed, piece, target_start=start)
    assert (findings(compared), records(compared)) == ([], records(before))


@given(worlds(), SEEDS, PIECES)
def test_a_place_that_the_ledger_names_twice_hides_no_record(world: World, seed: int, piece: int) -> None:
    """The target's log lost its end, and what was copied next took the same offsets."""
    last = world.receipts[-1]
    lost = [entry for stored in world.source for entry in stored.records if last.upstream_start <= entry[0] < last.upstream_end]
    begin = world.source_end
    again = tuple((begin + index, entry) for index, (_, entry) in enumerate(lost))
    world.source.append(Stored(begin, begin + len(again), again))
    world.source_end = begin + len(again)
    count, place = len(again), last.runs[0][1]
    runs = ((begin, place, count),)
    world.receipts.append(
        receipt(ReceiptKind.COPIED, begin, world.source_end, runs=runs, downstream_end=place + count, counters=Counters(count))
    )
    found = findings(compare(world, seed, piece))
    assert len([finding for finding in found if finding.kind is DifferenceKind.MISSING]) >= count


@given(st.data(), worlds(), SEEDS, PIECES)
def test_records_below_the_position_without_a_receipt_are_missing(data: st.DataObject, world: World, seed: int, piece: int) -> None:
    """A record that a copier neither copied nor wrote a receipt of; only a seed may be set behind records."""
    index = data.draw(st.sampled_from([place for place, entry in enumerate(world.receipts) if entry.kind is ReceiptKind.COPIED]))
    gone = world.receipts.pop(index)
    span = (gone.runs[0][1], gone.downstream_end)
    world.target = [stored for stored in world.target if not span[0] <= stored.base < span[1]]
    expected = [offset for stored in world.source for offset, _ in stored.records if gone.upstream_start <= offset < gone.upstream_end]
    world.receipts.append(receipt(ReceiptKind.SEED, world.source_start, world.source_start))
    found = findings(compare(world, seed, piece, position=world.source_end))
    assert [(finding.kind, finding.upstream) for finding in found] == [(DifferenceKind.MISSING, offset) for offset in expected]
    world.receipts.append(receipt(ReceiptKind.SEED, gone.upstream_end, gone.upstream_end, reason="an operator's word"))
    assert findings(compare(world, seed, piece, position=world.source_end)) == []
    (told,) = plan_partition(world.evidence(position=world.source_end)).not_covered
    assert (told.start, told.end, "an operator's word" in told.reason) == (gone.upstream_start, gone.upstream_end, True)


def test_a_receipt_whose_runs_reach_into_the_next_one_hides_no_copy() -> None:
    """Nobody writes such a ledger; a verify is there to find out. Records 10 to 14 are twice on the target."""
    rows = [record(number, 1) for number in range(20)]
    world = World(
        source=[Stored(0, 20, tuple(enumerate(rows)))],
        target=[Stored(0, 15, tuple(enumerate(rows[:15]))), Stored(20, 30, tuple(enumerate(rows[10:], 20)))],
        receipts=[
            receipt(ReceiptKind.COPIED, 0, 10, runs=((0, 0, 15),), downstream_end=15, counters=Counters(15, 1_500, 1)),
            receipt(ReceiptKind.COPIED, 10, 20, runs=((10, 20, 10),), downstream_end=30, counters=Counters(10, 1_000, 1)),
        ],
        source_end=20,
        target_end=30,
    )
    assert [wanted.runs for wanted in planned(world)] == [((0, 0, 10), (10, 20, 10))]
    assert {(finding.kind, finding.downstream) for finding in findings(compare(world))} == {
        (DifferenceKind.EXTRA, place) for place in range(10, 15)
    }
