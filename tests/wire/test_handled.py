"""The handle treatment: what comes out is the handler applied to what a consumer sees."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.conftest import expand, seal, squeeze
from tests.wire.logs import check_tiling, limited, log_of, partitions

from ferry.handling import Record
from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.verify.contents import contents_of
from ferry.wire.batch import MalformedBatch, OversizedBatch, iterate_batches, read_header
from ferry.wire.handled import decode_records
from ferry.wire.produce_batch import ProduceBatch, Rerouted
from ferry.wire.ranges import Ranges, union, within
from ferry.wire.split import Indivisible, halved
from ferry.wire.transform import transform

pytestmark = pytest.mark.unit
END = 1 << 62


def outputs(record: Record) -> list[Record]:
    """Drops, keeps, changes and multiplies, by offset; every output says which it is."""
    number = (0, 1, 1, 1, 2, 0, 3)[record.offset % 7]
    return [
        replace(record, value=b"%d" % index, timestamp=record.timestamp + index, headers=(*record.headers, ("n", None)))
        for index in range(number)
    ]


Stored = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


def anything() -> st.SearchStrategy[Stored]:
    """Time, key, value and headers of a record, with any bytes that a broker takes."""
    few = st.none() | st.binary(max_size=3)
    times = st.sampled_from([-(1 << 63), (1 << 63) - 1, -5, -2, -1, 0]) | st.integers(-(1 << 63), (1 << 63) - 1)
    return st.tuples(
        times, few, few, st.lists(st.tuples(st.sampled_from([b"", b"h", b"h", b"\xff\xed\xa0\x80"]), few), max_size=3).map(tuple)
    )


def stored(rows: list[Stored], offset: int, codec: int, hole: int) -> bytes:
    """One batch of these records, with `hole` offsets behind them that compaction has emptied, in Java's arithmetic of 64 bits."""

    def signed(value: int) -> bytes:
        value = (value << 1) % (1 << 64) ^ ((1 << 64) - 1 if value >> 63 & 1 else 0)
        return b"".join(
            bytes([value >> shift & 0x7F | 0x80 * (value >> shift + 7 > 0)]) for shift in range(0, max(7, value.bit_length()), 7)
        )

    def field(data: bytes | None) -> bytes:
        return signed(-1) if data is None else signed(len(data)) + data

    body = b""
    for index, (time, key, value, headers) in enumerate(rows):
        record = b"\0" + signed(time - rows[0][0]) + signed(index) + field(key) + field(value) + signed(len(headers))
        record += b"".join(field(part) for header in headers for part in header)
        body += signed(len(record)) + record
    packed = squeeze(codec, body)
    times = rows[0][0], max(row[0] for row in rows)
    head = struct.pack(">qiiBIhiqqqhii", offset, 0, 7, 2, 0, codec, len(rows) - 1 + hole, *times, -1, -1, -1, len(rows))
    return seal(bytearray(head + packed))


def fields_of(unit: ProduceBatch) -> list[Stored]:
    """The records of a batch to produce, field by field."""
    sent = memoryview(b"".join(unit.encode(900, 4, 77, True)))
    data, at, found = expand(sent[22] & 7, bytes(sent[61:])), 0, []
    (base,) = struct.unpack_from(">q", sent, 27)

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)

    def field() -> bytes | None:
        nonlocal at
        size = number()
        taken, at = (None, at) if size < 0 else (data[at : at + size], at + size)
        return taken

    for index in range(unit.count):
        size = number()
        stop, at = at + size, at + 1
        time = (base + number() + (1 << 63)) % (1 << 64) - (1 << 63)
        assert number() == index
        found.append((time, field(), field(), tuple((field() or b"", field()) for _ in range(number()))))
        assert at == stop
    assert at == len(data)
    return found


def taken_apart(unit: ProduceBatch) -> list[ProduceBatch]:
    """Halved until nothing can be divided any more."""
    try:
        first, second = halved(unit)
    except Indivisible:
        return [unit]
    return taken_apart(first) + taken_apart(second)


