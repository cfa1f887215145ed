"""confluent-kafka's serializers and deserializers, with the double as their registry."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationError
from tests.schemas.double.server import RegistryDouble
from tests.schemas.serializers import FORMATS, Format, Record, read, written

pytestmark = pytest.mark.unit

# Longer than the shortest payload that the Avro deserializer takes.
ITEM = "green tea"
FIELDS = [MessageField.KEY, MessageField.VALUE]


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with RegistryDouble() as double:
        yield double


@pytest.fixture
def client(double: RegistryDouble) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": double.url}) as client:
        yield client


def fresh(double: RegistryDouble) -> SchemaRegistryClient:
    """A client that has no schema yet: it asks the registry."""
    return SchemaRegistryClient({"url": double.url})


@pytest.fixture(params=FORMATS, ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Format:
    return request.param


@pytest.mark.parametrize("field", FIELDS)
def test_the_id_is_in_the_frame(double: RegistryDouble, client: SchemaRegistryClient, form: Format, field: str) -> None:
    double.seed("other", '"int"')
    record = written(client, form, "orders", ITEM, field)
    assert record.headers == []
    assert struct.unpack(">bI", record.payload[:5]) == (0, 2)
    assert double.registry.subjects(f"orders-{field}", deleted=False, deleted_only=False) == [f"orders-{field}"]
    with fresh(double) as reader:
        assert read(reader, form, "orders", record, field) == ITEM
    assert double.requests["GET", "/schemas/ids/{id}"] == 1


@pytest.mark.parametrize("field", FIELDS)
def test_the_guid_is_in_a_header(double: RegistryDouble, client: SchemaRegistryClient, form: Format, field: str) -> None:
    record = written(client, form, "orders", ITEM, field, in_header=True)
    [(name, value)] = record.headers
    guid = double.registry.version(f"orders-{field}", "latest", deleted=False).content.guid
    assert (name, value[:17]) == (f"__{field}_schema_id", b"\x01" + uuid.UUID(guid).bytes)
    assert not record.payload.startswith(b"\x00")
    with fresh(double) as reader:
        assert read(reader, form, "orders", record, field) == ITEM
    assert double.requests["GET", "/schemas/guids/{guid}"] == 1


@pytest.mark.parametrize(("in_header", "at"), [(False, 5), (True, 17)])
def test_protobufs_indexes_follow_the_id(client: SchemaRegistryClient, in_header: bool, at: int) -> None:
    """One index, 1: both as zigzag varints."""
    record = written(client, next(form for form in FORMATS if form.name == "PROTOBUF"), "orders", ITEM, in_header=in_header)
    found = record.headers[0][1] if in_header else record.payload
    assert found[at : at + 2] == b"\x02\x02"


def test_an_id_that_the_registry_does_not_know_is_an_error(client: SchemaRegistryClient, form: Format) -> None:
    record = written(client, form, "orders", ITEM)
    with RegistryDouble() as other, fresh(other) as reader, pytest.raises(SchemaRegistryError) as unknown:
        read(reader, form, "orders", record)
    assert unknown.value.error_code == 40403


def test_a_registry_with_kept_ids_reads_the_record(double: RegistryDouble, client: SchemaRegistryClient, form: Format) -> None:
    double.seed("other", '"int"')
    record = written(client, form, "orders", ITEM)
    found = double.registry.version("orders-value", "1", deleted=False)
    with RegistryDouble() as other, fresh(other) as reader:
        other.registry.set_mode(None, "IMPORT", force=False)
        other.seed("A.orders-value", found.content.text, schemaType=found.content.type, id=found.id, version=found.number)
        assert read(reader, form, "A.orders", record) == ITEM


def test_a_header_wins_over_a_frame(double: RegistryDouble, client: SchemaRegistryClient) -> None:
    """So whoever rewrites ids must rewrite the header, and may leave the frame alone."""
    avro = next(form for form in FORMATS if form.name == "AVRO")
    record = written(client, avro, "orders", ITEM, in_header=True)
    framed = Record(record.payload, [("__value_schema_id", struct.pack(">bI", 0, 1)), *record.headers])
    assert read(client, avro, "orders", framed) == ITEM
    lost = Record(record.payload, [("__value_schema_id", struct.pack(">bI", 0, 99)), *record.headers])
    with fresh(double) as reader, pytest.raises(SchemaRegistryError):
        read(reader, avro, "orders", lost)


def test_avros_deserializer_refuses_a_short_record_of_its_own_serializer(client: SchemaRegistryClient) -> None:
    """Nothing is wrong with the record: other clients may read it."""
    avro = next(form for form in FORMATS if form.name == "AVRO")
    record = written(client, avro, "orders", "tea", in_header=True)
    assert len(record.payload) == 4
    with pytest.raises(SerializationError, match="total data size is 4 bytes"):
        read(client, avro, "orders", record)
