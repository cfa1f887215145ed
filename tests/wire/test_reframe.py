from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.batch import BatchHeader, MalformedBatch, read_header
from ferry.wire.reframe import Reframer, SmallBatches, assemble
from ferry.wire.varint import Buffer

pytestmark = pytest.mark.unit
EVERYTHING = 1 << 62
Piece = tuple[BatchHeader, Buffer, int, int]
TIMES = st.integers(0, 1 << 45) | st.integers(1_700_000_000_000, 1_700_000_100_000)
FIELDS = st.none() | st.binary(max_size=4) | st.binary(min_size=50, max_size=70) | st.binary(min_size=1, max_size=1).map(lambda b: b * 9000)
HEADERS = st.lists(st.tuples(st.sampled_from(["a", "b", "ключ"]), st.none() | st.binary(max_size=3)), max_size=3).map(tuple)


def piece(batch: bytes, lower: int = 0, upper: int = EVERYTHING) -> Piece:
    return read_header(memoryview(batch)), memoryview(batch)[61:], lower, upper


def reframe(pieces: Iterable[Piece]) -> Reframer:
    reframer = Reframer()
    for one in pieces:
        reframer.add(*one)
    return reframer


def reread(kafka: Any, reframed: Any, codec: int = 0) -> list[Any]:
    return kafka.read(kafka.seal(assemble(reframed, codec)))


@st.composite
def logs(draw: st.DrawFn) -> list[list[tuple[int, int, Any, Any, Any]]]:
    """Batches of rows with rising offsets, holes within and between them."""
    offset = draw(st.integers(0, 1000))
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for _ in range(draw(st.integers(1, 5))):
            rows.append((offset, draw(TIMES), draw(FIELDS), draw(FIELDS), draw(HEADERS)))
            offset += draw(st.sampled_from([1, 1, 1, 2, 70, 9000]))
        batches.append(rows)
    return batches


@given(log=logs(), lower=st.integers(0, 1200), width=st.integers(0, 20_000), codec=st.integers(0, 4))
def test_keeps_exactly_the_wanted_records(kafka: Any, log: Any, lower: int, width: int, codec: int) -> None:
    rows = [[kafka.Row(*row) for row in batch] for batch in log]
    reframed = reframe(piece(kafka.build(batch), lower, lower + width) for batch in rows)
    wanted = [row for batch in rows for row in batch if lower <= row.offset < lower + width]
    assert reframed.count == len(wanted)
    assert [start + step for start, count in reframed.runs for step in range(count)] == [row.offset for row in wanted]
    assert all(first[0] + first[1] < second[0] for first, second in zip(reframed.runs, reframed.runs[1:], strict=False))
    if wanted:
        assert reread(kafka, reframed, codec) == [row._replace(offset=index) for index, row in enumerate(wanted)]
        assert reframed.base_timestamp == wanted[0].timestamp
        assert reframed.max_timestamp == max(row.timestamp for row in wanted)
    else:
        assert (reframed.base_timestamp, reframed.max_timestamp, reframed.runs) == (-1, -1, [])


@st.composite
def small_rows(draw: st.DrawFn) -> list[list[tuple[int, int, Any, Any, Any]]]:
    """Tiny contiguous batches, as a producer without linger writes them, around the sizes where a varint gets longer."""
    offset = draw(st.integers(0, 1000))
    batches = []
    for count in draw(st.lists(st.sampled_from([1, 1, 1, 2, 3]), min_size=1, max_size=6)):
        time = 1_700_000_000_000 + draw(st.integers(-5, 70) | st.integers(-9000, 20_000))
        size = draw(st.sampled_from([0, 1, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 8170, 8180, 8190]))
        batches.append([(offset + step, time + draw(st.integers(-2, 80)), None, b"v" * size, ()) for step in range(count)])
        offset += count + draw(st.sampled_from([0, 0, 1, 2]))
    return batches


@given(log=small_rows(), limit=st.integers(0, 400) | st.just(1 << 20))
def test_taking_a_row_is_the_same_as_adding_one_by_one(kafka: Any, log: Any, limit: int) -> None:
    batches = [kafka.build([kafka.Row(*row) for row in batch]) for batch in log]
    gathering = Reframer()
    taken = gathering.take_small(memoryview(b"".join(batches)), 0, SmallBatches(0, EVERYTHING, 1 << 20, 5, 7), limit)
    stops = [0]
    for batch in batches:
        stops.append(stops[-1] + len(batch))
    row = batches[: stops.index(taken.stop)]
    assert gathering == reframe(map(piece, row))
    assert kafka.read(kafka.seal(assemble(gathering, 0))) == [
        kafka.Row(index, *record[1:]) for index, record in enumerate(record for batch in log[: len(row)] for record in batch)
    ]
    assert taken.next_offset == read_header(memoryview(row[-1])).next_offset
    assert len(row) == len(batches) or len(gathering.body) > limit


