"""Batches that get another codec: the same records, and every offset where it was."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.logs import check_tiling, limited, log_of, partitions

from ferry.handling.calling import PartitionHandling
from ferry.wire.batch import HEADER_SIZE, MalformedBatch, read_header
from ferry.wire.compression import AS_PRODUCED, CODEC_NAMES, codec_named, decompress
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.ranges import Ranges, union, within
from ferry.wire.split import halved
from ferry.wire.transform import transform

pytestmark = pytest.mark.unit
END = 1 << 62
CODECS = range(len(CODEC_NAMES))


def plain_size(unit: ProduceBatch) -> int:
    return len(decompress(read_header(unit.payload).codec, unit.payload[HEADER_SIZE:]))


def codecs(units: list[ProduceBatch]) -> set[int]:
    return {read_header(unit.payload).codec for unit in units}


@settings(max_examples=300)
@given(
    entries=partitions(),
    codec=st.sampled_from(CODECS),
    start=st.integers(0, 250),
    width=st.integers(0, 300),
    minimum=st.sampled_from([0, 150, 32_768]),
    limit=st.sampled_from([100, 2000, 1 << 19]),
    made=st.sampled_from([1, 500, 1 << 30]),
    excluded=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 220)), max_size=3).map(union),
)
def test_exactly_what_a_consumer_sees_comes_out(
    kafka: Any, entries: list[dict[str, Any]], codec: int, start: int, width: int, minimum: int, limit: int, made: int, excluded: Ranges
) -> None:
    """Whatever the source holds: transactions, control batches, times of the broker, holes, old formats, all codecs."""
    log, end = log_of(kafka, entries), start + width
    limits, units, position = {"FORWARD_BYTES": minimum, "MERGED_BYTES": limit}, list[ProduceBatch](), start
    while True:  # a result that ends early is continued from where it ended, as a fetch would
        options = {"aborted": log.aborted, "excluded": excluded, "codec": codec, "max_made_bytes": made}
        transformed = limited(memoryview(log.data), limits, position=position, end=end, **options)
        check_tiling(transformed.batches, position, transformed.next_position)
        units += transformed.batches
        if transformed.next_position == position:
            break
        position = transformed.next_position
    assert position >= min(end, log.end)
    assert kafka.read_units(units) == [
        row for row in log.visible if start <= row.offset < position and not within(excluded, row.offset, row.offset + 1)
    ]
    assert codecs(units) <= {codec}
    if codec not in {entry.get("codec") for entry in entries}:  # batches that have the codec already are not divided
        assert all(unit.count == 1 or plain_size(unit) <= limit for unit in units)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(CODECS, CODECS)), ids=lambda codec: CODEC_NAMES[codec])
def test_every_codec_becomes_every_other_one(kafka: Any, rows_at: Any, old: int, new: int) -> None:
    noise = random.Random(old)
    rows = [
        kafka.Row(at, 1_700_000_000_000 - at, noise.randbytes(5), noise.randbytes(2_000), (("h", noise.randbytes(3)), ("h", b"")))
        for at in range(40)
    ]
    large, small = kafka.build(rows, codec=old, producer_id=7, attributes=0x10), kafka.build(rows_at([40, 41]), codec=old)
    transformed = transform(memoryview(large + small), position=0, end=END, codec=new)
    assert kafka.read_units(transformed.batches) == rows + rows_at([40, 41])
    assert codecs(transformed.batches) == {new}
    if old == new:
        assert transformed.batches[0].payload == large, "nothing is encoded anew"
    halves = halved(transformed.batches[0])
    assert (codecs(list(halves)), kafka.read_units(list(halves))) == ({new}, kafka.read_units(transformed.batches[:1]))


@pytest.mark.parametrize("new", CODECS)
def test_a_batch_that_would_outgrow_the_topic_is_divided(kafka: Any, new: int) -> None:
    """2,000 records of 5 kB that zstd made small."""
    rows = [kafka.Row(at, 5_000 + at % 7, b"key", b"v" * 5_000) for at in range(2_000)]
    fetched = kafka.build(rows, codec=4)
    assert len(fetched) < 100_000
    transformed = transform(memoryview(fetched), position=0, end=END, max_batch_bytes=200_000, codec=new)
    assert kafka.read_units(transformed.batches) == rows
    check_tiling(transformed.batches, 0, 2_000)
    assert all(unit.size <= 200_000 for unit in transformed.batches)
    assert len(transformed.batches) == (1 if new == 4 else 52)


def test_the_result_ends_when_enough_is_made(kafka: Any, rows_at: Any) -> None:
    fetched = b"".join(kafka.build(rows_at(range(at, at + 10), size=9_000), codec=4) for at in range(0, 100, 10))
    transformed = transform(memoryview(fetched), position=0, end=END, codec=0, max_batch_bytes=100_000, max_made_bytes=150_000)
    assert (transformed.next_position, sum(unit.count for unit in transformed.batches)) == (30, 30)


def test_small_batches_of_any_codec_are_merged(kafka: Any, rows_at: Any) -> None:
    fetched = b"".join(kafka.build(rows_at([at]), codec=at % 5) for at in range(20))
    (unit,) = transform(memoryview(fetched), position=0, end=END, codec=1).batches
    assert (unit.count, unit.runs, codecs([unit])) == (20, ((0, 20),), {1})


def test_what_a_handler_returns_gets_the_codec_too(kafka: Any, rows_at: Any) -> None:
    fetched = b"".join(kafka.build(rows_at(range(at, at + 3)), codec=codec) for at, codec in ((0, 4), (3, 3), (6, 0)))
    handling = PartitionHandling(lambda record: [record], "t", 0)
    (unit,) = transform(memoryview(fetched), position=0, end=END, codec=1, handling=handling).batches
    assert (codecs([unit]), kafka.read_units([unit])) == ({1}, [row for at in (0, 3, 6) for row in rows_at(range(at, at + 3))])


def test_unreadable_records_of_a_batch_to_divide_are_malformed(kafka: Any, rows_at: Any) -> None:
    bad = bytearray(kafka.build(rows_at(range(10), size=2_000)))
    bad[HEADER_SIZE] ^= 2
    with pytest.raises(MalformedBatch, match="offset 0"):
        transform(memoryview(kafka.seal(bad)), position=0, end=END, codec=1, max_batch_bytes=5_000)


def test_codecs_by_name() -> None:
    assert [codec_named(name) for name in (*CODEC_NAMES, AS_PRODUCED)] == [*CODECS, None]
