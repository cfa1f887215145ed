"""Records get the target's ids before the message handler sees them; an id that is not known stops the partition before its record."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.wire.conftest import Row, build

from ferry.copying.id_rewriting import IdRewriting, handle_of
from ferry.errors import HandlerFailed, SchemaIdUnknown
from ferry.handling import Record
from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.policy.filters import IncludeExclude
from ferry.wire.batch import iterate_batches
from ferry.wire.handled import decode_records
from ferry.wire.legacy import opened
from ferry.wire.transform import transform

pytestmark = pytest.mark.unit

TOPICS = IncludeExclude("x", ("orders.*",), ())


def framed(number: int) -> bytes:
    return struct.pack(">bI", 0, number) + b"data"


def rewriting(then: object = None, parts: tuple[str, ...] = ("key", "value"), **ids: int) -> IdRewriting:
    return IdRewriting(TOPICS, parts, {int(name[1:]): number for name, number in ids.items()}, then, "orders.heartbeats".__eq__)  # type: ignore[arg-type]


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record("orders", 0, 7, 0, key, value)


def test_key_and_value_get_new_ids() -> None:
    (got,) = rewriting(_1=10, _2=20)(record(framed(1), framed(2)))
    assert (got.key, got.value) == (framed(10), framed(20))


def test_a_part_that_holds_no_ids_is_left_alone() -> None:
    (got,) = rewriting(parts=("value",), _2=20)(record(framed(1), framed(2)))
    assert (got.key, got.value) == (framed(1), framed(20))


def test_the_message_handler_gets_the_new_ids() -> None:
    def twice(given: Record) -> Iterable[Record]:
        return [given, replace(given, value=b"x")]

    assert [got.value for got in rewriting(twice, _2=20)(record(None, framed(2)))] == [framed(20), b"x"]


@pytest.mark.parametrize("value", [framed(3), None, b"text", b"", struct.pack(">q", 9)])
def test_only_an_id_that_is_unknown_stops(value: bytes | None) -> None:
    handling = PartitionHandling(rewriting(_1=10), "orders", 0)
    if value != framed(3):
        assert [got.value for got in handling(record(None, value))] == [value]
        return
    with pytest.raises(HandlerStopped, match="offset 7: the value has id 3, and no schema of the source") as stopped:
        handling(record(framed(1), value))
    assert stopped.value.error is SchemaIdUnknown


def test_errors_of_the_message_handler_stay_its_own() -> None:
    def fails(_: Record) -> Iterable[Record]:
        raise KeyError("secret")

    with pytest.raises(HandlerStopped) as stopped:
        PartitionHandling(rewriting(fails), "orders", 0)(record(None, b"text"))
    assert stopped.value.error is HandlerFailed


def test_batches_of_other_topics_are_not_opened() -> None:
    found = rewriting()
    assert handle_of(found, "orders-eu") is found
    assert handle_of(found, "other") is None
    assert handle_of(rewriting(list), "other") is list
    assert handle_of(rewriting(list), "orders.heartbeats") is list
    assert handle_of(None, "orders") is None


def test_batches_end_before_the_unknown_id_and_offsets_stay() -> None:
    log = build([Row(offset, 5, None, framed(1 if offset < 5 else 3)) for offset in range(8)])
    done = transform(memoryview(log), position=0, end=8, handling=PartitionHandling(rewriting(_1=10), "orders", 0))
    assert done.next_position == 5
    got = [
        (found.offset, found.value)
        for batch in done.batches
        for header, view in iterate_batches(memoryview(batch.payload))
        for found in decode_records(*opened(header, view), "orders", 0)
    ]
    assert [value for _, value in got] == [framed(10)] * 5