@settings(max_examples=300)
@given(
    entries=partitions(),
    start=st.integers(0, 250),
    width=st.integers(0, 300),
    limit=st.sampled_from([100, 2000, 1 << 19]),
    excluded=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 220)), max_size=3).map(union),
    divided=st.booleans(),
)
def test_handled_units_are_the_handler_applied_to_what_a_consumer_sees(
    kafka: Any, entries: list[dict[str, Any]], start: int, width: int, limit: int, excluded: Ranges, divided: bool
) -> None:
    log = log_of(kafka, entries)
    seen: list[Record] = []

    def handle(record: Record) -> list[Record]:
        seen.append(record)
        return outputs(record)

    transformed = limited(
        memoryview(log.data),
        {"MERGED_BYTES": limit},
        position=start,
        end=start + width,
        aborted=log.aborted,
        excluded=excluded,
        handling=PartitionHandling(handle, "t", 3),
    )
    check_tiling(transformed.batches, start, transformed.next_position)
    given = [Record("t", 3, row.offset, row.timestamp, row.key, row.value, row.headers) for row in log.visible]
    given = [record for record in given if start <= record.offset < transformed.next_position]
    given = [record for record in given if not within(excluded, record.offset, record.offset + 1)]
    assert seen == given
    units = [part for unit in transformed.batches for part in (taken_apart(unit) if divided else [unit])]
    found: list[tuple[Any, ...]] = []
    images: dict[int, int] = {}
    for unit in units:
        rows = kafka.read(b"".join(unit.encode(900, 4, 77, True)))
        assert (unit.kind, len(rows)) == ("handled", unit.count)
        for place, (first, count) in zip(unit.places, unit.runs, strict=True):
            assert unit.upstream_start <= first
            assert first + count <= unit.upstream_end
            images |= {first + step: len(found) + place + step for step in range(count)}
        found += [tuple(row)[1:] for row in rows]
    wanted = [(record, output) for record in given for output in outputs(record)]
    assert found == [(output.timestamp, output.key, output.value, output.headers) for _, output in wanted]
    assert images == {record.offset: index for index, (record, output) in enumerate(wanted) if output.value == b"0"}
    assert sum(unit.dropped for unit in units) + transformed.dropped == sum(not outputs(record) for record in given)
    assert sum(unit.added for unit in units) == sum(max(0, len(outputs(record)) - 1) for record in given)


def test_a_unit_says_where_every_record_is_and_how_old(kafka: Any) -> None:
    rows = [kafka.Row(10 + index, time, b"", b"v", (("h", b""),)) for index, time in enumerate((50, -1, 9, 70, 20, 60, 61))]
    numbers = dict(zip(range(10, 17), (1, 1, 0, 1, 3, 1, 1), strict=True))
    handling = PartitionHandling(lambda record: [record] * numbers[record.offset], "t", 0)
    (unit,) = transform(memoryview(kafka.build(rows)), position=10, end=END, handling=handling).batches
    assert (unit.runs, unit.places) == (((10, 2), (13, 2), (15, 2)), (0, 2, 6))
    assert (unit.count, unit.dropped, unit.added, unit.min_timestamp, unit.max_timestamp) == (8, 1, 2, -1, 70)
    found = kafka.read(b"".join(unit.encode(900, 4, 77, True)))
    assert [row[1:] for row in found] == [row[1:] for row in rows for _ in range(numbers[row.offset])]


@given(places=st.lists(st.sampled_from([None, ("eu", 0), ("eu", 1), "dropped"]), min_size=1, max_size=40))
def test_a_unit_goes_to_one_place_and_the_order_stays(kafka: Any, places: list[Any]) -> None:
    rows = [kafka.Row(10 + index, 5, b"%d" % index, b"v", ()) for index in range(len(places))]

    def choose(record: Record) -> list[Record]:
        place = places[record.offset - 10]
        if place == "dropped":
            return []
        return [record if place is None else replace(record, topic=place[0], partition=place[1])]

    handling = PartitionHandling(choose, "t", 3, {"eu": 2})
    transformed = transform(memoryview(kafka.build(rows)), position=10, end=END, handling=handling)
    check_tiling(transformed.batches, 10, transformed.next_position)
    units = [part for unit in transformed.batches for part in taken_apart(unit)]
    found = [(int(row.key), unit.rerouted) for unit in units for row in kafka.read(b"".join(unit.encode(900, 4, 77, True)))]
    assert found == [
        (index, None if place is None else Rerouted(("t", 3), place)) for index, place in enumerate(places) if place != "dropped"
    ]
    kept = [place for place in places if place != "dropped"]
    assert len(transformed.batches) == sum(one != other for one, other in pairwise(kept)) + bool(kept)


