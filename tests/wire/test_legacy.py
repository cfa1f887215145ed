from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire import compression, legacy
from ferry.wire.batch import BatchHeader, MalformedBatch, OversizedBatch, iterate_batches, read_header
from ferry.wire.reframe import Reframer, assemble

pytestmark = pytest.mark.unit
FIELDS = st.none() | st.binary(max_size=80)


def converted(kafka: Any, data: bytes) -> list[Any]:
    rows = []
    for header, view in iterate_batches(memoryview(data)):
        new, records = legacy.opened(header, view)
        reframed = Reframer()
        reframed.add(new, records, 0, 1 << 62)
        offsets = [start + step for start, count in reframed.runs for step in range(count)]
        found = kafka.read(kafka.seal(assemble(reframed, 0)))
        assert (new.base_offset, new.last_offset, new.count, new.codec) == (offsets[0], offsets[-1], len(offsets), header.codec)
        assert new.max_timestamp == max(row.timestamp for row in found)
        rows += [row._replace(offset=offset) for row, offset in zip(found, offsets, strict=True)]
    return rows


@given(
    steps=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    fields=st.lists(st.tuples(st.integers(0, 1 << 42), FIELDS, FIELDS), min_size=5, max_size=5),
    magic=st.integers(0, 1),
    codec=st.integers(0, 3),
)
def test_messages_become_records(kafka: Any, steps: list[int], fields: list[Any], magic: int, codec: int) -> None:
    offsets = [100 + sum(steps[: index + 1]) for index in range(len(steps))]
    rows = [kafka.Row(offset, time if magic else -1, key, value) for offset, (time, key, value) in zip(offsets, fields, strict=False)]
    assert converted(kafka, kafka.message_set(rows, magic, codec)) == rows


def test_the_header_is_that_of_a_batch_without_a_producer(kafka: Any) -> None:
    rows = [kafka.Row(7, 10, None, b"v"), kafka.Row(9, 5, b"k", None)]
    ((header, view),) = iterate_batches(memoryview(kafka.message_set(rows, 1, 1)))
    found, records = legacy.opened(header, view)
    assert found == BatchHeader(
        base_offset=7,
        length=49 + len(records),
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=1,
        last_offset_delta=2,
        base_timestamp=10,
        max_timestamp=10,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=2,
    )
    assert found.length == read_header(memoryview(kafka.build(rows))).length
    assert bytes(records) == kafka.build(rows)[61:], "a null is written as -1"


def test_a_wrapper_is_opened_no_further_than_there_is_memory(kafka: Any) -> None:
    ((header, view),) = iterate_batches(memoryview(kafka.message_set([kafka.Row(0, 1, None, bytes(5_000))], 1, 1)))
    with pytest.raises(OversizedBatch):
        legacy.opened(header, view, 5_000)
    assert legacy.opened(header, view, 5_100)[0].count == 1


def test_lz4_of_magic_0_is_repaired_and_of_magic_1_must_be_right(kafka: Any) -> None:
    rows = [kafka.Row(0, -1, None, b"v" * 100)]
    assert converted(kafka, kafka.message_set(rows, 0, 3)) == rows
    right = kafka.squeeze(3, kafka.message_set(rows, 1))
    assert len(converted(kafka, kafka.wrapper(right, 1, 3, 0, 1))) == 1
    with pytest.raises(MalformedBatch, match="lz4"):
        converted(kafka, kafka.wrapper(right[:6] + bytes([right[6] ^ 1]) + right[7:], 1, 3, 0, 1))
    gzipped = kafka.squeeze(1, kafka.message_set(rows, 0))
    assert compression.repair_legacy_lz4(gzipped) == gzipped


def test_append_time_of_a_wrapper_holds_for_all_its_messages(kafka: Any) -> None:
    rows = [kafka.Row(4, 10), kafka.Row(5, 20)]
    assert [row.timestamp for row in converted(kafka, kafka.message_set(rows, 1, 1, append_time=99))] == [99, 99]


