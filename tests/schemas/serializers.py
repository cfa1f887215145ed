"""Records as confluent-kafka's serializers write them, in each format, with the schema's id in the frame or its GUID in a header.

- Frame: byte 0, the id in four bytes (big endian), for Protobuf the path of the message's indexes, then the data.
- Header `__key_schema_id` or `__value_schema_id`: byte 1, the GUID in 16 bytes, for Protobuf the indexes. The payload is the data alone.

Deserializers read both: a header wins, if there is one. That of Avro refuses a payload of five bytes or less even then, so a test's item
is longer. The serializer of Protobuf registers a descriptor in base64. A real registry stores its text; the double keeps the base64.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer, prefix_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

AVRO_SCHEMA = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]})
JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"item": {"type": "string"}},
    }
)
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True)
class Record:
    """What a producer sends of one field of a record."""

    payload: bytes
    headers: Headers


@dataclass(frozen=True)
class Format:
    """`write` and `read` get a client of the registry; a value is what the test sees: a text, the order's item."""

    name: str
    write: Callable[[SchemaRegistryClient, dict[str, Any]], Callable[[str, SerializationContext], bytes]]
    read: Callable[[SchemaRegistryClient], Callable[[bytes, SerializationContext], str]]


def written(
    registry: SchemaRegistryClient, form: Format, topic: str, item: str, field: str = MessageField.VALUE, in_header: bool = False
) -> Record:
    """The schema is registered under TopicNameStrategy's subject."""
    headers: Headers = []
    place = header_schema_id_serializer if in_header else prefix_schema_id_serializer
    payload = form.write(registry, {"schema.id.serializer": place})(item, SerializationContext(topic, field, headers))
    return Record(payload, headers)


def read(registry: SchemaRegistryClient, form: Format, topic: str, record: Record, field: str = MessageField.VALUE) -> str:
    return form.read(registry)(record.payload, SerializationContext(topic, field, list(record.headers)))


def _order() -> Any:
    """A message that is not the first of its file, so that its index is not the one that is written in short."""
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Unused")
    field = FieldDescriptorProto.LABEL_OPTIONAL
    file.message_type.add(name="Order").field.add(name="item", number=1, type=FieldDescriptorProto.TYPE_STRING, label=field)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


Order = _order()


def _avro(registry: SchemaRegistryClient, config: dict[str, Any]) -> Callable[[str, SerializationContext], bytes]:
    serialize = AvroSerializer(registry, AVRO_SCHEMA, conf=config)
    return lambda item, context: serialize({"item": item}, context)


def _json(registry: SchemaRegistryClient, config: dict[str, Any]) -> Callable[[str, SerializationContext], bytes]:
    serialize = JSONSerializer(JSON_SCHEMA, registry, conf=config)
    return lambda item, context: serialize({"item": item}, context)


def _protobuf(registry: SchemaRegistryClient, config: dict[str, Any]) -> Callable[[str, SerializationContext], bytes]:
    serialize = ProtobufSerializer(Order, registry, {"use.deprecated.format": False, **config})
    return lambda item, context: serialize(Order(item=item), context)


def _read_avro(registry: SchemaRegistryClient) -> Callable[[bytes, SerializationContext], str]:
    deserialize = AvroDeserializer(registry)
    return lambda payload, context: str(deserialize(payload, context)["item"])


def _read_json(registry: SchemaRegistryClient) -> Callable[[bytes, SerializationContext], str]:
    deserialize = JSONDeserializer(None, schema_registry_client=registry)
    return lambda payload, context: str(deserialize(payload, context)["item"])


def _read_protobuf(registry: SchemaRegistryClient) -> Callable[[bytes, SerializationContext], str]:
    deserialize = ProtobufDeserializer(Order, {"use.deprecated.format": False}, registry)
    return lambda payload, context: str(deserialize(payload, context).item)


FORMATS = [Format("AVRO", _avro, _read_avro), Format("JSON", _json, _read_json), Format("PROTOBUF", _protobuf, _read_protobuf)]