def test_taking_stops_at_whatever_needs_more_care(kafka: Any, rows_at: Any) -> None:
    good = kafka.build(rows_at([5]))
    flipped = bytearray(kafka.build(rows_at([6])))
    flipped[-1] ^= 1
    stoppers = [
        kafka.build(rows_at([6]), codec=1),
        kafka.build(rows_at([6]), leader_epoch=8),
        kafka.build(rows_at([6]), attributes=0x08),
        kafka.build(rows_at([6]), attributes=0x40),
        kafka.build(rows_at([6]), attributes=0x100),
        kafka.control(6, 1, 0),
        kafka.build([], base_offset=6, last_offset=6),
        kafka.build(rows_at([6, 8])),
        kafka.build(rows_at([6]), last_offset=7),
        kafka.build([], base_offset=6, last_offset=5),
        kafka.build(rows_at([4])),
        kafka.build(rows_at([10])),
        kafka.build(rows_at([6], size=300)),
        kafka.build(rows_at([6, 7, 8])),
        kafka.build(rows_at([6]))[:-1],
        kafka.message_set([kafka.Row(6, 1)], 1),
        bytes(flipped),
    ]
    for stopper in stoppers:
        taken = Reframer().take_small(memoryview(good + stopper + good), 0, SmallBatches(5, 10, 300, 3, 7), 10_000)
        assert (taken.stop, taken.next_offset) == (len(good), 6), stopper
        assert Reframer().take_small(memoryview(stopper), 0, SmallBatches(5, 10, 300, 3, 7), 10_000) == (0, -1)


def test_taking_goes_up_to_its_limits(kafka: Any, rows_at: Any) -> None:
    row = kafka.build(rows_at([5])) + kafka.build(rows_at([6, 7]))
    length = len(kafka.build(rows_at([6, 7]))) - 12
    assert Reframer().take_small(memoryview(row), 0, SmallBatches(5, 8, length + 1, 3, 7), 10_000).next_offset == 8
    for narrower in (SmallBatches(5, 7, length + 1, 3, 7), SmallBatches(5, 8, length, 3, 7), SmallBatches(5, 8, length + 1, 2, 7)):
        assert Reframer().take_small(memoryview(row), 0, narrower, 10_000).next_offset == 6


@pytest.mark.parametrize("offsets", [[6, 7], [6, 8]])
def test_what_was_taken_before_a_malformed_batch_stays(kafka: Any, rows_at: Any, offsets: list[int]) -> None:
    good, bad = kafka.build(rows_at([5])), bytearray(kafka.build(rows_at(offsets)))
    del bad[-2:]
    row = good + kafka.seal(bad)
    reframer = Reframer()
    assert reframer.take_small(memoryview(row), 0, SmallBatches(5, 10, 300, 3, 7), 10_000).stop == len(good)
    with pytest.raises(MalformedBatch, match="offset 6"):
        reframer.add(*piece(row[len(good) :]))
    assert reframer == reframe([piece(good)])


@pytest.mark.parametrize("offsets", [[0, 1], [0, 2], [0, 64], [0, 8192]])
def test_records_around_the_sizes_where_a_length_takes_another_byte(kafka: Any, offsets: list[int]) -> None:
    for size in (*range(48, 66), *range(8_174, 8_194), *range(16_370, 16_386)):
        rows = [kafka.Row(offset, 1_000 + 8_192 * index, None, b"v" * size) for index, offset in enumerate(offsets)]
        reframed = reframe([piece(kafka.build(rows)), piece(kafka.build([rows[1]._replace(offset=9_000)]), 9_000)])
        assert [record[1:] for record in reread(kafka, reframed)] == [record[1:] for record in (*rows, rows[1])]


def test_the_template_is_a_whole_header_without_producer_and_checksum(kafka: Any) -> None:
    batches = [kafka.build([kafka.Row(offset, time) for offset in (at, at + 2)]) for at, time in ((10, 900), (20, 400))]
    whole = assemble(reframe(map(piece, batches)), 0)
    assert read_header(memoryview(whole)) == BatchHeader(0, len(whole) - 12, -1, 2, 0, 0, 3, 900, 900, -1, -1, -1, 4)
    assert [row.timestamp for row in kafka.read(kafka.seal(whole))] == [900, 900, 400, 400]


