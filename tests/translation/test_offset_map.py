"""The offset map against histories that are written down record by record."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.translation.worlds import BLANK, World, worlds

from ferry.copying.ledger_compaction import merge_receipts
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.translation.offset_map import LogBounds, OffsetMap, seeded_again
from ferry.translation.translated import Inexact, Translation
from ferry.translation.unexplained import ExternalRecords, unexplained_ranges

pytestmark = pytest.mark.unit

OFFSETS = range(46)
PROVABLE = worlds("copy", "lose", "skip", "backfill", "expire", "age")
# With a position that was taken back there is less to tell: new receipts replace the first ones in the ledger where they begin alike.
ANY = worlds("lose", "skip", "jump", "backfill", "stranger", "expire", "age") | worlds("rewind", "expire")
# The same without anything that brings older records behind newer ones.
RISING = worlds("lose", "skip", "expire", "age")


def map_of(world: World, receipts: list[Receipt] | None = None) -> OffsetMap:
    bounds = LogBounds(world.source_start, world.target_start, world.end, world.position)
    return OffsetMap(world.receipts if receipts is None else receipts, bounds)


def follows(world: World, offset: int, image: int) -> bool:
    """Whether a reader of the target meets exactly what follows `offset` at the source."""
    open_gap = any(gap_end > max(offset, world.source_start) for _, gap_end in world.gaps())
    return offset <= world.position and not open_gap and world.read_from(image) == world.expected_from(offset)


@given(ANY)
def test_no_image_skips_a_record_and_an_exact_one_repeats_none(world: World) -> None:
    found = map_of(world)
    on_target = [(upstream, place) for upstream, place in [*world.copies, *world.strangers] if place >= world.target_start]
    for offset in OFFSETS:
        said = found.translate(offset)
        assert (said.reason is Inexact.AHEAD) == (offset > world.position)
        # What lies behind a position that was taken back is copied again, unless it is lost by then.
        wanted = {upstream for upstream, _ in on_target if offset <= upstream < world.position} - world.lost
        assert wanted <= {upstream for upstream, place in on_target if place >= said.image}
        assert said.image >= world.target_start
        assert not said.exact or follows(world, offset, said.image)


@given(PROVABLE)
def test_an_image_is_the_first_copy_and_exact_only_if_the_rest_is_the_same(world: World) -> None:
    found = map_of(world)
    for offset in OFFSETS:
        said = found.translate(offset)
        copies = [place for upstream, place in world.copies if upstream >= offset]
        if said.reason is not Inexact.UNEXPLAINED:  # what an aborted transaction left at the very beginning looks like others' records
            ends = [receipt.downstream_end for receipt in world.receipts if receipt.downstream_end >= 0]
            assert said.image == max(min(copies, default=max(ends, default=world.end)), world.target_start)
            assert said.exact == follows(world, offset, said.image)


@given(PROVABLE)
def test_every_reason_is_true(world: World) -> None:
    found = map_of(world)
    for offset in OFFSETS:
        said = found.translate(offset)
        copies = [place for upstream, place in world.copies if upstream >= offset]
        match said.reason:
            case Inexact.AHEAD:
                assert offset > world.position
            case Inexact.NOT_COPIED:
                assert any(end > max(offset, world.source_start) for _, end in world.gaps())
            case Inexact.TARGET_EXPIRED:
                assert min(copies) < world.target_start == said.image
            case Inexact.BACKFILLED:
                read = world.read_from(said.image)
                assert read != sorted(read) or min(read) < offset
            case Inexact.UNEXPLAINED:
                assert offset < world.receipts[0].upstream_start


@given(RISING)
def test_images_rise(world: World) -> None:
    found = map_of(world)
    images = [found.translate(offset).image for offset in OFFSETS]
    origins = [found.invert(place).image for place in range(world.end + 3)]
    assert (images, origins) == (sorted(images), sorted(origins))


@given(ANY)
def test_no_origin_skips_a_record_and_an_exact_one_repeats_none(world: World) -> None:
    found = map_of(world)
    for place in range(world.target_start, world.end + 3):
        said = found.invert(place)
        assert (said.reason is Inexact.AHEAD) == (place > world.end)
        behind = {upstream for upstream, downstream in [*world.copies, *world.strangers] if downstream >= place and upstream >= 0}
        assert all(upstream >= said.image for upstream in behind if upstream >= world.source_start)
        if said.exact:
            assert place <= world.end
            assert world.read_from(place) == world.expected_from(said.image)
            assert not any(end > said.image for _, end in world.gaps())


@given(RISING)
def test_the_inverse_of_an_exact_image_is_the_position(world: World) -> None:
    found = map_of(world)
    for upstream, _ in world.copies:
        there = found.translate(upstream)
        if there.exact and upstream >= world.source_start:
            back = found.invert(there.image)
            assert (back.image, back.exact) == (upstream, True)
    at_end = found.translate(world.position)
    if at_end.exact and world.position >= world.source_start:
        assert found.invert(at_end.image).image == world.position


def tidied(world: World, kept: int) -> OffsetMap:
    """The map after upkeep of all but the newest `kept` receipts."""
    old = world.receipts[: max(0, len(world.receipts) - kept)]
    done = merge_receipts(old, {("A.t", 0): world.target_start})
    rewritten = {(entry.kind, entry.upstream_start, entry.series) for entry in (*done.merged, *done.replaced)}
    rest = [entry for entry in world.receipts if (entry.kind, entry.upstream_start, entry.series) not in rewritten]
    return map_of(world, [*rest, *done.merged])


@given(PROVABLE, st.integers(0, 4))
def test_compaction_of_the_ledger_changes_no_image_of_retained_records(world: World, kept: int) -> None:
    before, after = map_of(world), tidied(world, kept)
    for offset in OFFSETS:
        said, now = before.translate(offset), after.translate(offset)
        if any(upstream_end > offset for upstream_end in forgotten(world)):
            assert now == said or now.image == world.target_start <= said.image
            assert not now.exact or said.exact
        else:
            assert now == said
    for place in range(world.target_start, world.end + 3):
        assert after.invert(place) == before.invert(place)


def forgotten(world: World) -> list[int]:
    return [entry.upstream_end for entry in world.receipts if 0 <= entry.downstream_end <= world.target_start]


@given(ANY, st.integers(0, 4))
def test_compaction_of_the_ledger_makes_no_image_exact(world: World, kept: int) -> None:
    before, after = map_of(world), tidied(world, kept)
    for offset in OFFSETS:
        assert after.translate(offset).image <= before.translate(offset).image
        assert not after.translate(offset).exact or before.translate(offset).exact
        assert not after.invert(offset).exact or before.invert(offset).exact


def receipt(kind: ReceiptKind, start: int, end: int, **fields: object) -> Receipt:
    return replace(BLANK, kind=kind, upstream_start=start, upstream_end=end, **fields)


def copied(start: int, place: int, count: int, kind: ReceiptKind = ReceiptKind.COPIED) -> Receipt:
    return receipt(
        kind,
        start,
        start + count,
        runs=((start, place, count),),
        counters=Counters(count, transactions=1),
        downstream_end=place + count,
    )


def test_an_empty_partition_is_exact_at_its_seed() -> None:
    found = OffsetMap([receipt(ReceiptKind.SEED, 70, 70)], LogBounds(source_start=70))
    assert [(found.translate(offset).image, found.translate(offset).reason) for offset in (60, 70, 71)] == [
        (0, None),  # what lay in front had expired: the source's reader goes on at 70 too
        (0, None),
        (0, Inexact.AHEAD),
    ]
    assert OffsetMap([receipt(ReceiptKind.SEED, 70, 70)]).translate(60).reason is Inexact.NOT_COPIED


def test_without_any_receipt_nothing_is_exact() -> None:
    assert OffsetMap([], LogBounds()).translate(0).reason is Inexact.NOT_COPIED
    strange = OffsetMap([], LogBounds(target_start=5, target_end=50)).translate(7)
    assert (strange.image, strange.reason) == (5, Inexact.UNEXPLAINED)


def test_from_the_position_of_another_replicator_on_images_are_exact() -> None:
    taken_over = [
        receipt(ReceiptKind.SEED, 1000, 1000),
        receipt(ReceiptKind.FOREIGN, 0, 1000, downstream_end=1200),
        copied(1000, 1200, 50),
    ]
    found = OffsetMap(taken_over, LogBounds(target_start=100, target_end=1251))
    said = [found.translate(offset) for offset in (0, 999, 1000, 1010, 1050)]
    assert [(entry.image, entry.reason) for entry in said] == [
        (100, Inexact.UNEXPLAINED),
        (100, Inexact.UNEXPLAINED),
        (1200, None),
        (1210, None),
        (1250, None),
    ]
    before_any_copy = OffsetMap(taken_over[:2], LogBounds(target_end=1200))
    assert (before_any_copy.translate(1000).image, before_any_copy.translate(1000).exact) == (1200, True)
    assert told(found, 1199, 1200) == [(0, Inexact.UNEXPLAINED), (1000, None)]
    expired = OffsetMap(taken_over, LogBounds(target_start=1200, target_end=1251))
    assert (expired.translate(999).image, expired.translate(999).reason) == (1200, Inexact.TARGET_EXPIRED)
    assert told(expired, 1199, 1200) == [(1000, None), (1000, None)]


def told(found: OffsetMap, *places: int) -> list[tuple[int, Inexact | None]]:
    return [(entry.image, entry.reason) for entry in map(found.invert, places)]


def test_records_before_the_first_copy_are_not_explained() -> None:
    from_latest = [receipt(ReceiptKind.SEED, 5, 5), copied(5, 10, 5)]
    found = OffsetMap(from_latest, LogBounds(target_end=16))
    assert (found.translate(4).image, found.translate(4).reason) == (0, Inexact.UNEXPLAINED)
    assert told(found, 3, 9, 10, 15) == [(0, Inexact.UNEXPLAINED), (0, Inexact.UNEXPLAINED), (5, None), (10, None)]
    begins_there = OffsetMap(from_latest, LogBounds(target_start=10, target_end=16))
    assert told(begins_there, 3, 10) == [(5, None), (5, None)]
    # Older ones than were copied are not at the source either.
    assert told(OffsetMap(from_latest, LogBounds(source_start=5, target_end=16)), 3) == [(5, None)]


def test_the_inverse_names_expired_and_backfilled_records() -> None:
    plain = OffsetMap([receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10)], LogBounds(source_start=5, target_end=11))
    assert told(plain, 2, 5, 11, 12) == [(5, Inexact.TARGET_EXPIRED), (5, None), (10, None), (10, Inexact.AHEAD)]
    late = [receipt(ReceiptKind.SEED, 5, 5), copied(5, 0, 5), copied(0, 6, 5, ReceiptKind.BACKFILLED)]
    reasons = [reason for _, reason in told(OffsetMap(late, LogBounds(target_end=12)), 0, 4, 5, 6)]
    assert reasons == [Inexact.BACKFILLED] * 4
    assert told(OffsetMap([], LogBounds(source_start=3)), 0) == [(3, Inexact.NOT_COPIED)]


def test_at_least_once_copies_are_exact_only_after_the_last_gap() -> None:
    receipts = [receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10), copied(10, 10, 10), copied(20, 25, 10)]
    found = OffsetMap(receipts, LogBounds(target_end=35, exactly_once=False))
    assert [found.translate(offset).reason for offset in (0, 19, 20, 30)] == [Inexact.UNEXPLAINED, Inexact.UNEXPLAINED, None, None]
    repeated_at_the_end = OffsetMap(receipts, LogBounds(target_end=36, exactly_once=False))
    assert {repeated_at_the_end.translate(offset).reason for offset in range(31)} == {Inexact.UNEXPLAINED}


def test_records_without_a_receipt_are_never_passed_over() -> None:
    """Without transactions they can be read before their receipt is there: a group that was placed after them would skip them."""
    nothing = LogBounds(target_start=3, target_end=40, exactly_once=False)
    assert OffsetMap([receipt(ReceiptKind.SEED, 0, 0)], nothing).translate(20).image == 3
    assert OffsetMap([receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10)], nothing).translate(20).image == 10


@pytest.mark.parametrize("exactly_once", [True, False])
def test_receipts_name_what_is_there_twice(exactly_once: bool) -> None:
    """Also when the flow copies in transactions meanwhile."""
    receipts = [receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10), replace(copied(10, 15, 10), repeated=((10, 15),))]
    found = OffsetMap(receipts, LogBounds(target_end=25, exactly_once=exactly_once))
    assert [found.translate(offset) for offset in (0, 9)] == [Translation(0, Inexact.UNEXPLAINED), Translation(9, Inexact.UNEXPLAINED)]
    assert [found.translate(offset) for offset in (10, 20)] == [Translation(15), Translation(25)]
    expired = OffsetMap(receipts, LogBounds(target_start=15, target_end=25, exactly_once=exactly_once))
    assert expired.translate(10) == Translation(15)


@pytest.mark.parametrize(
    ("reasons", "again"),
    [([], False), (["start policy earliest"], False), (["start policy latest"] * 2, True), (["operator: seeds.csv"], True)],
)
def test_a_partition_that_was_seeded_again(reasons: list[str], again: bool) -> None:
    seeds = [receipt(ReceiptKind.SEED, 7 * number, 7 * number, reason=reason) for number, reason in enumerate(reasons)]
    assert seeded_again([*seeds, copied(0, 0, 5), copied(5, 6, 5)]) == again


def test_a_consumer_between_several_outputs_of_one_record_reads_that_record_again() -> None:
    handled = receipt(
        ReceiptKind.COPIED, 0, 3, runs=((0, 0, 1), (1, 3, 1)), counters=Counters(5, transactions=1, added=3), downstream_end=5
    )
    found = OffsetMap([receipt(ReceiptKind.SEED, 0, 0), handled], LogBounds(target_end=6))
    assert [found.translate(offset).image for offset in range(4)] == [0, 3, 5, 5]
    assert [found.invert(place).image for place in range(7)] == [0, 0, 0, 1, 1, 3, 3]
    assert [found.invert(place).exact for place in (0, 1, 3, 4, 5)] == [True, False, True, False, True]
    behind_others = replace(handled, upstream_start=4, upstream_end=7, runs=((4, 5, 1), (5, 8, 1)), downstream_end=10)
    found = OffsetMap([receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 4), behind_others], LogBounds(target_end=11))
    assert [found.invert(place).image for place in range(12)] == [0, 1, 2, 3, 4, 4, 4, 4, 5, 5, 7, 7]


def test_records_of_a_receipt_within_another_count_once() -> None:
    whole = [receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10), copied(10, 11, 10)]
    once, twice = OffsetMap(whole, LogBounds(target_end=22)), OffsetMap([*whole, copied(3, 3, 4)], LogBounds(target_end=22))
    assert [once.translate(offset) for offset in range(21)] == [twice.translate(offset) for offset in range(21)]
    assert [once.invert(place) for place in range(23)] == [twice.invert(place) for place in range(23)]


def test_of_two_copies_the_first_counts() -> None:
    again = receipt(ReceiptKind.SEED, 4, 4, reason="operator: seeds.csv")
    found = OffsetMap([receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10), again, copied(4, 11, 8)], LogBounds(target_end=20))
    said = [found.translate(offset) for offset in (3, 4, 9, 10, 11)]
    assert [(entry.image, entry.exact) for entry in said] == [(3, False), (4, False), (9, False), (17, True), (18, True)]
    taken_back = OffsetMap([receipt(ReceiptKind.SEED, 0, 0), copied(0, 0, 10), again], LogBounds(target_end=11, position=4))
    assert told(taken_back, 3, 8, 10) == [(3, Inexact.BACKFILLED), (4, Inexact.BACKFILLED), (4, Inexact.BACKFILLED)]


def test_a_consumer_before_records_that_expired_at_the_target_goes_back_before_all_of_them() -> None:
    forgotten = receipt(ReceiptKind.COPIED, 5, 15, counters=Counters(10, transactions=1), downstream_end=10)
    found = OffsetMap([receipt(ReceiptKind.SEED, 5, 5), forgotten, copied(15, 11, 5)], LogBounds(target_start=11, target_end=17))
    assert told(found, 3, 9, 10, 11) == [(5, Inexact.TARGET_EXPIRED), (5, Inexact.TARGET_EXPIRED), (15, None), (15, None)]
    said = [found.translate(offset) for offset in (5, 14, 15)]
    assert [(entry.image, entry.reason) for entry in said] == [(11, Inexact.TARGET_EXPIRED), (11, Inexact.TARGET_EXPIRED), (11, None)]


def test_external_records_after_expired_ones_still_count() -> None:
    receipts = [
        receipt(ReceiptKind.SEED, 0, 0),
        receipt(ReceiptKind.COPIED, 0, 10, counters=Counters(10, transactions=1), downstream_end=10),
        receipt(ReceiptKind.FOREIGN, 10, 20, downstream_end=20),
        copied(20, 20, 5),
    ]
    found = OffsetMap(receipts, LogBounds(target_start=11, target_end=26))
    said = [found.translate(offset) for offset in (10, 19, 20)]
    assert [(entry.image, entry.reason) for entry in said] == [(11, Inexact.UNEXPLAINED), (11, Inexact.UNEXPLAINED), (20, None)]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=4), st.integers(0, 12), st.integers(0, 12))
def test_the_next_offset_that_nothing_explains(widths: list[tuple[int, int]], start: int, end: int) -> None:
    ranges, at = [], 0
    for gap, width in widths:
        ranges.append((at + gap, at + gap + width))
        at += gap + width
    unexplained = (offset for low, high in ranges for offset in range(low, high) if offset >= start)
    expected = min(unexplained, default=max(start, end))
    assert ExternalRecords((), tuple(ranges), 0, doubted=False).first_from(start, end) == expected


BACKFILL = copied(0, 0, 5, ReceiptKind.BACKFILLED)
HOLED = replace(copied(0, 0, 6), runs=((0, 0, 2), (2, 4, 4)), downstream_end=8)
MERGED = replace(copied(0, 10, 5), runs=((0, 10, 2), (2, 13, 3)), downstream_end=16, counters=Counters(5, transactions=2))
BEHIND_A_HOLE = replace(copied(5, 9, 5), runs=((5, 9, 3), (8, 14, 2)), downstream_end=16)


@pytest.mark.parametrize(
    ("receipts", "marked", "expected"),
    [
        pytest.param([copied(0, 0, 5), copied(5, 6, 5)], True, (), id="a marker between two transactions"),
        pytest.param([copied(0, 0, 5), copied(5, 6, 5)], False, ((5, 6),), id="there are no markers"),
        pytest.param([copied(0, 0, 5), copied(5, 7, 5)], True, ((5, 7),), id="more than a marker"),
        pytest.param([copied(5, 0, 5), copied(0, 6, 5, ReceiptKind.BACKFILLED)], True, ((5, 6),), id="perhaps one transaction"),
        pytest.param([copied(0, 0, 5), replace(copied(5, 6, 5), counters=Counters(5))], True, ((5, 6),), id="pieces of one receipt"),
        pytest.param([copied(0, 0, 5), receipt(ReceiptKind.LOSS, 5, 7), copied(7, 6, 5)], True, ((5, 6),), id="a loss between"),
        pytest.param([copied(0, 0, 5), copied(7, 6, 5)], True, (), id="a seed between"),
        pytest.param([BACKFILL, copied(7, 6, 5, ReceiptKind.BACKFILLED)], True, ((5, 6),), id="gaps filled, perhaps by one"),
        pytest.param([copied(0, 0, 5), copied(3, 6, 5)], True, ((5, 6),), id="taken back"),
        pytest.param([copied(6, 8, 2), copied(0, 0, 5), copied(5, 6, 1)], True, (), id="in any order"),
        pytest.param([copied(0, 0, 10), copied(3, 3, 4), copied(10, 11, 5)], True, (), id="one within another"),
        pytest.param([HOLED], True, ((2, 4),), id="within one"),
        pytest.param([HOLED], False, ((2, 4),), id="within one, no markers"),
        pytest.param([copied(0, 2, 5), replace(MERGED, upstream_start=5)], True, ((0, 2), (7, 10)), id="in front and between"),
        pytest.param(
            [replace(copied(0, 1, 5), downstream_end=7), BEHIND_A_HOLE], True, ((0, 1), (6, 7), (7, 9), (12, 14)), id="everywhere"
        ),
        pytest.param([MERGED], True, ((0, 10),), id="merged"),
        pytest.param([MERGED], False, ((0, 10), (12, 13)), id="merged, no markers"),
        pytest.param([replace(MERGED, counters=Counters(5, transactions=1))], False, ((0, 10), (12, 13)), id="one hole, no markers"),
        pytest.param([replace(HOLED, counters=Counters(6, transactions=3))], True, ((2, 4),), id="two transactions of three put nothing"),
    ],
)
def test_ranges_that_may_hold_external_records(receipts: list[Receipt], marked: bool, expected: tuple[tuple[int, int], ...]) -> None:
    assert unexplained_ranges(receipts, 0, marked=marked) == expected


def test_an_unexplained_range_at_the_end() -> None:
    for marked, held, end, expected in (
        (True, [copied(0, 0, 5)], 6, ()),
        (True, [copied(0, 0, 5)], 7, ((5, 7),)),
        (False, [copied(0, 0, 5)], 6, ((5, 6),)),
        (True, [], 1, ((0, 1),)),
    ):
        assert unexplained_ranges(held, end, marked=marked) == expected


@pytest.mark.timeout(200)  # a look through all runs for each question would take hours
def test_hundreds_of_thousands_of_runs() -> None:
    runs = 300_000
    receipts = [
        receipt(
            ReceiptKind.COPIED,
            11 * start,
            11 * (start + 10_000),
            runs=tuple((11 * index, 10 * index + start // 10_000, 10) for index in range(start, start + 10_000)),
            counters=Counters(100_000, transactions=1),
            downstream_end=10 * (start + 10_000) + start // 10_000,
        )
        for start in range(0, runs, 10_000)
    ]
    found = OffsetMap(receipts, LogBounds(target_end=10 * runs + 40))
    said = [found.translate(offset) for offset in range(0, 11 * runs, 43)]
    back = [found.invert(entry.image) for entry in said]
    assert all(entry.exact for entry in said)
    assert [entry.image for entry in back] == [offset + (offset % 11 == 10) for offset in range(0, 11 * runs, 43)]
    assert bisect_left([entry.image for entry in said], said[-1].image) == len(said) - 1
