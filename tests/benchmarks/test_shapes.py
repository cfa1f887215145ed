from __future__ import annotations

import pytest
from benchmarks.shapes import BACKLOG_MEGABYTES, SHAPES, choose

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_amount_is_met_to_one_batch_per_partition(shape):
    batch_megabytes = shape.record_bytes * shape.records_per_batch / 1e6
    assert abs(shape.gigabytes * 1e3 - shape.megabytes) <= batch_megabytes * shape.topics * shape.partitions / 2


def test_a_tiny_amount_still_has_a_batch():
    assert SHAPES[0].of_size(0.001).batches_per_partition == 1


def test_choosing_keeps_the_order_asked_for():
    assert [shape.name for shape in choose(["1kb-none", "100b-lz4"], None, quick=False, backlog=False)] == ["1kb-none", "100b-lz4"]


def test_choosing_nothing_gives_all():
    assert choose([], None, quick=False, backlog=False) == list(SHAPES)


def test_quick_is_a_tenth_unless_an_amount_is_given():
    assert choose(["100b-lz4"], None, quick=True, backlog=False)[0].megabytes == 40
    assert choose(["100b-lz4"], 7, quick=True, backlog=False)[0].megabytes == 7


def test_backlog_is_two_gigabytes_of_each_batched_shape():
    chosen = choose([], None, quick=False, backlog=True)
    assert [shape.name for shape in chosen] == ["100b-lz4", "1kb-lz4", "1kb-none", "10kb-zstd"]
    assert {shape.megabytes for shape in chosen} == {BACKLOG_MEGABYTES}


def test_unknown_shape_is_named():
    with pytest.raises(ValueError, match="no shape called 2kb"):
        choose(["2kb"], None, quick=False, backlog=False)
