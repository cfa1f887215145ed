from __future__ import annotations

import random

import pytest
from benchmarks.batches import PARTITIONS_PER_REQUEST, build_batch, encoded_requests, prepared_batches, record_values
from benchmarks.counting import count_batches
from benchmarks.shapes import SHAPES
from kafka.record.default_records import DefaultRecordBatch

from ferry.wire.compression import decompress

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_batches_have_the_shape(shape):
    batch = prepared_batches(shape)[0]
    parsed = DefaultRecordBatch(batch)
    assert parsed.validate_crc()
    assert (parsed.compression_type, count_batches(batch, 0)) == (
        {"none": 0, "lz4": 3, "zstd": 4}[shape.codec],
        (shape.records_per_batch,) * 2,
    )


@pytest.mark.parametrize(("codec", "number"), [("lz4", 3), ("zstd", 4)])
def test_a_compressed_batch_holds_the_same_records(codec, number):
    values = record_values(SHAPES[0], random.Random(1))
    plain, compressed = (build_batch(values, name, 1_700_000_000_000) for name in ("none", codec))
    assert bytes(decompress(number, compressed[61:])) == plain[61:]
    assert [record.value for record in DefaultRecordBatch(plain)] == values


def test_values_have_the_size_of_the_shape():
    assert {len(value) for value in record_values(SHAPES[0], random.Random(1))} == {SHAPES[0].record_bytes}


def test_many_partitions_become_several_requests():
    topics = [f"topic{number}" for number in range(PARTITIONS_PER_REQUEST // 5 * 2)]
    requests = encoded_requests(topics, 5, b"batch")
    assert len(requests) == 2
    assert sum(request.count(b"batch") for request in requests) == len(topics) * 5


def test_counting_leaves_out_what_lies_before_the_offset_and_cut_batches():
    batch = bytearray(build_batch([b"a", b"b", b"c"], "none", 0))
    second = bytearray(batch)
    second[:8] = (3).to_bytes(8, "big")
    both = bytes(batch + second)
    assert count_batches(both, 0) == (6, 6)
    assert count_batches(both, 3) == (3, 6)
    assert count_batches(both[:-1], 0) == (3, 3)


def test_counting_leaves_out_markers_but_not_their_offsets():
    marker = bytearray(build_batch([b"commit"], "none", 0))
    marker[22] |= 0x20
    assert count_batches(marker, 0) == (0, 1)
