#!/usr/bin/env bash
# confluent-kafka for Python refuses to read its own Avro records if they are short and the schema's id stands in a header.
#
# One would guess: with header_schema_id_serializer a value is the Avro encoding alone, of whatever length, and the deserializer, whose
# default looks for the header first, reads what the serializer of the same package wrote.
# What happens: the deserializer wants at least 6 bytes before it looks for a header, as if the id stood before the value. {"n": 1} is one
# byte, and refused: "This message was not produced with a Confluent Schema Registry serializer". From 6 bytes on, records are read. A
# record without fields is refused in the older form too.
# With: confluent-kafka 2.16.1.
# Hurt: whoever moves ids into headers: small keys and flags cannot be read by a consumer in Python, larger ones in the same topic can.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1"

cat >"$work/look.py" <<'PYTHON'
import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

registry = SchemaRegistryClient.new_client({"url": "mock://"})


def tried(record, fields, headers):
    """The length of a value, and what the deserializer makes of it."""
    context = SerializationContext("t", MessageField.VALUE, [] if headers else None)
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]})
    conf = {"schema.id.serializer": header_schema_id_serializer} if headers else {}
    value = AvroSerializer(registry, schema, conf=conf)(record, context)
    try:
        seen = AvroDeserializer(registry)(value, context)
    except Exception as problem:
        seen = f"{type(problem).__name__}: {problem}"
    print(f"{record}, id in {'a header' if headers else 'the value'}: {len(value)} bytes, read as {seen}")
    return seen


short = tried({"n": 1}, {"n": "int"}, True)
five = tried({"s": "four"}, {"s": "string"}, True)
six = tried({"s": "fives"}, {"s": "string"}, True)
empty = tried({}, {}, False)
prefixed = tried({"n": 1}, {"n": "int"}, False)
refused = [str(one).startswith("SerializationError: Expecting data framing") for one in (short, five, empty)]
sys.exit(not (all(refused) and six == {"s": "fives"} and prefixed == {"n": 1}))
PYTHON
"$work/venv/bin/python" "$work/look.py"
