#!/usr/bin/env bash
# Who forwards a record's headers and writes the value anew with confluent-kafka for Python gets it read with the old schema, without an error.
#
# One would guess: the serializer's own schema is the one that counts: it replaces a header __value_schema_id that came along, or the last of
# two counts. And a value that has the schema's id before it is read by that id.
# What happens: the serializer appends a second __value_schema_id, and the deserializer takes the first. A value of {street, city}, written
# with the headers of a record of {city, street}, is read with both exchanged. If the new value has its id before it, as by default, the
# header that came along is believed too, and the id's bytes are read as data: two empty texts. Without the old header both are read right.
# With: confluent-kafka 2.16.1, fastavro 1.13.1, the client's own mock registry.
# Hurt: every consume, transform, produce that passes headers on, once its source writes ids into headers: wrong data for all readers. Drop
# __key_schema_id and __value_schema_id before serializing.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1" fastavro==1.13.1

cat >"$work/look.py" <<'PYTHON'
import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import SerializationContext


def schema(name, *fields):
    return json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "string"} for field in fields]})


client = SchemaRegistryClient.new_client({"url": "mock://registry"})
in_header = {"schema.id.serializer": header_schema_id_serializer}
deserialize = AvroDeserializer(client)
source_headers = [("trace", b"1")]
written = AvroSerializer(client, schema("Source", "city", "street"), conf=in_header)
value = written({"city": "Bremen", "street": "Am Wall"}, SerializationContext("source", "value", source_headers))
address = deserialize(value, SerializationContext("source", "value", source_headers))
seen = {}
for place, conf in (("header", in_header), ("prefix", {})):
    serialize = AvroSerializer(client, schema("Target", "street", "city"), conf=conf)
    for kept in ("forwarded", "dropped"):
        headers = [header for header in source_headers if kept == "forwarded" or not header[0].endswith("_schema_id")]
        value = serialize(address, SerializationContext(f"target-{place}", "value", headers))
        seen[place, kept] = deserialize(value, SerializationContext(f"target-{place}", "value", headers))
        print(f"id in the {place}, the source's header {kept}: headers {[name for name, _ in headers]}, value {value}, read as {seen[place, kept]}")
exchanged = {"city": "Am Wall", "street": "Bremen"}
wrong = seen["header", "forwarded"] == exchanged and seen["prefix", "forwarded"] == {"city": "", "street": ""}
sys.exit(not (wrong and seen["header", "dropped"] == seen["prefix", "dropped"] == address == {"city": "Bremen", "street": "Am Wall"}))
PYTHON
"$work/venv/bin/python" "$work/look.py"
