from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.batch import HEADER, TRANSACTIONAL, BatchHeader, MalformedBatch, crc_is_valid, iterate_batches, read_entry

pytestmark = pytest.mark.unit


def test_header_has_61_bytes_and_kafkas_fields(kafka: Any, rows_at: Any) -> None:
    assert HEADER.size == 61
    data = kafka.build(rows_at([10, 11, 14]), codec=4, attributes=0x10, producer_id=3, last_offset=15)
    ((header, view),) = iterate_batches(memoryview(data))
    assert bytes(view) == data
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (10, 15, 16)
    assert (header.codec, header.is_control, header.is_log_append_time) == (4, False, False)
    assert header.attributes & TRANSACTIONAL
    assert (header.count, header.contiguous, header.leader_epoch, header.producer_id) == (3, False, 7, 3)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_006)


def test_a_cut_tail_is_left_out_wherever_it_is_cut(kafka: Any, rows_at: Any) -> None:
    first, second = kafka.build(rows_at([0, 1])), kafka.build(rows_at([2]))
    for cut in range(len(second)):
        assert [header.base_offset for header, _ in iterate_batches(memoryview(first + second[:cut]))] == [0]


@pytest.mark.parametrize(
    ("at", "layout", "value"),
    [
        (8, ">i", -1),
        (8, ">i", 13),
        (8, ">i", 48),
        (16, ">B", 3),
        (22, ">B", 5),
        (23, ">i", -1),
        (57, ">i", -1),
        (57, ">i", 3),
        (23, ">iqqqhii", (-1, 0, 0, -1, -1, -1, 0)),
        (0, ">q", -5),
    ],
)
def test_nonsense_in_the_header_is_malformed(kafka: Any, rows_at: Any, at: int, layout: str, value: Any) -> None:
    data = bytearray(kafka.build(rows_at([0, 1])))
    struct.pack_into(layout, data, at, *(value if isinstance(value, tuple) else (value,)))
    with pytest.raises(MalformedBatch, match="offset"):
        list(iterate_batches(memoryview(data)))


@pytest.mark.parametrize(
    ("at", "layout", "value", "problem"),
    [
        (8, ">i", 13, "the batch at offset 5 claims 13 bytes, fewer than any record has"),
        (16, ">B", 3, "the batch at offset 5 has magic 3 in 74 bytes"),
        (22, ">B", 0x15, "the batch at offset 5 is compressed with a codec that no Kafka knows: 5"),
        (57, ">i", 3, "the batch at offset 5 claims 3 records within 2 offsets"),
    ],
)
def test_what_is_malformed_says_where_and_how(kafka: Any, at: int, layout: str, value: int, problem: str) -> None:
    data = bytearray(kafka.build([kafka.Row(5, 100, None, b""), kafka.Row(6, 200, None, None)])[:73] + b"\0")
    struct.pack_into(layout, data, at, value)
    if at != 8:
        struct.pack_into(">i", data, 8, len(data) - 12)
    with pytest.raises(MalformedBatch) as raised:
        list(iterate_batches(memoryview(data)))
    assert str(raised.value) == problem


def test_twelve_bytes_are_enough_to_see_nonsense() -> None:
    with pytest.raises(MalformedBatch, match="offset 4 claims 13 bytes"):
        list(iterate_batches(memoryview(struct.pack(">qi", 4, 13))))


def test_an_empty_batch_is_no_nonsense(kafka: Any) -> None:
    ((header, _),) = iterate_batches(memoryview(kafka.build([], base_offset=5, last_offset=9)))
    assert (header.count, header.contiguous, header.next_offset) == (0, False, 10)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_legacy_entries_are_yielded_with_what_is_known(kafka: Any, magic: int, codec: int) -> None:
    data = kafka.message_set([kafka.Row(4, 100), kafka.Row(6, 200)], magic, codec)
    headers = [header for header, view in iterate_batches(memoryview(data)) if crc_is_valid(view)]
    first, second = (-1, -1) if magic == 0 else (100, 200)
    known = [(header.base_offset, header.count, header.base_timestamp, header.max_timestamp) for header in headers]
    assert known == ([(6, -1, second, second)] if codec else [(4, 1, first, first), (6, 1, second, second)])
    last = headers[-1]
    assert last.crc == int.from_bytes(data[12 - last.size + len(data) :][:4], "big")
    unknown = (last.leader_epoch, last.last_offset_delta, last.producer_id, last.producer_epoch, last.base_sequence)
    assert unknown == (-1, 0, -1, -1, -1)
    assert sum(header.size for header in headers) == len(data)
    assert (last.magic, last.codec, last.next_offset, last.is_control) == (magic, codec, 7, False)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_shortest_legacy_message_at_the_very_beginning(kafka: Any, magic: int) -> None:
    data = bytearray(kafka.message_set([kafka.Row(0, 1, None, None)], magic))
    ((header, _),) = iterate_batches(memoryview(data))
    assert (header.base_offset, header.length) == (0, 14 + 8 * magic)
    struct.pack_into(">q", data, 0, -1)
    with pytest.raises(MalformedBatch, match="message at offset -1 has magic"):
        list(iterate_batches(memoryview(data)))


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_flipped_bit_under_the_checksum_is_seen(kafka: Any, rows_at: Any, magic: int) -> None:
    data = kafka.build(rows_at([0])) if magic == 2 else kafka.message_set([kafka.Row(0, 9)], magic)
    assert crc_is_valid(memoryview(data))
    for at in range(21 if magic == 2 else 17, len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0x10
        assert not crc_is_valid(memoryview(flipped))


@given(st.binary(max_size=400))
def test_random_bytes_end_or_are_malformed(data: bytes) -> None:
    try:
        entries = list(iterate_batches(memoryview(data)))
    except MalformedBatch:
        return
    assert sum(len(view) for _, view in entries) <= len(data)
    assert all(isinstance(header, BatchHeader) for header, _ in entries)


def test_read_entry_reads_at_an_index(kafka: Any, rows_at: Any) -> None:
    data = kafka.build(rows_at([0])) + kafka.build(rows_at([1]))
    entry = read_entry(memoryview(data), len(data) // 2)
    assert entry is not None
    assert entry[0].base_offset == 1
    assert read_entry(memoryview(data), len(data)) is None