@pytest.mark.parametrize("size", [5, 300, 9000])
def test_taking_leaves_out_a_single_record_of_another_length_than_its_batch(kafka: Any, rows_at: Any, size: int) -> None:
    batch = bytearray(kafka.build(rows_at([0], size=size)))
    length = (len(batch) - 12 - 51) << 1
    lengths = [bytes([batch[61] ^ 2]), bytes([batch[61] ^ 6])] if size < 1000 else [bytes([length & 0x7F | 0x80, length >> 7])]
    for wrong in lengths:
        batch[61 : 61 + len(wrong)] = wrong
        reframer = Reframer()
        assert reframer.take_small(memoryview(kafka.seal(batch)), 0, SmallBatches(0, 10, 1 << 20, 5, 7), 10_000).stop == 0
        with pytest.raises(MalformedBatch, match="offset 0"):
            reframer.add(*piece(kafka.seal(batch)))
        assert reframer == Reframer()


def test_timestamps_beyond_64_bits_are_those_of_java(kafka: Any) -> None:
    far = 1 << 62
    batch = bytearray(kafka.build([kafka.Row(0, 0), kafka.Row(2, far), kafka.Row(4, 0)]))
    batch[27:35] = far.to_bytes(8, "big")
    for lower, times in ((0, [far, -far * 2, far]), (1, [-far * 2, far])):
        reframed = reframe([piece(kafka.seal(batch), lower)])
        assert [row.timestamp for row in reread(kafka, reframed)] == times
        assert reframed.max_timestamp == far


@pytest.mark.parametrize("offsets", [(20, 21), (20, 22)])
def test_bytes_that_are_no_records_say_how_many_there_are(kafka: Any, offsets: tuple[int, int]) -> None:
    batch = kafka.build([kafka.Row(offset, 5) for offset in offsets])
    with pytest.raises(MalformedBatch, match=r": 2 records fill 18 of 19 bytes$"):
        reframe([piece(kafka.seal(bytearray(batch + b"\0")))])
    short = bytearray(batch)
    short[61:] = b"\4\0\0\0" + short[70:]  # two bytes, of which the deltas take three
    with pytest.raises(MalformedBatch, match=r": a record shorter than its own fields$"):
        reframe([piece(kafka.seal(short))])


@pytest.mark.parametrize("offsets", [[3, 4, 5], [3, 4, 7]])
def test_log_append_time_becomes_the_time_of_every_record(kafka: Any, offsets: list[int]) -> None:
    rows = [kafka.Row(offset, time) for offset, time in zip(offsets, (10, 40, 90_000), strict=True)]
    reframed = reframe([piece(kafka.build(rows, attributes=0x08, max_timestamp=5_000))])
    assert (reframed.base_timestamp, reframed.max_timestamp) == (5_000, 5_000)
    assert [row.timestamp for row in reread(kafka, reframed)] == [5_000] * 3


def test_a_delete_horizon_is_no_records_time(kafka: Any, rows_at: Any) -> None:
    """MemoryRecordsBuilder: the base timestamp is the horizon, the deltas are relative to it and negative."""
    rows = [kafka.Row(0, 900_000), *rows_at([1, 2], timestamp=100)]
    holding = bytearray(kafka.build(rows, attributes=0x40))
    body_of_first = len(kafka.build(rows[:1])) - 61
    del holding[61 : 61 + body_of_first]
    holding[57:61] = (2).to_bytes(4, "big")
    reframed = reframe([piece(kafka.seal(holding))])
    assert (reframed.base_timestamp, reframed.runs) == (100, [(1, 2)])
    assert [row.timestamp for row in reread(kafka, reframed)] == [100, 103]


def test_a_delete_horizon_of_a_batch_without_holes(kafka: Any) -> None:
    rows = [kafka.Row(5, 900_000), kafka.Row(5, 100), kafka.Row(6, 103)]
    batch = bytearray(kafka.build(rows, base_offset=5, attributes=0x40))
    del batch[61 : len(kafka.build(rows[:1]))]
    batch[57:61] = (2).to_bytes(4, "big")
    reframed = reframe([piece(kafka.seal(batch))])
    assert (reframed.base_timestamp, reframed.runs) == (100, [(5, 2)])
    assert [row.timestamp for row in reread(kafka, reframed)] == [100, 103]


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.parametrize("moved", ["time", "offset"])
def test_a_single_record_with_deltas_of_its_own(kafka: Any, size: int, moved: str) -> None:
    """No producer writes it, but the format allows another base timestamp; an offset delta beyond the batch's is only counted up."""
    rows = [kafka.Row(5, 900), kafka.Row(5 + (moved == "offset"), 900 + 7 * (moved == "time"), None, b"v" * size)]
    batch = bytearray(kafka.build(rows, base_offset=5, last_offset=5))
    del batch[61 : len(kafka.build(rows[:1]))]
    batch[57:61] = (1).to_bytes(4, "big")
    reframer = Reframer()
    assert reframer.take_small(memoryview(kafka.seal(batch)), 0, SmallBatches(0, 10, 1 << 20, 5, 7), 10_000).next_offset == 6
    assert [row.timestamp for row in reread(kafka, reframer)] == [rows[1].timestamp]


