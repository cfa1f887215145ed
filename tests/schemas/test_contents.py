"""What a registry holds, read and written: answers, texts in other spellings, subjects in contexts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.schemas.contents import (
    Reference,
    SchemaVersion,
    Subject,
    VersionKey,
    answered_otherwise,
    canonical,
    decode_config,
    decode_version,
    encode_version,
    settled,
)

pytestmark = pytest.mark.unit

NAMES = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=8)
CONTEXTS = st.sampled_from([".", ".a", ".b"])
SUBJECTS = st.builds(Subject, CONTEXTS, NAMES)
REFERENCES = st.builds(Reference, NAMES, st.builds(VersionKey, SUBJECTS, st.integers(1, 9)))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda inner: st.dictionaries(NAMES, inner, max_size=3)
)
VERSIONS = st.builds(
    SchemaVersion,
    SUBJECTS,
    st.integers(1, 9),
    st.integers(0, 99),
    st.sampled_from(['"string"', '{"type": "int"}', "not json"]),
    st.sampled_from(["AVRO", "JSON", "PROTOBUF"]),
    st.lists(REFERENCES, max_size=2).map(tuple),
    JSON.map(settled),
    JSON.map(settled),
)


@given(VERSIONS)
def test_what_is_registered_is_what_is_read(version: SchemaVersion) -> None:
    body = encode_version(version)
    read = decode_version({"subject": str(version.subject), **json.loads(json.dumps(body))})
    assert read == version
    assert answered_otherwise(version, {**body, "subject": str(version.subject)}) == []


@given(VERSIONS, VERSIONS)
def test_differences_name_each_part(one: SchemaVersion, other: SchemaVersion) -> None:
    assert one.differences(one) == []
    assert set(one.differences(other)) == set(other.differences(one))
    assert one.means(other) is (set(one.differences(other)) <= {"id"})


@given(SUBJECTS)
def test_a_subject_is_found_again_by_its_name(subject: Subject) -> None:
    assert Subject.parse(str(subject)) == subject


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ({"id": 7}, []),
        ({"id": 7, "version": 3}, []),
        ({"id": 8}, ["id"]),
        ({"id": 7, "version": 1}, ["version"]),
        ({"version": 3}, ["id"]),
        ({"id": "seven", "schema": '"int"'}, ["id"]),
        ({"id": 7, "version": 3, "schema": '"long"', "metadata": {"properties": {"a": "b"}}}, ["text"]),
        ({"id": 7, "version": 3, "schema": '"int"'}, ["metadata"]),
        ({"id": 7, "version": 3, "schema": '"int"', "schemaType": "JSON", "metadata": {"properties": {"a": "b"}}}, ["type"]),
    ],
)
def test_answers_to_a_registration(answer: dict[str, Any], parts: list[str]) -> None:
    wanted = SchemaVersion(Subject(".", "s"), 3, 7, '"int"', metadata='{"properties":{"a":"b"}}')
    assert answered_otherwise(wanted, answer) == parts


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("AVRO", '{"type": "int", "doc": "x"}', '{"doc":"x","type":"int"}', True),
        ("AVRO", '{"type": "record", "fields": [1, 2]}', '{"type": "record", "fields": [2, 1]}', False),
        ("AVRO", "string", "string ", True),
        ("PROTOBUF", "message A {\n  string a = 1;\n}", "message A { string a = 1; }", True),
        ("PROTOBUF", "message A {}", "message B {}", False),
    ],
)
def test_spellings(kind: str, one: str, other: str, same: bool) -> None:
    assert (canonical(kind, one) == canonical(kind, other)) is same


def test_empty_fields_are_no_difference() -> None:
    assert settled({"a": None, "b": {}, "c": {"d": []}}) == settled(None) == settled({}) == ""
    assert settled({"b": 0, "a": False}) == '{"a":false,"b":0}'


def test_a_level_is_written_by_its_other_name() -> None:
    assert json.loads(decode_config({"compatibilityLevel": "FULL", "alias": "x"})) == {"compatibility": "FULL", "alias": "x"}


@pytest.mark.parametrize(
    "answer", [{"schema": '"int"'}, {"subject": "s", "version": 1, "id": 1}, {"subject": "s", "version": "a", "id": 1}]
)
def test_an_answer_that_does_not_say_which_version_it_is(answer: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode_version(answer)
