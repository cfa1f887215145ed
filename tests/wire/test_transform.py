from __future__ import annotations

import random
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.logs import check_tiling, limited, log_of, partitions

from ferry.wire import compression
from ferry.wire.batch import MalformedBatch, OversizedBatch
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.ranges import union, within
from ferry.wire.transform import COMPRESSION_PENALTY, FORWARD_BYTES, transform

pytestmark = pytest.mark.unit
END = 1 << 62


def kinds(units: list[ProduceBatch]) -> list[tuple[str, int]]:
    return [(unit.kind, unit.count) for unit in units]


def test_large_batches_are_forwarded_untouched(kafka: Any, rows_at: Any) -> None:
    batches = [kafka.build(rows_at(range(at, at + 20), size=2000), codec=codec) for at, codec in ((0, 0), (20, 0), (40, 3))]
    transformed = limited(memoryview(b"".join(batches)), {"FORWARD_BYTES": 1000}, position=0, end=END)
    assert kinds(transformed.batches) == [("forwarded", 20)] * 3
    assert [b"".join(unit.encode(1, 1, 1, True))[61:] for unit in transformed.batches] == [batch[61:] for batch in batches]
    assert transformed.next_position == 60
    unit = transformed.batches[1]
    assert (unit.upstream_start, unit.upstream_end, unit.runs, unit.last_leader_epoch) == (20, 40, ((20, 20),), 7)
    assert (unit.min_timestamp, unit.max_timestamp) == (1_700_000_000_000, 1_700_000_000_057)


@pytest.mark.parametrize("frames", ["linked", "two"])
@pytest.mark.parametrize("small", [False, True])
def test_lz4_that_brokers_do_not_read_is_encoded_anew(kafka: Any, rows_at: Any, frames: str, small: bool) -> None:
    rows = rows_at(range(20, 40), size=2000)
    plain = kafka.build(rows, codec=0)
    packed = (
        bytes(cramjam.lz4.compress(plain[61:])) if frames == "linked" else kafka.squeeze(3, plain[61:900]) + kafka.squeeze(3, plain[900:])
    )
    head = bytearray(plain[:61])
    head[22] = 3
    batch = kafka.seal(head + packed)
    limits = {"FORWARD_BYTES": 1 << 30 if small else 1000}
    (unit,) = limited(memoryview(batch), limits, position=20, end=END).batches
    assert (unit.kind, unit.payload[22] & 7) == ("reframed", 3)
    assert compression.all_read_lz4(unit.payload[61:])
    assert kafka.read_units([unit]) == rows


def test_small_batches_are_merged_and_a_lone_one_is_forwarded(kafka: Any, rows_at: Any) -> None:
    small = [kafka.build(rows_at([at])) for at in range(5)]
    large = kafka.build(rows_at(range(5, 25), size=2000))
    last = kafka.build(rows_at([25]))
    transformed = transform(memoryview(b"".join([*small, large, last])), position=0, end=END)
    assert kinds(transformed.batches) == [("reframed", 5), ("forwarded", 20), ("forwarded", 1)]
    check_tiling(transformed.batches, 0, 26)


def test_a_lone_small_batch_is_forwarded_once_wherever_it_is(kafka: Any, rows_at: Any) -> None:
    small, large = kafka.build(rows_at([10])), kafka.build(rows_at(range(11, 31), size=2000))
    empty = kafka.build([], base_offset=5, last_offset=9)
    for entries in ([small, large], [empty, small, large], [small]):
        transformed = transform(memoryview(b"".join(entries)), position=5, end=END)
        assert kinds(transformed.batches) == [("forwarded", 1), ("forwarded", 20)][: 2 if large in entries else 1]
        check_tiling(transformed.batches, 5, 31 if large in entries else 11)


def test_many_records_are_worth_a_request_however_small_they_are(kafka: Any) -> None:
    batches = [kafka.build([kafka.Row(at + step, 0, None, b"") for step in range(128)]) for at in (0, 128)]
    assert sum(map(len, batches)) < FORWARD_BYTES
    assert kinds(transform(memoryview(b"".join(batches)), position=0, end=END).batches) == [("forwarded", 128)] * 2


