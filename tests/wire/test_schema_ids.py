"""Ids of schemas in records: what confluent-kafka's own codec writes is found and replaced, and everything else stays as it is."""

from __future__ import annotations

import io
import struct
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry.common.serde import SchemaId as OfClients
from hypothesis import given
from hypothesis import strategies as st

from ferry.handling import Record
from ferry.wire.schema_ids import SchemaId, foreign_ids, ids_of, with_ids

pytestmark = pytest.mark.unit

GUID = "12345678-9abc-def0-1234-56789abcdef0"
numbers = st.integers(1, (1 << 32) - 1)
guids = st.uuids().map(str)
indexes = st.none() | st.lists(st.integers(0, 300), min_size=1, max_size=3)
data = st.binary(max_size=12)


def record(key: bytes | None = None, value: bytes | None = None, *headers: tuple[str, bytes | None]) -> Record:
    return Record("t", 0, 0, 0, key, value, headers)


def framed(number: int, path: list[int] | None, rest: bytes) -> bytes:
    return OfClients("PROTOBUF" if path else "AVRO", number, None, path).id_to_bytes() + rest


def header(guid: str, path: list[int] | None = None) -> bytes:
    return OfClients("PROTOBUF" if path else "AVRO", None, guid, path).guid_to_bytes()


def read_by_a_client(content: bytes, path: list[int] | None) -> tuple[Any, Any, Any, bytes]:
    found = OfClients("PROTOBUF" if path else "AVRO")
    rest = found.from_bytes(io.BytesIO(content)).read()
    return found.id, None if found.guid is None else str(found.guid), found.message_indexes, rest


@given(numbers, numbers, indexes, data)
def test_frames_get_the_new_id_and_keep_what_is_behind_it(old: int, new: int, path: list[int] | None, rest: bytes) -> None:
    before = record(framed(old, path, rest), framed(old, path, rest))
    key, value, headers = with_ids(before, lambda number, _: {old: new}[int(number)])
    assert key is not None
    assert key == value
    assert read_by_a_client(key, path) == (new, None, path, rest)
    assert headers == ()


@given(guids, guids, indexes, data)
def test_headers_get_the_new_guid_and_the_payload_is_no_frame(old: str, new: str, path: list[int] | None, rest: bytes) -> None:
    payload = b"\0\0\0\0\7" + rest
    before = record(payload, payload, ("__key_schema_id", header(old, path)), ("x", b"\1"), ("__value_schema_id", header(old, path)))
    key, value, headers = with_ids(before, lambda number, _: {old: new}[str(number)])
    assert (key, value) == (payload, payload)
    assert [name for name, _ in headers] == ["__key_schema_id", "x", "__value_schema_id"]
    assert headers[1] == ("x", b"\1")
    for _, content in (headers[0], headers[2]):
        assert read_by_a_client(content or b"", path) == (None, new, path, b"")


@given(st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=30), st.lists(st.tuples(st.text(max_size=3), st.none() | data)))
def test_the_same_ids_give_the_same_bytes(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    before = record(key, value, *headers, ("__value_schema_id", value))
    assert with_ids(before, lambda number, _: number) == (key, value, before.headers)


def test_every_one_of_several_headers_counts() -> None:
    before = record(None, b"", ("__value_schema_id", header(GUID)), ("__value_schema_id", struct.pack(">bI", 0, 9)))
    assert ids_of(before) == [(GUID, "header __value_schema_id"), (9, "header __value_schema_id")]


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (None, []),
        (b"", []),
        (b"\0", []),
        (b"\0\0\0\1", []),  # too short
        (struct.pack(">q", 42), []),  # a long: it would be id 0
        (struct.pack(">bI", 0, 1), [(1, "value")]),  # a record without fields has no data
        (b"\0\xff\xff\xff\xffx", [((1 << 32) - 1, "value")]),
        (b"\1" + UUID(GUID).bytes, []),  # a GUID is only in headers
        (b'{"a": 1}', []),
    ],
)
def test_what_is_a_frame(value: bytes | None, ids: list[tuple[SchemaId, str]]) -> None:
    assert ids_of(record(None, value)) == ids


def test_a_header_without_a_value_does_not_hide_the_frame() -> None:
    assert ids_of(record(None, struct.pack(">bI", 0, 3), ("__value_schema_id", None))) == [(3, "value")]
    assert ids_of(record(struct.pack(">bI", 0, 3), None, ("__value_schema_id", header(GUID)))) == [
        (3, "key"),
        (GUID, "header __value_schema_id"),
    ]


def test_ids_of_other_registries() -> None:
    glue = b"\3\0" + UUID(GUID).bytes + b"data"
    apicurio = b"\0" + struct.pack(">q", 7) + b"data"
    assert list(foreign_ids(record(apicurio, glue))) == ["Apicurio with ids of 8 bytes, in the key", "AWS Glue, in the value"]
    assert list(foreign_ids(record(None, b"x", ("apicurio.value.globalId", struct.pack(">q", 7))))) == ["Apicurio, in headers"]
    assert list(foreign_ids(record(struct.pack(">q", 7), struct.pack(">bI", 0, 7) + b"any data"))) == []
