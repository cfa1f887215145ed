"""What a schema says: its type, text, references, metadata and rule set.

Two texts of Avro or JSON Schema are equal if their JSON is; two texts of Protobuf if they are. A real registry parses more: it also finds
Protobuf with other white space, and an Avro schema that has the text of its references in itself. As there, JSON is stored in one line.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.schemas.double import refusals

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TYPES = (AVRO, JSON, PROTOBUF)
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_RULE_FIELDS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """`version` -1 is the latest one."""

    name: str
    subject: str
    version: int

    @property
    def shape(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True)
class Content:
    type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Settings | None = None
    rule_set: Settings | None = None

    @property
    def guid(self) -> str:
        """The MD5 of all of it, so two registries give one content one GUID (MD5.ofSchema). The type is not in it."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            digest.update(reference.name.encode() + reference.subject.encode() + reference.version.to_bytes(4, "big", signed=True))
        if self.metadata is not None:
            digest.update(b"\x01" + b"".join(_metadata_bytes(self.metadata)))
        if self.rule_set is not None:
            digest.update(b"\x01" + b"".join(_rule_set_bytes(self.rule_set)))
        return str(uuid.UUID(bytes=digest.digest()))


def requested(body: Settings) -> Content | None:
    """The content of a request; None without a text. Refused 42201."""
    text, kind = body.get("schema") or "", body.get("schemaType") or AVRO
    if not text.strip():
        return None
    if kind not in TYPES:
        raise refusals.invalid_schema(f"type {kind}")
    references = tuple(_reference(one) for one in body.get("references") or ())
    return Content(kind, _canonical(kind, text), references, body.get("metadata") or None, body.get("ruleSet") or None)


def _reference(one: Settings) -> Reference:
    if not all(one.get(key) is not None for key in ("name", "subject", "version")):
        raise refusals.invalid_schema("a reference needs a name, a subject and a version")
    return Reference(one["name"], one["subject"], one["version"])


def _canonical(kind: str, text: str) -> str:
    if kind == PROTOBUF:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        if kind == AVRO and text.strip() in _PRIMITIVES:
            return json.dumps(text.strip())
        raise refusals.invalid_schema(f"{kind} that is no JSON") from None
    if kind == AVRO:
        if isinstance(value, dict) and "type" not in value:
            raise refusals.invalid_schema("Avro without a type")
        if isinstance(value, dict) and set(value) == {"type"} and value["type"] in _PRIMITIVES:
            value = value["type"]
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _metadata_bytes(metadata: Settings) -> Iterable[bytes]:
    for tag, values in sorted((metadata.get("tags") or {}).items()):
        yield from (tag.encode(), *(value.encode() for value in sorted(values)))
    for key, value in sorted((metadata.get("properties") or {}).items()):
        yield from (key.encode(), value.encode())
    yield from (key.encode() for key in sorted(metadata.get("sensitive") or ()))


def _rule_set_bytes(rule_set: Settings) -> Iterable[bytes]:
    for group in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(group) or ():
            for field in _RULE_FIELDS:
                yield from _rule_bytes(rule.get(field))
    yield from _rule_bytes(rule_set.get("enableAt"))


def _rule_bytes(value: Any) -> Iterable[bytes]:
    if isinstance(value, bool):
        return (b"\x01",) if value else ()
    if isinstance(value, str):
        return (value.encode(),)
    if isinstance(value, Mapping):
        return [part.encode() for pair in sorted(value.items()) for part in pair]
    return [part.encode() for part in sorted(value or ())]
