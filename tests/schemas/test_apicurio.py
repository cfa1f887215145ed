"""One script on the double and on a real Apicurio Registry: every answer that differs is in the table, with both sides.

So the table says what a client of Confluent's API meets there. Most of all: IMPORT is accepted, and read back, but neither id nor version
of a registration is kept. Apicurio's path is `v7`, so the double answers as releases before 8 do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from tests.schemas.apicurio import apicurio
from tests.schemas.double.server import RegistryDouble
from tests.waiting import NEVER_SECONDS

pytestmark = [pytest.mark.java, pytest.mark.long]

A, B, C = ({"schema": json.dumps({"type": "record", "name": name, "fields": []}, separators=(",", ":"))} for name in "abc")
OWNED = {"metadata": {"properties": {"owner": "me"}}}
RULES = {"ruleSet": {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]}}
TO_A = {"references": [{"name": "a", "subject": "a", "version": 1}]}
PROTO = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";\nmessage A {}\n'}
JSON_SCHEMA = {"schemaType": "JSON", "schema": '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}'}
SUBJECTS_OF_EU = "/subjects?subjectPrefix=:.eu:"

# Name, method, path, body.
SCRIPT: list[tuple[str, str, str, dict[str, Any]]] = [
    ("contexts", "GET", "/contexts", {}),
    ("compatibility", "GET", "/config", {}),
    ("mode", "GET", "/mode", {}),
    ("register", "POST", "/subjects/a/versions", A),
    ("register a second one", "POST", "/subjects/a/versions", B),
    ("register again", "POST", "/subjects/a/versions", A),
    ("register for another subject", "POST", "/subjects/b/versions", A),
    ("read", "GET", "/subjects/a/versions/1", {}),
    ("read by id", "GET", "/schemas/ids/1", {}),
    ("register with metadata and rules", "POST", "/subjects/owned/versions", A | OWNED | RULES),
    ("read metadata and rules", "GET", "/subjects/owned/versions/1", {}),
    ("register a reference", "POST", "/subjects/refers/versions", C | TO_A),
    ("read a reference", "GET", "/subjects/refers/versions/1", {}),
    ("register an unknown reference", "POST", "/subjects/x/versions", C | {"references": [{"name": "x", "subject": "x", "version": 1}]}),
    ("register Protobuf", "POST", "/subjects/proto/versions", PROTO),
    ("read Protobuf", "GET", "/subjects/proto/versions/1", {}),
    ("register JSON Schema", "POST", "/subjects/json/versions", JSON_SCHEMA),
    ("register a short JSON Schema", "POST", "/subjects/short/versions", {"schemaType": "JSON", "schema": '{"type":"object"}'}),
    ("no number of a version", "GET", "/subjects/a/versions/x", {}),
    ("unknown version", "GET", "/subjects/a/versions/9", {}),
    ("unknown subject", "GET", "/subjects/none/versions", {}),
    ("unknown id", "GET", "/schemas/ids/999", {}),
    ("IMPORT of a subject", "PUT", "/mode/imported", {"mode": "IMPORT"}),
    ("IMPORT is read back", "GET", "/mode/imported", {}),
    ("import", "POST", "/subjects/imported/versions", A | {"id": 777, "version": 3}),
    ("imported versions", "GET", "/subjects/imported/versions", {}),
    ("imported id", "GET", "/schemas/ids/777", {}),
    ("IMPORT of a subject with versions", "PUT", "/mode/a", {"mode": "IMPORT"}),
    ("mode is taken away", "DELETE", "/mode/imported", {}),
    ("no mode", "PUT", "/mode/a", {"mode": "NONE"}),
    ("READONLY", "PUT", "/mode/closed", {"mode": "READONLY"}),
    ("register in READONLY", "POST", "/subjects/closed/versions", B),
    ("register in a context", "POST", "/subjects/:.eu:a/versions", B),
    ("contexts then", "GET", "/contexts", {}),
    ("a context before the path", "GET", "/contexts/.eu/subjects", {}),
    ("subjects of a context", "GET", SUBJECTS_OF_EU, {}),
    ("level of a subject", "PUT", "/config/a", {"compatibility": "FULL"}),
    ("read level of a subject", "GET", "/config/a", {}),
    ("level of a subject without one", "GET", "/config/b", {}),
    ("level in force", "GET", "/config/b?defaultToGlobal=true", {}),
    ("no level", "PUT", "/config/a", {"compatibility": "SOME"}),
    ("config with metadata", "PUT", "/config/b", {"compatibility": "NONE", "normalize": True, "defaultMetadata": OWNED["metadata"]}),
    ("read config with metadata", "GET", "/config/b", {}),
    ("a page of schemas", "GET", "/schemas?limit=1", {}),
    ("a page of schemas with a prefix", "GET", "/schemas?limit=1&subjectPrefix=refers", {}),
    ("delete a version", "DELETE", "/subjects/a/versions/2", {}),
    ("delete it again", "DELETE", "/subjects/a/versions/2", {}),
    ("deleted versions", "GET", "/subjects/a/versions?deletedOnly=true", {}),
    ("read a deleted version", "GET", "/subjects/a/versions/2?deleted=true", {}),
    ("delete a referenced subject", "DELETE", "/subjects/a", {}),
    ("delete for good at once", "DELETE", "/subjects/owned?permanent=true", {}),
    ("delete a subject", "DELETE", "/subjects/b", {}),
    ("delete it for good", "DELETE", "/subjects/b?permanent=true", {}),
    ("exporters", "GET", "/exporters", {}),
]
# Of a schema: what it is under. Other fields (`schema`, `guid`, …) are named only.
_VALUES = ("id", "version", "subject")
SHOWN = dict[str, Any] | list[Any] | int | str

# By name: what the double answers, as Confluent does, and what Apicurio does.
DIFFERENCES: Mapping[str, tuple[SHOWN, SHOWN]] = {
    "contexts": (["."], [":.:"]),
    "compatibility": ({"compatibilityLevel": "BACKWARD"}, {"compatibilityLevel": "NONE"}),
    "register with metadata and rules": ({"id": 3}, {"id": 1}),
    "read metadata and rules": (
        {"id": 3, "metadata": ..., "ruleSet": ..., "schema": ..., "subject": "owned", "version": 1},
        {"id": 1, "schema": ..., "subject": "owned", "version": 1},
    ),
    "register a reference": ({"id": 4}, {"id": 5}),
    "read a reference": (
        {"id": 4, "references": ..., "schema": ..., "subject": "refers", "version": 1},
        {"id": 5, "references": ..., "schema": ..., "subject": "refers", "version": 1},
    ),
    "register Protobuf": ({"id": 5}, {"id": 6}),
    "read Protobuf": (
        {"id": 5, "schema": ..., "schemaType": ..., "subject": "proto", "version": 1},
        {"id": 6, "schema": ..., "schemaType": ..., "subject": "proto", "version": 1},
    ),
    "register JSON Schema": ({"id": 6}, {"id": 7}),
    "register a short JSON Schema": ({"id": 7}, "422/42201"),
    "no number of a version": ("422/42202", "404/40402"),
    "import": ({"id": 777}, {"id": 1}),
    "imported versions": ([3], [1]),
    "imported id": ({"schema": ...}, "404/40403"),
    "IMPORT of a subject with versions": ("422/42205", {"mode": "IMPORT"}),
    "no mode": ("422/42204", "422/42201"),
    "register in READONLY": ("422/42205", {"id": 2}),
    "register in a context": ({"id": 1}, {"id": 2}),
    "contexts then": ([".", ".eu"], [":.:"]),
    "a context before the path": ([":.eu:a"], 404),
    "subjects of a context": ([":.eu:a"], [":.eu:a", "a", "b", "closed", "imported", "json", "owned", "proto", "refers"]),
    "level of a subject": ({"compatibility": "FULL"}, {"compatibility": "FULL", "normalize": False}),
    "level of a subject without one": ("404/40408", {"compatibilityLevel": "NONE"}),
    "level in force": ({"compatibilityLevel": "BACKWARD"}, {"compatibilityLevel": "NONE"}),
    "config with metadata": (
        {"normalize": True, "defaultMetadata": {"properties": {"owner": "me"}}, "compatibility": "NONE"},
        {"compatibility": "NONE", "normalize": True},
    ),
    "read config with metadata": (
        {"compatibilityLevel": "NONE", "normalize": True, "defaultMetadata": {"properties": {"owner": "me"}}},
        {"compatibilityLevel": "NONE"},
    ),
    "a page of schemas": ([{"id": 1, "schema": ..., "subject": "a", "version": 1}], [{"schema": ...}]),
    "a page of schemas with a prefix": ([{"id": 4, "references": ..., "schema": ..., "subject": "refers", "version": 1}], []),
    "delete it again": ("404/40406", "409/40406"),
    "delete for good at once": ("404/40405", "409/40405"),
    "exporters": ("404/404", []),
}


def shown(answer: httpx.Response) -> SHOWN:
    """An answer without what no client depends on: an error's code, a schema's place, a list in order."""
    try:
        body = answer.json()
    except ValueError:
        return answer.status_code
    if answer.is_error:
        return f"{answer.status_code}/{body['error_code']}"
    return sorted(map(_shown, body), key=str) if isinstance(body, list) else _shown(body)


def _shown(value: Any) -> Any:
    if not isinstance(value, dict) or not {"schema", "id"} & value.keys():
        return value
    return {key: value[key] if key in _VALUES else ... for key in sorted(value)}


def played(url: str) -> dict[str, SHOWN]:
    with httpx.Client(timeout=NEVER_SECONDS) as client:
        return {name: shown(client.request(method, url + path, json=body or None)) for name, method, path, body in SCRIPT}


@pytest.fixture(scope="module")
def as_confluent() -> dict[str, SHOWN]:
    with RegistryDouble(before_8=True) as double:
        return played(double.url)


@pytest.fixture(scope="module")
def as_apicurio(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SHOWN]:
    with apicurio(tmp_path_factory.mktemp("apicurio") / "log") as url:
        return played(url)


@pytest.mark.parametrize("name", [name for name, *_ in SCRIPT])
def test_what_apicurio_does_otherwise(as_confluent: dict[str, SHOWN], as_apicurio: dict[str, SHOWN], name: str) -> None:
    same = as_confluent[name], as_confluent[name]
    assert (as_confluent[name], as_apicurio[name]) == DIFFERENCES.get(name, same)
