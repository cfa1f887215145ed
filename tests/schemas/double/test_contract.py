"""The double's contract, row by row: a request, and what Confluent's registry answers.

Sources: resource classes and the storage of confluentinc/schema-registry (release 8.5), which Confluent's "Schema Registry API Reference"
describes; `Errors` has the codes. Messages are not part of the contract.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.schemas.double.server import RegistryDouble

pytestmark = pytest.mark.unit

A, B, C = ({"schema": json.dumps({"type": "record", "name": name, "fields": []}, separators=(",", ":"))} for name in "abc")
JSON_SCHEMA = {"schemaType": "JSON", "schema": '{"type": "object"}'}
PROTO = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3";\nmessage A {}\n'}
OWNED = {"metadata": {"properties": {"owner": "me"}}}
RULES = {"ruleSet": {"domainRules": [{"name": "checkLen", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]}}
TO_A = {"references": [{"name": "a", "subject": "a", "version": 1}]}
IMPORT, READONLY = {"mode": "IMPORT"}, {"mode": "READONLY"}
Step = tuple[str, str] | tuple[str, str, dict[str, Any]]
ANYTHING: Any = object()


@dataclass(frozen=True)
class Row:
    """`request` after `given`; `code` of an error, or the `body`, of which a dict may name only some fields."""

    given: Sequence[Step]
    request: Step
    source: str
    code: int = 0
    body: Any = ANYTHING


def post(subject: str, *parts: dict[str, Any]) -> Step:
    return "POST", f"/subjects/{subject}/versions", {key: value for part in parts for key, value in part.items()}


def gone(subject: str, permanently: bool = False) -> Sequence[Step]:
    return [("DELETE", f"/subjects/{subject}"), *([("DELETE", f"/subjects/{subject}?permanent=true")] if permanently else [])]


def imported(subject: str = "a", number: int = 7, version: int = 3, schema: dict[str, Any] = A) -> Sequence[Step]:
    return [("PUT", f"/mode/{subject}", IMPORT), post(subject, schema, {"id": number, "version": version})]


TWO = (post("a", A), post("a", B))
REFERRING = (post("a", A), post("b", B, TO_A))

ROWS = {
    # Registering
    "the first id is 1": Row([], post("a", A), "SubjectVersionsResource.register", body={"id": 1, "version": 1, "schemaType": "AVRO"}),
    "versions of a subject count up": Row([post("a", A)], post("a", B), "KafkaSchemaRegistry.register", body={"id": 2, "version": 2}),
    "a schema that is there is answered": Row(TWO, post("a", A), "registerOrForward", body={"id": 1, "version": 1}),
    "and so it is in READONLY": Row([post("a", A), ("PUT", "/mode", READONLY)], post("a", A), "registerOrForward", body={"id": 1}),
    "one schema has one id under two subjects": Row([post("a", A)], post("b", A), "register", body={"id": 1, "version": 1}),
    "other metadata makes another id": Row([post("a", A)], post("b", A, OWNED), "MD5.ofSchema", body={"id": 2}),
    "metadata and rules are kept": Row([], post("a", A, OWNED, RULES), "register", body={**OWNED, **RULES}),
    "they are inherited in READWRITE": Row(
        [post("a", A, OWNED, RULES)], post("a", B), "maybePopulateFromPrevious", body={**OWNED, **RULES}
    ),
    "a schema that is registered again after a deletion keeps its id, as the next version": Row(
        [post("a", A), *gone("a")], post("a", A), "register", body={"id": 1, "version": 2}
    ),
    "then its deleted version is gone": Row(
        [post("a", A), *gone("a"), post("a", A)], ("GET", "/subjects/a/versions?deleted=true"), "register", body=[2]
    ),
    "after a permanent deletion it gets another id": Row(
        [post("a", A), *gone("a", True)], post("a", A), "schemaIdAndSubjects", body={"id": 2}
    ),
    "JSON Schema": Row([], post("a", JSON_SCHEMA), "register", body={"schemaType": "JSON", "schema": '{"type":"object"}'}),
    "Protobuf": Row([], post("a", PROTO), "register", body={"schemaType": "PROTOBUF"}),
    "no Avro": Row([], post("a", {"schema": "{"}), "Errors", code=42201),
    "no schema": Row([], post("a"), "maybePopulateFromPrevious", code=42201),
    "no such type": Row([], post("a", A, {"schemaType": "XML"}), "parseSchema", code=42201),
    "a version that is not the next": Row([post("a", A)], post("a", B, {"version": 5}), "register", code=42201),
    "a subject that cannot be": Row([], post("__GLOBAL", A), "QualifiedSubject.isValidSubject", code=42208),
    "READONLY": Row([("PUT", "/mode", READONLY)], post("a", A), "checkRegisterMode", code=42205),
    "READONLY of one subject": Row([("PUT", "/mode/a", READONLY)], post("b", A), "getModeInScope", body={"id": 1}),
    "READONLY_OVERRIDE": Row([("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})], post("a", A), "isReadOnlyMode", code=42205),
    # References
    "a reference is kept": Row([post("a", A)], post("b", B, TO_A), "register", body=TO_A),
    "an unknown one is refused": Row([], post("b", B, TO_A), "resolveReferences", code=42201),
    "also in IMPORT": Row([("PUT", "/mode", IMPORT)], post("b", B, TO_A, {"id": 9}), "resolveReferences", code=42201),
    "one to a deleted version is not": Row([post("a", A), *gone("a")], post("b", B, TO_A), "resolveReferences", body={"id": 2}),
    "-1 means the latest": Row(
        TWO,
        post("b", C, {"references": [{"name": "a", "subject": "a", "version": -1}]}),
        "resolveReferences",
        body={"references": [{"name": "a", "subject": "a", "version": 2}]},
    ),
    "who references": Row(REFERRING, ("GET", "/subjects/a/versions/1/referencedby"), "getReferencedBy", body=[2]),
    "a deleted one does no longer": Row(
        [*REFERRING, *gone("b")], ("GET", "/subjects/a/versions/1/referencedby"), "getReferencedBy", body=[]
    ),
    "unless it is asked for": Row(
        [*REFERRING, *gone("b")], ("GET", "/subjects/a/versions/1/referencedby?deleted=true"), "getReferencedBy", body=[2]
    ),
    "what is referenced cannot be deleted": Row(REFERRING, ("DELETE", "/subjects/a/versions/1"), "deleteSchemaVersion", code=42206),
    "nor its subject": Row(REFERRING, ("DELETE", "/subjects/a"), "deleteSubject", code=42206),
    "in a context a reference means the context": Row(
        [post(":.eu:a", A)], post(":.eu:b", B, TO_A), "qualifySubjectWithParent", body={"id": 2, **TO_A}
    ),
    # IMPORT
    "IMPORT keeps id and version": Row(
        [("PUT", "/mode/a", IMPORT)], post("a", A, {"id": 7, "version": 3}), "register", body={"id": 7, "version": 3}
    ),
    "an import again is answered": Row(
        imported(), post("a", A, {"id": 7, "version": 3}), "registerOrForward", body={"id": 7, "version": 3}
    ),
    "without a version it is the next": Row(imported(), post("a", B, {"id": 8}), "register", body={"id": 8, "version": 4}),
    "an id that means another schema": Row(imported(), post("a", B, {"id": 7, "version": 4}), "checkIfSchemaWithIdExist", code=42205),
    "also if only the metadata differs": Row(imported(), post("a", A, OWNED, {"id": 7, "version": 4}), "Schema.equals", code=42205),
    "the same id under a second subject": Row(
        [("PUT", "/mode", IMPORT), *imported()[1:]], post("b", A, {"id": 7, "version": 1}), "register", body={"id": 7, "version": 1}
    ),
    "a version that is there is overwritten": Row(
        [*imported(), post("a", B, {"id": 8, "version": 3})], ("GET", "/subjects/a/versions/3"), "register", body={"id": 8, **B}
    ),
    "nothing is inherited": Row(
        [*imported(schema={**A, **OWNED}), post("a", B, {"id": 8, "version": 4})],
        ("GET", "/subjects/a/versions/4"),
        "register",
        body={"id": 8, "metadata": None},
    ),
    "ids go on behind it": Row([*imported(), ("PUT", "/mode/a", {"mode": "READWRITE"})], post("a", B), "idGenerator", body={"id": 8}),
    "no id in IMPORT": Row([("PUT", "/mode/a", IMPORT)], post("a", A), "checkRegisterMode", code=42205),
    "an id in READWRITE": Row([], post("a", A, {"id": 7}), "checkRegisterMode", code=42205),
    "IMPORT of a subject with versions": Row([post("a", A)], ("PUT", "/mode/a", IMPORT), "setMode", code=42205),
    "of all, with versions": Row([post("a", A)], ("PUT", "/mode", IMPORT), "setMode", code=42205),
    "of a context, with versions": Row([post(":.eu:a", A)], ("PUT", "/mode/:.eu:", IMPORT), "setMode", code=42205),
    "of another context": Row([post("a", A)], ("PUT", "/mode/:.eu:", IMPORT), "setMode", body=IMPORT),
    "with force": Row([post("a", A)], ("PUT", "/mode/a?force=true", IMPORT), "setMode", body=IMPORT),
    "with deleted versions": Row([post("a", A), *gone("a")], ("PUT", "/mode/a", IMPORT), "setMode", body=IMPORT),
    "which then are gone": Row(
        [post("a", A), *gone("a"), ("PUT", "/mode/a", IMPORT)], ("GET", "/subjects/a/versions?deleted=true"), "setMode", code=40401
    ),
    "force keeps them": Row(
        [post("a", A), *gone("a"), ("PUT", "/mode/a?force=true", IMPORT)], ("GET", "/subjects/a/versions?deleted=true"), "setMode", body=[1]
    ),
    "compatibility is not asked in IMPORT": Row(imported(), post("a", B, {"id": 8, "version": 4}), "register", body={"id": 8}),
    # Reading
    "subjects": Row([post("b", A), post("a", A)], ("GET", "/subjects"), "SubjectsResource.list", body=["a", "b"]),
    "not deleted ones": Row([*TWO, *gone("a")], ("GET", "/subjects"), "list", body=[]),
    "deleted ones too": Row([*TWO, *gone("a"), post("b", A)], ("GET", "/subjects?deleted=true"), "list", body=["a", "b"]),
    "only deleted ones": Row([*TWO, *gone("a"), post("b", A)], ("GET", "/subjects?deletedOnly=true"), "list", body=["a"]),
    "of all contexts": Row([post("a", A), post(":.eu:a", A)], ("GET", "/subjects"), "list", body=[":.eu:a", "a"]),
    "of one context": Row([post("a", A), post(":.eu:a", A)], ("GET", "/subjects?subjectPrefix=:.eu:"), "list", body=[":.eu:a"]),
    "of the default context": Row([post("a", A), post(":.eu:a", A)], ("GET", "/subjects?subjectPrefix="), "list", body=["a"]),
    "a page of subjects": Row([post(name, A) for name in "abcd"], ("GET", "/subjects?offset=1&limit=2"), "list", body=["b", "c"]),
    "versions": Row(TWO, ("GET", "/subjects/a/versions"), "listVersions", body=[1, 2]),
    "deleted versions": Row(
        [*TWO, ("DELETE", "/subjects/a/versions/1")], ("GET", "/subjects/a/versions?deletedOnly=true"), "listVersions", body=[1]
    ),
    "of no subject": Row([], ("GET", "/subjects/a/versions"), "listVersions", code=40401),
    "a version": Row(
        [post("a", A)],
        ("GET", "/subjects/a/versions/1"),
        "getSchemaByVersion",
        body={"subject": "a", "version": 1, "id": 1, "guid": ANYTHING, "schemaType": "AVRO", **A, "ts": ANYTHING, "deleted": False},
    ),
    "the latest": Row(TWO, ("GET", "/subjects/a/versions/latest"), "VersionId", body={"version": 2}),
    "as -1": Row(TWO, ("GET", "/subjects/a/versions/-1"), "VersionId", body={"version": 2}),
    "its text": Row(TWO, ("GET", "/subjects/a/versions/2/schema"), "getSchemaOnly", body=B["schema"]),
    "no such version": Row(TWO, ("GET", "/subjects/a/versions/3"), "getSchemaByVersion", code=40402),
    "no version": Row(TWO, ("GET", "/subjects/a/versions/0"), "VersionId", code=42202),
    "no number": Row(TWO, ("GET", "/subjects/a/versions/x"), "VersionId", code=42202),
    "no such subject": Row([], ("GET", "/subjects/a/versions/1"), "getSchemaByVersion", code=40401),
    "a deleted version": Row([*TWO, ("DELETE", "/subjects/a/versions/1")], ("GET", "/subjects/a/versions/1"), "get", code=40402),
    "if asked for": Row(
        [*TWO, ("DELETE", "/subjects/a/versions/1")], ("GET", "/subjects/a/versions/1?deleted=true"), "get", body={"deleted": True}
    ),
    "by content": Row(TWO, ("POST", "/subjects/a", B), "lookUpSchemaUnderSubject", body={"subject": "a", "version": 2, "id": 2}),
    "by content in another order of white space": Row(
        TWO, ("POST", "/subjects/a", {"schema": A["schema"].replace(":", " : ")}), "lookUpSchemaUnderSubject", body={"version": 1}
    ),
    "by unknown content": Row(TWO, ("POST", "/subjects/a", C), "lookUpSchemaUnderSubject", code=40403),
    "by content in an unknown subject": Row([], ("POST", "/subjects/a", A), "lookUpSchemaUnderSubject", code=40401),
    "by id": Row([post("a", A)], ("GET", "/schemas/ids/1"), "SchemasResource.getSchema", body={**A, "guid": ANYTHING, "subject": None}),
    "by id of a subject": Row([post("a", A)], ("GET", "/schemas/ids/1?subject=a"), "getSchema", body={"subject": "a", "version": 1}),
    "by unknown id": Row([], ("GET", "/schemas/ids/1"), "getSchema", code=40403),
    "an id in another context": Row([post(":.eu:a", A)], ("GET", "/schemas/ids/1"), "getSchemaKeyUsingContexts", code=40403),
    "an id of a context": Row([post(":.eu:a", A)], ("GET", "/schemas/ids/1?subject=:.eu:"), "getSchemaKeyUsingContexts", body=A),
    "an id of a subject in some context": Row(
        [post(":.eu:a", A)], ("GET", "/schemas/ids/1?subject=a"), "getSchemaKeyUsingContexts", body=A
    ),
    "a deleted id": Row([post("a", A), *gone("a")], ("GET", "/schemas/ids/1"), "get", body=A),
    "an id that is gone": Row([post("a", A), *gone("a", True)], ("GET", "/schemas/ids/1"), "get", code=40403),
    "the text of an id": Row([post("a", A)], ("GET", "/schemas/ids/1/schema"), "getSchemaOnly", body=A["schema"]),
    "subjects of an id": Row([post("a", A), post("b", A)], ("GET", "/schemas/ids/1/subjects"), "listSubjectsForId", body=["a", "b"]),
    "versions of an id": Row(
        [post("a", A), post("b", A), *gone("b")],
        ("GET", "/schemas/ids/1/versions"),
        "listVersionsForId",
        body=[{"subject": "a", "version": 1}],
    ),
    "deleted versions of an id": Row(
        [post("a", A), *gone("a")],
        ("GET", "/schemas/ids/1/versions?deleted=true"),
        "listVersionsForId",
        body=[{"subject": "a", "version": 1}],
    ),
    "versions of no id": Row([], ("GET", "/schemas/ids/1/versions"), "listVersionsForId", code=40403),
    "no such GUID": Row([], ("GET", "/schemas/guids/00000000-0000-0000-0000-000000000000"), "getByGuid", code=40403),
    "types": Row([], ("GET", "/schemas/types"), "getSchemaTypes", body=["AVRO", "JSON", "PROTOBUF"]),
    "schemas are sorted": Row(
        [post("b", A), *TWO], ("GET", "/schemas"), "getSchemas", body=[{"subject": "a"}, {"version": 2}, {"subject": "b"}]
    ),
    "schemas of the default context": Row([post(":.eu:a", A)], ("GET", "/schemas"), "getSchemas", body=[]),
    "schemas of all contexts": Row([post(":.eu:a", A)], ("GET", "/schemas?subjectPrefix=:*:"), "getSchemas", body=[{"subject": ":.eu:a"}]),
    "schemas by prefix": Row([post("a", A), post("b", A)], ("GET", "/schemas?subjectPrefix=b"), "getSchemas", body=[{"subject": "b"}]),
    "schemas, deleted ones too": Row(
        [*TWO, *gone("a")], ("GET", "/schemas?deleted=true"), "getSchemas", body=[{"deleted": True}, {"deleted": True}]
    ),
    "the last schema of each subject": Row(TWO, ("GET", "/schemas?latestOnly=true"), "getSchemas", body=[{"version": 2}]),
    "a page of schemas": Row(TWO, ("GET", "/schemas?offset=1&limit=1"), "getSchemas", body=[{"version": 2}]),
    "a page behind the last": Row(TWO, ("GET", "/schemas?offset=2&limit=1"), "getSchemas", body=[]),
    # Deleting
    "delete a version": Row(TWO, ("DELETE", "/subjects/a/versions/1"), "deleteSchemaVersion", body=1),
    "the latest one": Row(TWO, ("DELETE", "/subjects/a/versions/latest"), "deleteSchemaVersion", body=2),
    "again": Row([*TWO, ("DELETE", "/subjects/a/versions/1")], ("DELETE", "/subjects/a/versions/1"), "validateDelete", code=40406),
    "for good": Row(
        [*TWO, ("DELETE", "/subjects/a/versions/1")], ("DELETE", "/subjects/a/versions/1?permanent=true"), "deleteSchemaVersion", body=1
    ),
    "for good at once": Row(TWO, ("DELETE", "/subjects/a/versions/1?permanent=true"), "deleteSchemaVersion", code=40407),
    "an unknown version": Row(TWO, ("DELETE", "/subjects/a/versions/3"), "validateDelete", code=40402),
    "of an unknown subject": Row([], ("DELETE", "/subjects/a/versions/3"), "validateDelete", code=40401),
    "delete a subject": Row(TWO, ("DELETE", "/subjects/a"), "deleteSubject", body=[1, 2]),
    "a subject again": Row([*TWO, *gone("a")], ("DELETE", "/subjects/a"), "deleteSubjectOrForward", code=40404),
    "a subject for good": Row([*TWO, *gone("a")], ("DELETE", "/subjects/a?permanent=true"), "deleteSubject", body=[1, 2]),
    "a subject for good at once": Row(TWO, ("DELETE", "/subjects/a?permanent=true"), "deleteSubject", code=40405),
    "an unknown subject": Row([], ("DELETE", "/subjects/a"), "deleteSubjectOrForward", code=40401),
    "in READONLY": Row([*TWO, ("PUT", "/mode/a", READONLY)], ("DELETE", "/subjects/a"), "deleteSubject", code=42205),
    "its config goes with it": Row(
        [post("a", A), ("PUT", "/config/a", {"compatibility": "NONE"}), *gone("a", True)], ("GET", "/config/a"), "deleteSubject", code=40408
    ),
    "its mode too": Row(
        [post("a", A), ("PUT", "/mode/a?force=true", IMPORT), *gone("a", True)], ("GET", "/mode/a"), "deleteSubject", code=40409
    ),
    # Modes
    "the mode at first": Row([], ("GET", "/mode"), "ModeResource", body={"mode": "READWRITE"}),
    "of a subject": Row([], ("GET", "/mode/a"), "getMode", code=40409),
    "in force": Row([("PUT", "/mode", READONLY)], ("GET", "/mode/a?defaultToGlobal=true"), "getModeInScope", body=READONLY),
    "of its context": Row(
        [("PUT", "/mode/:.eu:", READONLY)], ("GET", "/mode/:.eu:a?defaultToGlobal=true"), "InMemoryCache.mode", body=READONLY
    ),
    "not the default context's": Row(
        [("PUT", "/mode", READONLY)], ("GET", "/mode/:.eu:a?defaultToGlobal=true"), "InMemoryCache.mode", body={"mode": "READWRITE"}
    ),
    "but that above all": Row(
        [("PUT", "/mode/:.__GLOBAL:", READONLY)], ("GET", "/mode/:.eu:a?defaultToGlobal=true"), "InMemoryCache.mode", body=READONLY
    ),
    "no mode": Row([], ("PUT", "/mode", {"mode": "WRITE"}), "updateMode", code=42204),
    "FORWARD of a subject": Row([], ("PUT", "/mode/a", {"mode": "FORWARD"}), "updateMode", code=42204),
    "FORWARD of all": Row([], ("PUT", "/mode/:.__GLOBAL:", {"mode": "FORWARD"}), "updateMode", body={"mode": "FORWARD"}),
    "a mode taken away": Row([("PUT", "/mode/a", READONLY)], ("DELETE", "/mode/a"), "deleteSubjectMode", body=READONLY),
    "one that is not set": Row([], ("DELETE", "/mode/a"), "deleteSubjectMode", code=40401),
    "then the one above is in force": Row(
        [("PUT", "/mode/a", READONLY), ("DELETE", "/mode/a")], ("GET", "/mode/a"), "deleteSubjectMode", code=40409
    ),
    # Configs
    "the level at first": Row([], ("GET", "/config"), "ConfigResource", body={"compatibilityLevel": "BACKWARD"}),
    "a level is set": Row([], ("PUT", "/config", {"compatibility": "FULL"}), "updateTopLevelConfig", body={"compatibility": "FULL"}),
    "and read": Row(
        [("PUT", "/config", {"compatibility": "FULL"})], ("GET", "/config"), "getTopLevelConfig", body={"compatibilityLevel": "FULL"}
    ),
    "no level": Row([], ("PUT", "/config/a", {"compatibility": "SOME"}), "updateSubjectLevelConfig", code=42203),
    "the config of a subject": Row([], ("GET", "/config/a"), "getSubjectLevelConfig", code=40408),
    "the config in force": Row(
        [("PUT", "/config", {"compatibility": "NONE"})],
        ("GET", "/config/a?defaultToGlobal=true"),
        "getConfigInScope",
        body={"compatibilityLevel": "NONE"},
    ),
    "a config changes where it is named": Row(
        [("PUT", "/config/a", {"compatibility": "NONE", "normalize": True, "defaultMetadata": OWNED["metadata"]})],
        ("PUT", "/config/a", {"compatibility": "FULL", "normalize": None}),
        "ConfigValue.update",
        body={"compatibility": "FULL", "normalize": None, "defaultMetadata": OWNED["metadata"]},
    ),
    "a config is taken away": Row(
        [("PUT", "/config/a", {"compatibility": "NONE"})],
        ("DELETE", "/config/a"),
        "deleteSubjectConfig",
        body={"compatibilityLevel": "NONE"},
    ),
    "a config that is not set": Row([], ("DELETE", "/config/a"), "deleteSubjectConfig", code=40401),
    "a config in READONLY": Row([("PUT", "/mode", READONLY)], ("PUT", "/config/a", {"compatibility": "NONE"}), "updateConfig", code=42205),
    "defaults are added in READWRITE": Row(
        [("PUT", "/config/a", {"defaultMetadata": OWNED["metadata"]})], post("a", A), "maybeSetMetadataRuleSet", body=OWNED
    ),
    "but not in IMPORT": Row(
        [("PUT", "/config/a", {"defaultMetadata": OWNED["metadata"]}), ("PUT", "/mode/a", IMPORT)],
        post("a", A, {"id": 7, "version": 1}),
        "register",
        body={"id": 7, "metadata": None},
    ),
    "an alias": Row([*TWO, ("PUT", "/config/old", {"alias": "a"})], ("GET", "/subjects/old/versions"), "AliasFilter", body=[1, 2]),
    # Contexts
    "contexts at first": Row([], ("GET", "/contexts"), "listContexts", body=["."]),
    "contexts": Row([post(":.eu:a", A)], ("GET", "/contexts"), "listContexts", body=[".", ".eu"]),
    "a context has its own ids": Row([post("a", A), post("a", B)], post(":.eu:a", B), "qualifiedContextFor", body={"id": 1}),
    "the default context by name": Row([post("a", A)], ("GET", "/subjects/:.:a/versions"), "QualifiedSubject.normalize", body=[1]),
    "a context before the path": Row([post(":.eu:a", A)], ("GET", "/contexts/.eu/subjects/a/versions"), "ContextFilter", body=[1]),
    "before an id": Row([post(":.eu:a", A)], ("GET", "/contexts/:.eu:/schemas/ids/1"), "ContextFilter", body={"subject": ":.eu:a"}),
    "before subjects": Row([post(":.eu:a", A), post("b", A)], ("GET", "/contexts/.eu/subjects"), "ContextFilter", body=[":.eu:a"]),
    "before the config": Row(
        [("PUT", "/contexts/.eu/config", {"compatibility": "NONE"})],
        ("GET", "/config/:.eu:"),
        "ContextFilter",
        body={"compatibilityLevel": "NONE"},
    ),
    "a subject of another context": Row(
        [post(":.eu:a", A)], ("GET", "/subjects/a/versions/1"), "getUsingContexts", body={"subject": ":.eu:a"}
    ),
    "a context is not empty": Row([post(":.eu:a", A)], ("DELETE", "/contexts/.eu"), "deleteContext", code=42211),
    "an empty context goes": Row([post(":.eu:a", A), *gone(":.eu:a", True)], ("DELETE", "/contexts/.eu"), "deleteContext", body=None),
    # The server
    "no such path": Row([], ("GET", "/nothing"), "JAX-RS", code=404),
    "no such method": Row([], ("PUT", "/subjects"), "JAX-RS", code=405),
}


def ask(double: RegistryDouble, step: Step) -> tuple[int, Any]:
    answer = double.answer(step[0], step[1], {}, json.dumps(step[2] if len(step) > 2 else {}).encode())
    assert isinstance(answer, tuple)
    return answer


def is_like(found: Any, wanted: Any) -> bool:
    """Whether an answer is what was wanted; of a dict only what is named, and None: it is not there."""
    if wanted is ANYTHING:
        return found is not None
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(is_like(found.get(key), value) if value is not None else key not in found for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(is_like, found, wanted))
    return bool(found == wanted)


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in ROWS.items()])
def test_a_request_is_answered_as_documented(row: Row) -> None:
    double = RegistryDouble()
    for step in row.given:
        assert ask(double, step)[0] in (200, 204), f"{step}, which only prepares"
    status, body = ask(double, row.request)
    if row.code:
        assert (status, body["error_code"]) == (int(str(row.code)[:3]), row.code), row.source
        assert body["message"]
    else:
        assert status in (200, 204), body
        assert is_like(body, row.body), f"{body}, by {row.source}"