@pytest.mark.parametrize("before", [0, 2])
def test_a_batch_just_below_both_minimums_is_merged_and_just_above_one_it_is_forwarded(kafka: Any, rows_at: Any, before: int) -> None:
    small = [kafka.build(rows_at([at])) for at in range(before)]
    edge = kafka.build(rows_at(range(before, before + 5), size=200))
    last = kafka.build(rows_at([before + 5]))
    fetched = memoryview(b"".join([*small, edge, last]))
    merged, alone = [("reframed", before + 6)], [*[("reframed", before)] * bool(before), ("forwarded", 5), ("forwarded", 1)]
    for size, records, expected in (
        (len(edge) + 1, 6, merged),
        (len(edge), 6, alone),
        (len(edge) + 1, 5, alone),
    ):
        transformed = limited(fetched, {"FORWARD_BYTES": size, "FORWARD_RECORDS": records}, position=0, end=END)
        assert kinds(transformed.batches) == expected


def test_codecs_are_not_mixed(kafka: Any, rows_at: Any) -> None:
    codecs = [1, 1, 4, 4, 0, 0, 3]  # the last one finds no neighbour
    batches = [kafka.build(rows_at([at]), codec=codec) for at, codec in enumerate(codecs)]
    transformed = transform(memoryview(b"".join(batches)), position=0, end=END)
    assert [(unit.payload[22] & 7, unit.count) for unit in transformed.batches] == [(1, 2), (4, 2), (0, 2), (3, 1)]
    assert len(kafka.read_units(transformed.batches)) == len(codecs)


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize(("merged", "largest"), [(2_000, 1 << 20), (1 << 20, 2_000)])
def test_merged_batches_stay_below_both_limits(kafka: Any, rows_at: Any, merged: int, largest: int, codec: int) -> None:
    batches = [kafka.build(rows_at([at], size=100), codec=codec) for at in range(50)]
    transformed = limited(memoryview(b"".join(batches)), {"MERGED_BYTES": merged}, position=0, end=END, max_batch_bytes=largest)
    assert len(transformed.batches) > 2
    assert all(unit.count > 1 and unit.size <= 2_000 for unit in transformed.batches)
    assert len(kafka.read_units(transformed.batches)) == 50
    check_tiling(transformed.batches, 0, 50)


def test_records_that_grow_do_not_break_the_limit(kafka: Any) -> None:
    """Timestamps far apart: each delta takes 7 bytes instead of 1."""
    batches = [kafka.build([kafka.Row(3 * at + step, at % 2 * (1 << 44), None, None) for step in range(3)]) for at in range(200)]
    transformed = limited(memoryview(b"".join(batches)), {"MERGED_BYTES": 1_000}, position=0, end=END)
    assert all(unit.size <= 1_000 for unit in transformed.batches)
    assert len(kafka.read_units(transformed.batches)) == 600


@pytest.mark.parametrize("minimum", [1_000, FORWARD_BYTES])
def test_many_records_that_grow_do_not_break_the_limit_either(kafka: Any, minimum: int) -> None:
    batches = [kafka.build([kafka.Row(99 * at + step, at % 2 * (1 << 44), None, None) for step in range(99)]) for at in range(20)]
    assert all(len(batch) < 1_000 for batch in batches)
    for limit in range(5_000, 9_000, 100):
        transformed = limited(memoryview(b"".join(batches)), {"FORWARD_BYTES": minimum, "MERGED_BYTES": limit}, position=0, end=END)
        assert all(unit.size <= limit for unit in transformed.batches)