def test_units_are_of_one_codec_and_start_anew(kafka: Any, rows_at: Any) -> None:
    times = (-1, 500, -1)
    batches = [
        kafka.build(rows_at([at], timestamp=time), codec=codec) for at, (codec, time) in enumerate(zip((1, 4, 4), times, strict=True))
    ]
    units = transform(
        memoryview(b"".join(batches)), position=0, end=END, handling=PartitionHandling(lambda record: [record], "t", 0)
    ).batches
    assert [(unit.payload[22] & 7, unit.runs, unit.places) for unit in units] == [(1, ((0, 1),), (0,)), (4, ((1, 2),), (0,))]
    assert [(unit.min_timestamp, unit.max_timestamp) for unit in units] == [(-1, -1), (-1, 500)]
    without_time = kafka.build(rows_at([3], timestamp=-1), codec=4)
    handling = PartitionHandling(lambda record: [record], "t", 0)
    apart = limited(memoryview(batches[1] + without_time), {"MERGED_BYTES": 100}, position=0, end=END, handling=handling).batches
    assert [(unit.min_timestamp, unit.max_timestamp) for unit in apart] == [(500, 500), (-1, -1)]


def test_records_of_append_time_bear_their_batchs_and_may_have_no_headers(kafka: Any) -> None:
    rows = [kafka.Row(index, 1_000 + index) for index in range(3)]
    data = memoryview(kafka.build(rows, attributes=0x08, max_timestamp=77))
    (unit,) = transform(data, position=0, end=END, handling=PartitionHandling(lambda record: [record], "t", 0)).batches
    assert kafka.read(b"".join(unit.encode(900, 4, 77, True))) == [row._replace(timestamp=77) for row in rows]


def test_units_are_filled_to_the_limit(kafka: Any, rows_at: Any) -> None:
    data = memoryview(kafka.build(rows_at(range(200), size=50)))
    handling = PartitionHandling(lambda record: [record], "t", 0)
    units = limited(data, {"MERGED_BYTES": 2_000}, position=0, end=END, handling=handling).batches
    assert all(unit.size <= 2_000 for unit in units)
    assert all(unit.size > 1_800 for unit in units[:-1])


@pytest.mark.parametrize("excluded", [(), ((1, 2),)])
def test_records_that_take_too_much_memory_are_not_decoded(kafka: Any, rows_at: Any, excluded: Any) -> None:
    data, handling = memoryview(kafka.build(rows_at(range(3), size=2_000), codec=1)), PartitionHandling(lambda record: [record], "t", 0)
    with pytest.raises(OversizedBatch, match="more than 1,000 bytes"):
        transform(data, position=0, end=END, excluded=excluded, max_opened_bytes=1_000, handling=handling)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": "x"}, "a key that is a str: bytes or None"),
        ({"value": 5}, "a value that is a int: bytes or None"),
        ({"timestamp": 1.0}, "a record whose timestamp is no whole number of ms in 64 bits"),
        ({"timestamp": True}, "a record whose timestamp is no whole number of ms in 64 bits"),
        ({"timestamp": -(1 << 63) - 1}, "a record whose timestamp is no whole number of ms in 64 bits"),
        ({"timestamp": 1 << 63}, "a record whose timestamp is no whole number of ms in 64 bits"),
        ({"headers": (("k", "v"),)}, "a header value that is a str: bytes or None"),
        ({"headers": (("k",),)}, "headers that are no pairs of a text and bytes or None"),
        ({"headers": ((b"k", b"v"),)}, "headers that are no pairs of a text and bytes or None"),
        ({"headers": 5}, "headers that are no pairs of a text and bytes or None"),
    ],
)
def test_an_output_of_the_wrong_type_names_the_record(kafka: Any, rows_at: Any, changes: dict[str, Any], problem: str) -> None:
    handling = PartitionHandling(lambda record: [record, replace(record, **changes)], "t", 0)
    with pytest.raises(HandlerStopped) as raised:
        transform(memoryview(kafka.build(rows_at([4]))), position=4, end=END, handling=handling)
    assert str(raised.value) == f"offset 4: the handler returned {problem}"


