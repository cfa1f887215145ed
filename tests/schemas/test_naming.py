"""Names of subjects on the target: each strategy, and what is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.policy.filters import IncludeExclude
from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from ferry.policy.selection import TopicRules
from ferry.schemas.contents import SchemaVersion, Subject
from ferry.schemas.naming import SubjectNaming, record_names, topic_of

pytestmark = pytest.mark.unit

PROTOBUF = 'syntax = "proto3";\n// message Not {}\npackage acme.shop;\nmessage Order { string a = 1; }\nmessage Line { }'


def naming(policy: ReplicationPolicy | None = None, exclude: str = "nothing") -> SubjectNaming:
    everything = IncludeExclude("topics", [".*"], [])
    rules = TopicRules("A", "B", policy or DefaultReplicationPolicy(), everything)
    return SubjectNaming(rules, IncludeExclude("sync.schemas.subjects", [".*"], [exclude]), {".": ".", ".x": ".y"})


def version(subject: str, name: str = "Order", space: str = "acme", context: str = ".") -> SchemaVersion:
    return SchemaVersion(Subject(context, subject), 1, 1, json.dumps({"type": "record", "name": name, "namespace": space, "fields": []}))


@pytest.mark.parametrize(
    ("subject", "image"),
    [
        ("orders-value", "A.orders-value"),
        ("orders-key", "A.orders-key"),
        ("a-b-value", "A.a-b-value"),
        ("orders-acme.Order", "A.orders-acme.Order"),
        ("acme.Order", "acme.Order"),
        ("orders-acme.Other", "orders-acme.Other"),
        ("-value", "-value"),
        ("money", "money"),
    ],
)
def test_strategies(subject: str, image: str) -> None:
    found = naming().images([version(subject)])
    assert found == {Subject(".", subject): Subject(".", image)}
    kept = naming(IdentityReplicationPolicy(source_alias="A")).images([version(subject)])
    assert kept == {Subject(".", subject): Subject(".", subject)}


def test_what_is_left_out_says_why() -> None:
    left = [version("B.orders-value"), version("secret"), version("b", context=".z"), version("b", context=".x")]
    found = naming(exclude="secret").images(left)
    assert "cycle" in str(found[Subject(".", "B.orders-value")])
    assert found[Subject(".", "secret")] == "in the property sync.schemas.subjects.exclude"
    assert "sync.schemas.contexts" in str(found[Subject(".z", "b")])
    assert found[Subject(".x", "b")] == Subject(".y", "b")


@pytest.mark.parametrize(
    ("kind", "text", "names"),
    [
        ("AVRO", '{"type": "record", "name": "a.B", "namespace": "c"}', {"a.B"}),
        ("AVRO", '{"type": "record", "name": "B"}', {"B"}),
        ("AVRO", '"string"', set()),
        ("AVRO", "no json", set()),
        ("JSON", '{"title": "Order", "namespace": "acme"}', {"Order"}),
        ("JSON", "true", set()),
        ("PROTOBUF", PROTOBUF, {"acme.shop.Order", "acme.shop.Line"}),
    ],
)
def test_names_of_records(kind: str, text: str, names: set[str]) -> None:
    assert record_names(SchemaVersion(Subject(".", "s"), 1, 1, text, kind)) == names


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.sampled_from(["-key", "-value", "-acme.Order"]))
def test_the_topic_is_what_stands_before_the_ending(topic: str, ending: str) -> None:
    assert topic_of(topic + ending, {"acme.Order"}) == topic
