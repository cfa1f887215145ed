"""What a handler returns is judged before anything of it is encoded; no message holds anything of a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ferry.handling import Record
from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.wire.batch import read_header
from ferry.wire.handled import HandlingBuilder, decode_records

pytestmark = pytest.mark.unit

RECORD = Record("t", 1, 7, 1_000, b"private", b"private", (("private", b"private"),))
LIMITS: dict[str, Any] = {"body_limit": 1_000, "excluded": (), "max_opened": 1_000, "codec": None}


def generating(record: Record) -> Iterator[Record]:
    yield record
    raise ValueError(f"could not convert {record.value!r}")


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "returned a NoneType: return a list"),
        (RECORD, "returned a Record: return a list"),
        ([RECORD, "private"], "a str among its records"),
        ([replace(RECORD, topic="other")], "changed the topic or partition"),
        ([replace(RECORD, partition=2)], "changed the topic or partition"),
        ([replace(RECORD, topic="eu", partition=3)], "a partition that topic eu of the target does not have: it has 3"),
        ([replace(RECORD, topic="eu", partition=-1)], "a partition that topic eu"),
        ([replace(RECORD, topic="eu", partition="0")], "a partition that topic eu"),
        ([RECORD, replace(RECORD, topic="eu")], "for several partitions"),
    ],
)
def test_what_is_no_list_of_records_of_the_partition(returned: Any, problem: str) -> None:
    with pytest.raises(HandlerStopped, match=problem) as raised:
        PartitionHandling(lambda _: returned, "t", 1, {"eu": 3})(RECORD)
    assert raised.value.offset == 7
    assert "private" not in str(raised.value)


def test_a_place_that_may_be_chosen() -> None:
    handling = PartitionHandling(lambda record: [replace(record, topic="eu", partition=2)] * 2, "t", 1, {"eu": 3})
    outputs = handling(RECORD)
    assert (len(outputs), handling.chosen(outputs[0]), handling.chosen(RECORD)) == (2, ("eu", 2), None)


def test_a_generator_that_raises_late() -> None:
    with pytest.raises(HandlerStopped, match=r"raised ValueError at test_calling.py:\d+ in generating") as raised:
        PartitionHandling(generating, "t", 1)(RECORD)
    assert "private" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": "private"}, "a key that is a str"),
        ({"value": 5}, "a value that is a int"),
        ({"timestamp": "private"}, "timestamp"),
        ({"timestamp": -(1 << 63) - 1}, "timestamp"),
        ({"timestamp": 1 << 63}, "timestamp"),
        ({"headers": {"private": b"x"}}, "headers"),
        ({"headers": ((b"private", b"x"),)}, "headers"),
        ({"headers": (("private", "private"),)}, "a header value that is a str"),
    ],
)
def test_fields_of_the_wrong_type(kafka_batch: bytes, changes: dict[str, Any], problem: str) -> None:
    handling = PartitionHandling(lambda record: [replace(record, **changes)], "t", 1)
    builder = HandlingBuilder(0, 100, handling, **LIMITS)
    with pytest.raises(HandlerStopped, match=problem) as raised:
        builder.add(read_header(memoryview(kafka_batch)), memoryview(kafka_batch))
    assert "private" not in str(raised.value)


def test_header_keys_that_are_no_utf_8_survive(kafka_batch: bytes) -> None:
    odd = (b"\xff\xfe".decode("utf-8", "surrogateescape"), None)
    builder = HandlingBuilder(0, 100, PartitionHandling(lambda record: [replace(record, headers=(odd,))], "t", 1), **LIMITS)
    builder.add(read_header(memoryview(kafka_batch)), memoryview(kafka_batch))
    builder.finish()
    (unit,) = builder.batches(1)
    assert b"\x04\xff\xfe\x01" in bytes(unit.payload)
    (record,) = decode_records(read_header(unit.payload), unit.payload[61:], "t", 1)
    assert record.headers == (odd,)