@settings(max_examples=300)
@given(
    batches=st.lists(
        st.tuples(st.lists(anything(), min_size=1, max_size=4), st.sampled_from([0, 0, 1, 2, 3, 4]), st.integers(0, 2)),
        min_size=1,
        max_size=4,
    ),
    excluded=st.sampled_from([(), ((1, 2),)]),
)
def test_a_handler_that_returns_its_record_makes_a_plain_copy(batches: list[tuple[list[Stored], int, int]], excluded: Ranges) -> None:
    """Whatever a log can hold: any time, null and empty fields, equal and empty header keys, keys that are no text."""
    offset, data, kept = 0, b"", []
    for rows, codec, hole in batches:
        data += stored(rows, offset, codec, hole)
        kept += [row for index, row in enumerate(rows) if not within(excluded, offset + index, offset + index + 1)]
        offset += len(rows) + hole
    handling = PartitionHandling(lambda record: [record], "t", 3)
    for how in (handling, None):
        made = transform(memoryview(data), position=0, end=END, excluded=excluded, handling=how)
        assert (made.next_position, [row for unit in made.batches for row in fields_of(unit)]) == (offset, kept)
    header, view = next(iterate_batches(memoryview(stored(batches[0][0], 0, 0, 0))))
    assert contents_of(header, view[61:]).timestamps == [row[0] for row in batches[0][0]]


@pytest.mark.parametrize("time", [-1, 0, (1 << 63) - 1, -2, -(1 << 63)])
def test_every_timestamp_that_kafka_knows_is_taken(kafka: Any, rows_at: Any, time: int) -> None:
    handling = PartitionHandling(lambda record: [replace(record, timestamp=time, key=bytearray(b"k"), value=memoryview(b"v"))], "t", 0)
    (unit,) = transform(memoryview(kafka.build(rows_at([4]))), position=4, end=END, handling=handling).batches
    (row,) = kafka.read(b"".join(unit.encode(900, 4, 77, True)))
    assert (row.timestamp, row.key, row.value) == (time, b"k", b"v")


def test_unreadable_records_are_malformed_and_named(kafka: Any) -> None:
    """Two records of 8 bytes behind their lengths: attributes, two deltas, a key and a value of a byte each, no headers."""
    batch = kafka.build([kafka.Row(20, 5), kafka.Row(21, 5)])
    header, records = read_header(memoryview(batch)), batch[61:]
    assert (records[0], records[9], len(records)) == (16, 16, 18)

    def damaged(changes: dict[int, int], tail: bytes = b"") -> bytes:
        return bytes(changes.get(at, byte) for at, byte in enumerate(records)) + tail

    assert [record.offset for record in decode_records(header, records, "t", 0)] == [20, 21]
    for data, problem in (
        (damaged({0: 18}), "2 records fill 18 of 18 bytes of the batch at offset 20"),
        (damaged({9: 18}), "2 records fill 18 of 18 bytes of the batch at offset 20"),
        (damaged({}, b"\0"), "2 records fill 18 of 19 bytes of the batch at offset 20"),
        (damaged({4: 10}), "unreadable records in the batch at offset 20: a field that is longer than its record"),
        (damaged({15: 6}), "unreadable records in the batch at offset 20: a field that is longer than its record"),
    ):
        with pytest.raises(MalformedBatch) as raised:
            decode_records(header, data, "t", 0)
        assert problem in str(raised.value)
    headed = kafka.build([kafka.Row(20, 5, None, None, (("h", None),))])
    assert headed[-3:] == b"\2h\1"
    with pytest.raises(MalformedBatch, match="unreadable records in the batch at offset 20: a header without a key"):
        decode_records(read_header(memoryview(headed)), headed[61:-3] + b"\1\1\1", "t", 0)


def test_a_handler_that_fails_ends_the_arrangement_before_the_record(kafka: Any, rows_at: Any) -> None:
    def handle(record: Record) -> list[Record]:
        if record.offset == 14:
            raise KeyError("secret content")
        return [record] if record.offset < 12 else []

    data = memoryview(kafka.build(rows_at(range(10, 20)), codec=3))
    transformed = transform(data, position=10, end=END, handling=PartitionHandling(handle, "t", 0))
    assert transformed.next_position == 14
    assert [(unit.count, unit.dropped, unit.upstream_end) for unit in transformed.batches] == [(2, 2, 14)]
    with pytest.raises(HandlerStopped, match=r"offset 14: the handler raised KeyError at test_handled.py:\d+ in handle") as raised:
        transform(data, position=14, end=END, handling=PartitionHandling(handle, "t", 0))
    assert "secret" not in str(raised.value)


def test_what_is_dropped_without_a_unit_is_counted(kafka: Any, rows_at: Any) -> None:
    transformed = transform(
        memoryview(kafka.build(rows_at(range(10)))), position=0, end=8, handling=PartitionHandling(lambda _: [], "t", 0)
    )
    assert (transformed.batches, transformed.next_position, transformed.dropped) == ([], 8, 8)
