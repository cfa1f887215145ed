#!/usr/bin/env bash
# What the JSON serializer of confluent-kafka for Python writes and reads depends on whether the package orjson happens to be installed.
#
# One would guess: a codec is a matter of speed: the same object gives the same record, and the same record the same object.
# What happens: NaN is written as NaN, which is no JSON, or as null with orjson; the schema says "number", it passes the validation before
# writing, and its own deserializer then refuses the null. An integer of more than 64 bits is written, or refused with orjson. Such an
# integer in a record is read exactly, or as the nearest float with orjson, without an error, though the schema says "integer".
# With: confluent-kafka 2.16.1, orjson 3.11.4.
# Hurt: whoever installs another package that brings orjson along: numbers change in a service that nobody touched; and whoever compares
# copies of records as objects.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[json,schemaregistry]==2.16.1"

cat >"$work/look.py" <<'PYTHON'
import json

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

LONG = 12_345_678_901_234_567_890_123
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Measured",
    "type": "object",
    "properties": {"x": {"type": "number"}, "n": {"type": "integer"}},
}
registry = SchemaRegistryClient.new_client({"url": "mock://"})
context = SerializationContext("t", MessageField.VALUE)
write, read = JSONSerializer(json.dumps(SCHEMA), registry), JSONDeserializer(None, schema_registry_client=registry)


def tried(call, *arguments):
    try:
        return call(*arguments)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


nan = tried(write, {"x": float("nan")}, context)
frame = write({"n": 1}, context)[:5]
seen = {
    "NaN is written as": nan[5:].decode(),
    "and read again as": str(tried(read, nan, context)),
    "the long integer is written as": str(tried(write, {"n": LONG}, context)),
    "and read as": str(tried(read, frame + b'{"n":%d}' % LONG, context)),
}
print(json.dumps(seen))
PYTHON
plain=$("$work/venv/bin/python" "$work/look.py")
"$work/venv/bin/pip" install -q --disable-pip-version-check orjson==3.11.4
fast=$("$work/venv/bin/python" "$work/look.py")
echo "without orjson: $plain"
echo "with orjson: $fast"
python3 - "$plain" "$fast" <<'PYTHON'
import json
import sys

plain, fast = (list(json.loads(text).values()) for text in sys.argv[1:])
as_told = [
    plain[0] == '{"x":NaN}' and fast[0] == '{"x":null}',
    plain[1] == "{'x': nan}" and fast[1].startswith("SerializationError"),
    "12345678901234567890123" in plain[2] and fast[2].startswith("TypeError"),
    plain[3] == "{'n': 12345678901234567890123}" and fast[3] == "{'n': 1.2345678901234568e+22}",
]
sys.exit(not all(as_told))
PYTHON