def test_offsets_within_a_wrapper_are_absolute_in_magic_0_and_relative_in_magic_1(kafka: Any) -> None:
    for magic, expected in ((0, [3, 5]), (1, [7, 9])):
        inner = kafka.message_set([kafka.Row(3, 1), kafka.Row(5, 1)], magic)
        assert [row.offset for row in converted(kafka, kafka.wrapper(kafka.squeeze(2, inner), magic, 2, 9, 1))] == expected


def test_mixed_magics_in_one_row(kafka: Any) -> None:
    data = kafka.message_set([kafka.Row(0, 5)], 0) + kafka.message_set([kafka.Row(1, 5), kafka.Row(2, 6)], 1, 2)
    assert [(row.offset, row.timestamp) for row in converted(kafka, data)] == [(0, -1), (1, 5), (2, 6)]


def test_what_no_broker_writes_is_malformed(kafka: Any, rows_at: Any) -> None:
    message = kafka.message_set([kafka.Row(0, 5)], 1)
    flipped = message[:-1] + bytes([message[-1] ^ 1])
    inner_sets = {
        "another magic within": kafka.message_set([kafka.Row(0, 5)], 0),
        "a wrapper within": kafka.message_set([kafka.Row(0, 5)], 1, 1),
        "a flipped bit within": flipped,
        "offsets that do not rise": message + message,
        "a magic-2 batch within": kafka.build(rows_at([0])),
        "nothing within": b"",
    }
    for what, inner in inner_sets.items():
        problem = "an invalid message within the wrapper at offset 9" if inner else "an empty message set at offset 9"
        with pytest.raises(MalformedBatch, match=problem):
            converted(kafka, kafka.wrapper(kafka.squeeze(1, inner), 1, 1, 9, 0))
        assert what
    below_zero = kafka.message_set([kafka.Row(0, 5), kafka.Row(1, 5)], 1)
    with pytest.raises(MalformedBatch, match="an invalid message within the wrapper at offset 0"):
        converted(kafka, kafka.wrapper(kafka.squeeze(1, below_zero), 1, 1, 0, 0))
    without_value = next(iterate_batches(memoryview(kafka.wrapper(b"", 1, 1, 9, 0)[:-4] + b"\xff" * 4)))
    with pytest.raises(MalformedBatch, match="a compressed message without a value at offset 9"):
        legacy.opened(*without_value)
    far_apart = kafka.message_set([kafka.Row(8, (1 << 63) - 1), kafka.Row(9, -(1 << 63))], 1, 1, append_time=None)
    assert [row.timestamp for row in converted(kafka, far_apart)] == [(1 << 63) - 1, -(1 << 63)]
    with pytest.raises(MalformedBatch, match="a key or value of 2130706433 bytes in a message with 6 left"):
        converted(kafka, message[:26] + b"\x7f" + message[27:])
    with pytest.raises(MalformedBatch, match="a key or value of 2 bytes in a message with 1 left"):
        converted(kafka, message[:34] + b"\x02" + message[35:])
    with pytest.raises(MalformedBatch, match=r"^a message that is shorter than its fields$"):
        converted(kafka, message[:8] + (34 - 12).to_bytes(4, "big") + message[12:34])
    with pytest.raises(MalformedBatch, match="1 bytes too many in the message at offset 0"):
        converted(kafka, message[:8] + (len(message) - 11).to_bytes(4, "big") + message[12:] + b"\0")


@given(body=st.binary(max_size=60), magic=st.integers(0, 1), attributes=st.integers(0, 15))
def test_random_messages_are_malformed_at_worst(body: bytes, magic: int, attributes: int) -> None:
    data = bytes(8) + (6 + len(body)).to_bytes(4, "big") + bytes(4) + bytes([magic, attributes]) + body
    try:
        for header, view in iterate_batches(memoryview(data)):
            legacy.opened(header, view)
    except MalformedBatch:
        return