@pytest.mark.parametrize(("count", "later"), [(1 << 14, 0), (1, 1 << 14)])
def test_taking_where_the_tables_end(kafka: Any, count: int, later: int) -> None:
    rows = [kafka.Row(offset, 1_000) for offset in range(count)]
    late = [kafka.Row(offset, 1_000 + later, None, b"v" * 8_100) for offset in (count, count + 1)]
    reframer = Reframer()
    reframer.add(*piece(kafka.build(rows)))
    row = memoryview(b"".join(kafka.build([entry]) for entry in late))
    assert reframer.take_small(row, 0, SmallBatches(0, EVERYTHING, 1 << 20, 5, 7), 1 << 20).next_offset == late[-1].offset + 1
    assert reread(kafka, reframer) == [*rows, *late]


def test_records_without_a_timestamp_keep_minus_one(kafka: Any) -> None:
    reframed = reframe([piece(kafka.build([kafka.Row(0, -1)])), piece(kafka.build([kafka.Row(1, 50)]))])
    assert [row.timestamp for row in reread(kafka, reframed)] == [-1, 50]


def test_timestamps_may_go_back_between_batches(kafka: Any) -> None:
    reframed = reframe([piece(kafka.build([kafka.Row(0, 1 << 40)])), piece(kafka.build([kafka.Row(1, 50)]))])
    assert [row.timestamp for row in reread(kafka, reframed)] == [1 << 40, 50]
    assert reframed.max_timestamp == 1 << 40


def test_more_records_than_the_tables_hold(kafka: Any) -> None:
    rows = [kafka.Row(offset, offset * 3) for offset in range(20_000)]
    whole = kafka.build(rows)
    assert reread(kafka, reframe([piece(whole)])) == rows
    assert reread(kafka, reframe([piece(whole, 1)])) == [row._replace(offset=row.offset - 1) for row in rows[1:]]


@pytest.mark.parametrize("extra", [0, 1])
def test_a_record_shorter_than_its_own_fields_is_malformed(kafka: Any, rows_at: Any, extra: int) -> None:
    """The lengths add up here: one byte of record, then a whole record."""
    body = bytes.fromhex("02 00 0c 00 00 00 01 01 00")
    header = read_header(memoryview(kafka.build(rows_at([0]))))._replace(count=2, last_offset_delta=1 + extra)
    with pytest.raises(MalformedBatch, match="shorter"):
        reframe([(header, body, 0, EVERYTHING)])


@pytest.mark.parametrize(
    "damage",
    [
        lambda batch: batch[:-1],
        lambda batch: batch + b"\0",
        lambda batch: batch[:57] + (3).to_bytes(4, "big") + batch[61:],
        lambda batch: batch[:61] + b"\x04" + batch[62:],
        lambda batch: batch[:61] + b"\xff" * 11 + batch[72:],
    ],
)
@pytest.mark.parametrize("offsets", [[0, 1], [0, 2]])
def test_records_that_contradict_their_header_are_malformed(kafka: Any, rows_at: Any, damage: Any, offsets: list[int]) -> None:
    batch = damage(kafka.build(rows_at(offsets)))
    with pytest.raises(MalformedBatch, match="offset 0"):
        reframe([(read_header(memoryview(kafka.build(rows_at(offsets))))._replace(count=batch[60]), memoryview(batch)[61:], 0, 9)])


@given(body=st.binary(max_size=60), count=st.integers(1, 5), extra=st.integers(0, 1))
def test_random_records_are_malformed_at_worst(kafka: Any, rows_at: Any, body: bytes, count: int, extra: int) -> None:
    header = read_header(memoryview(kafka.build(rows_at([0]))))._replace(count=count, last_offset_delta=count - 1 + extra)
    try:
        reframed = reframe([(header, memoryview(body), 0, EVERYTHING)])
    except MalformedBatch:
        return
    assert reframed.count == count or extra
