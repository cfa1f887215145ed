#!/usr/bin/env bash
# A Protobuf record of one type is read as another one by confluent-kafka for Python, though the record says which type it has.
#
# One would guess: each record carries its schema's id and the place of its message type in the schema, and the deserializer asks the registry
# for the schema; so a record of a type other than the deserializer's is refused, as the Avro deserializer refuses a record of another name.
# What happens: id and place are read, and the bytes are then taken for the deserializer's own type. A Refund {amount: 5, reason: "late"} is a
# Payment {cents: 5, payee: "late"}, without an error; also where both types are in one schema and only the place tells them apart. Avro
# refuses the same pair of types.
# With: confluent-kafka 2.16.1, protobuf 7.36.2, fastavro 1.13.1.
# Hurt: consumers of topics with more than one type of event (TopicRecordNameStrategy), or of a topic whose type was replaced: wherever field
# numbers and wire types fit, and small numbers and texts do, one event passes for another.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,protobuf,schemaregistry]==2.16.1" protobuf==7.36.2 fastavro==1.13.1

cat >"$work/look.py" <<'PYTHON'
import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

pool = DescriptorPool()
context = SerializationContext("t", MessageField.VALUE)
registry = SchemaRegistryClient.new_client({"url": "mock://"})


def types(file, **messages):
    """The classes of a file's messages, each of a number (1) and a text (2)."""
    described = FileDescriptorProto(name=file, package="shop", syntax="proto3")
    for name, (number, text) in messages.items():
        message = described.message_type.add(name=name)
        for place, (field, kind) in enumerate(((number, FieldDescriptorProto.TYPE_INT64), (text, FieldDescriptorProto.TYPE_STRING)), 1):
            message.field.add(name=field, number=place, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    pool.Add(described)
    return [GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}")) for name in messages]


def read_as(kind, message):
    """The fields of a record of `message` that is read as `kind`, with a registry client; or the name of the error."""
    record = ProtobufSerializer(type(message), registry)(message, context)
    try:
        found = ProtobufDeserializer(kind, schema_registry_client=registry)(record, context)
    except Exception as problem:
        return record[1:6 if record[5] == 0 else 7].hex(), type(problem).__name__
    return record[1:6 if record[5] == 0 else 7].hex(), {field.name: value for field, value in found.ListFields()}


def avro(name, *fields):
    described = [{"name": field, "type": kind} for field, kind in zip(fields, ("long", "string"))]
    return json.dumps({"type": "record", "name": name, "fields": described})


(payment,) = types("payment.proto", Payment=("cents", "payee"))
(refund,) = types("refund.proto", Refund=("amount", "reason"))
first, second = types("both.proto", First=("cents", "payee"), Second=("amount", "reason"))
seen = [
    ("Refund as Payment, schemas of their own", *read_as(payment, refund(amount=5, reason="late"))),
    ("Second as First, one schema", *read_as(first, second(amount=5, reason="late"))),
]
for what, place, found in seen:
    print(f"{what}: id and place {place}, read as {found}")
record = AvroSerializer(registry, avro("Refund", "amount", "reason"))({"amount": 5, "reason": "late"}, SerializationContext("a", MessageField.VALUE))
try:
    refused = AvroDeserializer(registry, avro("Payment", "cents", "payee"))(record, context)
except Exception as problem:
    refused = type(problem).__name__
print(f"Avro, Refund as Payment: {refused}")
wrong = {"cents": 5, "payee": "late"}
sys.exit(not ([one[2] for one in seen] == [wrong, wrong] and isinstance(refused, str)))
PYTHON
"$work/venv/bin/python" "$work/look.py"