@pytest.mark.parametrize("codec", range(1, 5))
def test_compressed_batches_must_be_smaller_to_be_merged(kafka: Any, rows_at: Any, codec: int) -> None:
    def two(size: int) -> list[str]:
        noise = random.Random(size).randbytes(size)
        batches = [kafka.build([kafka.Row(at, 0, None, noise)], codec=codec) for at in (0, 1)]
        return [unit.kind for unit in transform(memoryview(b"".join(batches)), position=0, end=END).batches]

    limit = FORWARD_BYTES // COMPRESSION_PENALTY[codec]
    assert two(limit // 2) == ["reframed"]
    assert two(limit) == ["forwarded", "forwarded"]


@pytest.mark.parametrize("minimum", [300, 8 * 1024])
def test_a_long_row_of_small_batches_fills_units_to_the_limit(kafka: Any, rows_at: Any, minimum: int) -> None:
    batches = [kafka.build(rows_at([at], size=100)) for at in range(2_000)]
    transformed = limited(memoryview(b"".join(batches)), {"FORWARD_BYTES": minimum, "MERGED_BYTES": 64 * 1024}, position=0, end=END)
    assert [row.offset for row in kafka.read_units(transformed.batches)] == list(range(2_000))
    check_tiling(transformed.batches, 0, 2_000)
    assert all(48 * 1024 < unit.size <= 64 * 1024 for unit in transformed.batches[:-1])


def test_what_is_passed_over_moves_the_position(kafka: Any, rows_at: Any) -> None:
    def aborted(offset: int) -> bytes:
        return kafka.build(rows_at([offset]), producer_id=1, attributes=0x10)

    skipped = b"".join([aborted(10), kafka.control(11, 1, 0), kafka.build([], base_offset=12, last_offset=19), kafka.control(20, 2, 1)])
    transformed = transform(memoryview(skipped), position=10, end=END, aborted=[(1, 10)])
    assert (transformed.batches, transformed.next_position) == ([], 21)
    around = kafka.build(rows_at([9])) + skipped + kafka.build(rows_at([21, 22])) + kafka.control(23, 2, 1)
    transformed = limited(memoryview(around), {"MERGED_BYTES": 70}, position=9, end=END, aborted=[(1, 10)])
    assert [(unit.upstream_start, unit.upstream_end, unit.runs) for unit in transformed.batches] == [
        (9, 21, ((9, 1),)),
        (21, 24, ((21, 2),)),
    ]
    transformed = transform(memoryview(around), position=9, end=END, aborted=[(1, 10)])
    assert [(unit.upstream_start, unit.upstream_end, unit.runs) for unit in transformed.batches] == [(9, 24, ((9, 1), (21, 2)))]


def test_a_merged_unit_bears_its_times_and_its_epoch(kafka: Any, rows_at: Any) -> None:
    batches = [kafka.build(rows_at([at], timestamp=1_000 - at), leader_epoch=7 if at < 3 else 8) for at in range(6)]
    transformed = transform(memoryview(b"".join(batches)), position=0, end=END)
    seen = [(unit.kind, unit.runs, unit.min_timestamp, unit.max_timestamp, unit.last_leader_epoch) for unit in transformed.batches]
    assert seen == [("reframed", ((0, 3),), 1_000, 1_000, 7), ("reframed", ((3, 3),), 997, 997, 8)]
    assert (transformed.last_leader_epoch, transformed.dropped) == (8, 0)


def test_every_unit_bears_the_epoch_of_what_lies_before_its_end(kafka: Any, rows_at: Any) -> None:
    epochs = (3, 3, 5, 5, 6)
    batches = [
        kafka.build(rows_at(range(at, at + 10), size=4000), leader_epoch=epoch) for at, epoch in zip(range(0, 50, 10), epochs, strict=True)
    ]
    transformed = transform(memoryview(b"".join(batches)), position=0, end=45)
    assert [unit.last_leader_epoch for unit in transformed.batches] == list(epochs)
    assert (transform(memoryview(b""), position=0, end=45).last_leader_epoch, transformed.last_leader_epoch) == (-1, 6)


def test_a_batch_that_ends_at_the_end_is_forwarded(kafka: Any, rows_at: Any) -> None:
    fetched = memoryview(kafka.build(rows_at(range(20), size=2000)))
    assert kinds(transform(fetched, position=0, end=20).batches) == [("forwarded", 20)]
    assert kinds(transform(fetched, position=0, end=19).batches) == [("reframed", 19)]


def test_batches_that_straddle_the_bounds_lose_what_is_outside(kafka: Any, rows_at: Any) -> None:
    fetched = b"".join(kafka.build(rows_at(range(at, at + 10), size=4000)) for at in (0, 10, 20))
    transformed = transform(memoryview(fetched), position=4, end=27)
    assert kinds(transformed.batches) == [("reframed", 6), ("forwarded", 10), ("reframed", 7)]
    assert [row.offset for row in kafka.read_units(transformed.batches)] == list(range(4, 27))
    assert transformed.next_position == 27


def test_reading_stops_at_the_end_even_if_compaction_left_nothing_there(kafka: Any, rows_at: Any) -> None:
    inside, beyond = kafka.build(rows_at([5])), kafka.build(rows_at([30]))
    transformed = transform(memoryview(inside + beyond), position=5, end=20)
    assert (kinds(transformed.batches), transformed.next_position) == ([("forwarded", 1)], 20)
    assert transformed.batches[0].upstream_end == 20
    holed = kafka.build(rows_at([0, 30]))
    transformed = transform(memoryview(holed), position=5, end=20)
    assert (transformed.batches, transformed.next_position) == ([], 20)


def test_batches_below_the_position_are_skipped(kafka: Any, rows_at: Any) -> None:
    fetched = b"".join(kafka.build(rows_at([at, at + 1])) for at in (0, 2, 4))
    transformed = transform(memoryview(fetched), position=4, end=END)
    assert [(unit.upstream_start, unit.runs) for unit in transformed.batches] == [(4, ((4, 2),))]
    nothing = transform(memoryview(fetched), position=6, end=END)
    assert (nothing.batches, nothing.next_position) == ([], 6)
    nonsense = bytearray(kafka.build(rows_at([0, 1])))
    nonsense[61:] = bytes(len(nonsense) - 61)
    transformed = transform(memoryview(kafka.seal(nonsense) + kafka.build(rows_at([2]))), position=2, end=END)
    assert kinds(transformed.batches) == [("forwarded", 1)], "their records are not even read"


def test_an_incomplete_first_batch_consumes_nothing(kafka: Any, rows_at: Any) -> None:
    transformed = transform(memoryview(kafka.build(rows_at([0])))[:-1], position=0, end=END)
    assert (transformed.batches, transformed.next_position) == ([], 0)


@pytest.mark.parametrize("size", [5, 40_000])
@pytest.mark.parametrize("magic", [1, 2])
def test_a_flipped_bit_is_never_laundered(kafka: Any, rows_at: Any, magic: int, size: int) -> None:
    def entry(offset: int) -> bytes:
        rows = rows_at([offset], size=size)
        return kafka.build(rows) if magic == 2 else kafka.message_set([row._replace(headers=()) for row in rows], 1)

    for victim in range(3):
        entries = [bytearray(entry(offset)) for offset in range(3)]
        entries[victim][-3] ^= 1
        fetched = memoryview(b"".join(entries))
        position = 0
        if victim:
            before = transform(fetched, position=0, end=END)
            position = before.next_position
            assert [row.offset for row in kafka.read_units(before.batches)] == list(range(victim))
            assert position == victim
        with pytest.raises(MalformedBatch, match=f"offset {victim} .*checksum"):
            transform(fetched, position=position, end=END)


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("count", [1, 2])
def test_unreadable_records_end_the_arrangement_before_them(kafka: Any, rows_at: Any, count: int, codec: int) -> None:
    """The checksum is right here: the source stored nonsense."""
    good = [kafka.build(rows_at([at]), codec=codec) for at in range(3)]
    bad = bytearray(kafka.build(rows_at(range(3, 3 + count)), codec=codec))
    bad[61 + bool(codec) * 3] ^= 2
    fetched = memoryview(b"".join([*good, kafka.seal(bad), *good]))
    before = transform(fetched, position=0, end=END)
    assert kafka.read_units(before.batches) == rows_at([0]) + rows_at([1]) + rows_at([2])
    assert before.next_position == 3
    check_tiling(before.batches, 0, 3)
    with pytest.raises(MalformedBatch, match=r"offset 3|decompress"):
        transform(memoryview(kafka.seal(bad) + good[0]), position=3, end=END)


def test_other_times_and_reserved_bits(kafka: Any, rows_at: Any) -> None:
    rows = rows_at(range(20), timestamp=50, size=1000)
    horizon = transform(memoryview(kafka.build(rows, attributes=0x40)), position=0, end=END)
    append_time = transform(memoryview(kafka.build(rows, attributes=0x08, max_timestamp=900)), position=0, end=END)
    reserved = transform(memoryview(kafka.build(rows, attributes=0x180)), position=0, end=END)
    assert [kinds(transformed.batches)[0][0] for transformed in (horizon, append_time, reserved)] == ["reframed", "reframed", "forwarded"]
    assert kafka.read_units(horizon.batches) == kafka.read_units(reserved.batches) == rows
    assert kafka.read_units(append_time.batches) == [row._replace(timestamp=900) for row in rows]


def test_a_unit_is_encoded_again_for_another_producer(kafka: Any, rows_at: Any) -> None:
    (unit,) = transform(memoryview(kafka.build(rows_at([0])) + kafka.build(rows_at([1]), producer_id=5)), position=0, end=END).batches
    first, second, again = (b"".join(unit.encode(*producer)) for producer in ((1, 2, 3, True), (4, 5, 6, False), (1, 2, 3, True)))
    assert first == again
    assert first != second
    assert first[61:] == second[61:]
    assert kafka.read(first) == kafka.read(second)


def test_excluded_batches_are_passed_over_by_their_header(kafka: Any, rows_at: Any) -> None:
    """Their records are not even decompressed: nonsense under a right checksum does no harm."""
    nonsense = bytearray(kafka.build(rows_at(range(10, 20), size=2000), codec=4))
    nonsense[70:] = bytes(len(nonsense) - 70)
    wanted = [kafka.build(rows_at(range(at, at + 10), size=4000)) for at in (0, 20)]
    fetched = memoryview(b"".join([wanted[0], kafka.seal(nonsense), wanted[1]]))
    transformed = transform(fetched, position=0, end=END, excluded=((10, 20),))
    assert kinds(transformed.batches) == [("forwarded", 10), ("forwarded", 10)]
    check_tiling(transformed.batches, 0, 30)
    nothing = transform(fetched, position=0, end=END, excluded=((0, 30),))
    assert (nothing.batches, nothing.next_position, nothing.last_leader_epoch) == ([], 30, 7)


def test_excluded_batches_interrupt_a_row_of_small_ones(kafka: Any, rows_at: Any) -> None:
    fetched = memoryview(b"".join(kafka.build(rows_at([at, at + 1])) for at in range(0, 20, 2)))
    transformed = transform(fetched, position=0, end=18, excluded=((4, 6), (11, 12)))
    assert [(unit.kind, unit.runs) for unit in transformed.batches] == [("reframed", ((0, 4), (6, 5), (12, 6)))]
    assert transformed.next_position == 18


@pytest.mark.parametrize("excluded", [(), ((1, 2),)])
@pytest.mark.parametrize("magic", [1, 2])
def test_records_that_take_too_much_memory_are_not_opened(kafka: Any, rows_at: Any, magic: int, excluded: Any) -> None:
    rows = [row._replace(headers=()) for row in rows_at(range(3), size=2_000)]
    fetched = memoryview(kafka.build(rows, codec=1) if magic == 2 else kafka.message_set(rows, 1, 1))
    with pytest.raises(OversizedBatch, match="more than 1,000 bytes"):
        transform(fetched, position=0, end=END, excluded=excluded, max_opened_bytes=1_000)
    assert transform(fetched, position=0, end=END, excluded=excluded, max_opened_bytes=7_000).next_position == 3


def test_a_range_that_ends_inside_a_batch_leaves_the_rest(kafka: Any, rows_at: Any) -> None:
    batch = kafka.build(rows_at(range(10, 20), size=4000))
    transformed = transform(memoryview(batch), position=10, end=END, excluded=((5, 12), (14, 15), (19, 40)))
    assert [(unit.kind, unit.runs) for unit in transformed.batches] == [("reframed", ((12, 2), (15, 4)))]
    check_tiling(transformed.batches, 10, 20)


@settings(max_examples=300)
@given(
    entries=partitions(),
    start=st.integers(0, 250),
    width=st.integers(0, 300),
    minimum=st.sampled_from([0, 150, 600, 32_768]),
    limit=st.sampled_from([100, 2000, 4000, 1 << 19]),
    cut=st.sampled_from([0, 0, 1, 100]),
    left_out=st.just([]) | st.lists(st.tuples(st.integers(0, 250), st.integers(0, 60)), max_size=6),
)
def test_exactly_what_a_consumer_sees_comes_out(
    kafka: Any, entries: list[dict[str, Any]], start: int, width: int, minimum: int, limit: int, cut: int, left_out: Any
) -> None:
    excluded = union((low, low + count) for low, count in left_out)
    log = log_of(kafka, entries)
    end = start + width
    data = memoryview(log.data)[: max(0, len(log.data) - cut)]
    limits = {"FORWARD_BYTES": minimum, "MERGED_BYTES": limit}
    transformed = limited(data, limits, position=start, end=end, aborted=log.aborted, excluded=excluded)
    reached = transformed.next_position
    assert (start <= reached <= end, transformed.dropped) == (True, 0)
    if not cut:
        assert reached >= min(end, log.end)
    assert kafka.read_units(transformed.batches) == [
        row for row in log.visible if start <= row.offset < reached and not within(excluded, row.offset, row.offset + 1)
    ]
    check_tiling(transformed.batches, start, reached)


@settings(max_examples=300)
@given(entries=partitions(), damage=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_bytes_are_malformed_at_worst(kafka: Any, entries: list[dict[str, Any]], damage: list[tuple[int, int]]) -> None:
    data = bytearray(log_of(kafka, entries).data)
    for at, value in damage:
        if data:
            data[at % len(data)] = value
    try:
        transformed = transform(memoryview(data), position=0, end=END, aborted=[(1, 0)])
    except MalformedBatch:
        return
    assert 0 <= transformed.next_position <= END


@given(st.binary(max_size=300), st.integers(0, 3))
def test_random_bytes_are_malformed_at_worst(data: bytes, magic: int) -> None:
    shaped = bytearray(data)
    if len(shaped) > 16:
        shaped[8:12] = (len(shaped) - 12).to_bytes(4, "big")
        shaped[16] = magic
    for fetched in (data, shaped):
        try:
            transformed = transform(memoryview(fetched), position=0, end=END)
        except MalformedBatch:
            continue
        assert 0 <= transformed.next_position <= END
