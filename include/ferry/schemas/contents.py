"""What a registry holds: versions of subjects with their schemas, and the settings of subjects (pure).

A subject is named without its context. A name with context is written `:.context:subject`, and `.` is the default context, whose subjects
need no prefix. Metadata and rules are kept as JSON in one spelling: without fields that are empty, because releases differ in whether they
leave these out. Two texts are one schema if they say the same (`canonical`): registries differ in blanks, and in the order of JSON's names.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

DEFAULT_CONTEXT = "."
_QUALIFIED = re.compile(r":(\.[^:]*):(.*)", re.DOTALL)
# What decides how a schema is read, beside its text. A registry may know more, for example when it was registered.
_METADATA, _RULES = "metadata", "ruleSet"
LEVEL, LEVEL_READ = "compatibility", "compatibilityLevel"  # one setting: as it is written, and as it is read


class Subject(NamedTuple):
    context: str
    name: str

    @classmethod
    def parse(cls, text: str, context: str = DEFAULT_CONTEXT) -> Self:
        """`context`: of a name that says none."""
        found = _QUALIFIED.fullmatch(text)
        return cls(found[1], found[2]) if found else cls(context, text)

    def __str__(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT and not self.name.startswith(":") else f":{self.context}:{self.name}"


class VersionKey(NamedTuple):
    subject: Subject
    version: int

    def __str__(self) -> str:
        return f"subject {self.subject} version {self.version}"


@dataclass(frozen=True)
class Reference:
    """A schema imports another one under `name`."""

    name: str
    key: VersionKey


@dataclass(frozen=True)
class SchemaVersion:
    """One version of a subject. `metadata` and `rules`: JSON as of `settled`; empty: there are none."""

    subject: Subject
    version: int
    id: int
    text: str
    type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: str = ""
    rules: str = ""
    deleted: bool = False
    guid: str = ""  # of the content; older registries do not say it

    @property
    def key(self) -> VersionKey:
        return VersionKey(self.subject, self.version)

    def referring(self, keys: Mapping[VersionKey, VersionKey]) -> Self:
        """The version with other numbers of the versions that it refers to."""
        return replace(self, references=tuple(Reference(one.name, keys.get(one.key, one.key)) for one in self.references))

    def differences(self, other: Self) -> list[str]:
        """In which parts of their content two versions differ; `deleted` and `guid` are none of them."""
        parts = [name for name in ("id", "type", "references", "metadata", "rules") if getattr(self, name) != getattr(other, name)]
        same_text = self.text == other.text or canonical(self.type, self.text) == canonical(other.type, other.text)
        return parts if same_text else [*parts, "text"]

    def means(self, other: Self) -> bool:
        """Whether both are one schema, so that they may have one id in a context."""
        return not [part for part in self.differences(other) if part != "id"]


def decode_version(document: Mapping[str, Any], *, deleted: bool = False) -> SchemaVersion:
    """A version from a registry's answer. KeyError, TypeError or ValueError if the answer does not say which version this is."""
    subject = Subject.parse(str(document["subject"]))
    references = tuple(
        Reference(str(one["name"]), VersionKey(Subject.parse(str(one["subject"]), subject.context), int(one["version"])))
        for one in document.get("references") or ()
    )
    version, number, text = int(document["version"]), int(document["id"]), document["schema"]
    if not isinstance(text, str):
        raise TypeError("schema is no text")
    kind = str(document.get("schemaType") or "AVRO")
    more = settled(document.get(_METADATA)), settled(document.get(_RULES))
    return SchemaVersion(subject, version, number, text, kind, references, *more, deleted=deleted, guid=str(document.get("guid") or ""))


def encode_version(wanted: SchemaVersion) -> dict[str, Any]:
    """The body of a registration with id and version."""
    body: dict[str, Any] = {"schema": wanted.text, "schemaType": wanted.type, "id": wanted.id, "version": wanted.version}
    if wanted.references:
        body["references"] = [
            {"name": one.name, "subject": _within(wanted.subject, one.key.subject), "version": one.key.version} for one in wanted.references
        ]
    return body | {name: json.loads(text) for name, text in ((_METADATA, wanted.metadata), (_RULES, wanted.rules)) if text}


def answered_otherwise(wanted: SchemaVersion, answer: Mapping[str, Any]) -> list[str]:
    """In which parts the answer to a registration differs from what was asked for. Releases before 8 answer the id alone."""
    if "schema" not in answer:
        return [name for name in ("id", "version") if answer.get(name, None if name == "id" else wanted.version) != getattr(wanted, name)]
    try:
        got = decode_version({"subject": str(wanted.subject), "version": wanted.version, **answer})
    except (KeyError, TypeError, ValueError):
        return ["id"]
    return wanted.differences(got) + (["version"] if got.version != wanted.version else [])


def _within(subject: Subject, other: Subject) -> str:
    """The name of `other` as a schema of `subject` refers to it: without a context if it is the same."""
    return other.name if other.context == subject.context else f":{other.context}:{other.name}"


@lru_cache(1 << 14)
def canonical(kind: str, text: str) -> str:
    """One spelling of a text: for Avro and JSON without blanks and with sorted names, for others with single blanks."""
    if kind != "PROTOBUF":
        try:
            return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        except ValueError:
            pass
    return " ".join(text.split())


def settled(document: Any) -> str:
    """A JSON value in one spelling, without names whose values are empty; empty if nothing is left."""
    found = _without_empty(document)
    return "" if found is None else json.dumps(found, sort_keys=True, separators=(",", ":"))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: left for name, inner in value.items() if (left := _without_empty(inner)) is not None}
        return kept or None
    if isinstance(value, list):
        return [_without_empty(inner) for inner in value] or None
    return value


@dataclass(frozen=True)
class Levels:
    """What is set for a subject itself, or for a context: its config as JSON, and its mode. Empty: it is not set there."""

    config: str = ""
    mode: str = ""

    @property
    def compatibility(self) -> str:
        return str(json.loads(self.config).get(LEVEL, "")) if self.config else ""


NOTHING_SET = Levels()


def decode_config(document: Mapping[str, Any]) -> str:
    """A config as it is written: a registry names the level otherwise when it is read."""
    given = dict(document)
    if LEVEL_READ in given:
        given[LEVEL] = given.pop(LEVEL_READ)
    return settled(given)
