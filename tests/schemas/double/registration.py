"""Registering and looking up a schema: `registerOrForward`, `register` and `lookUpSchemaUnderSubject` of confluentinc/schema-registry.

- A schema that the subject has already is answered as it is, before the mode is looked at: also in READONLY.
- An id in the request needs IMPORT (or FORWARD, which ignores it), no id needs READWRITE. In READWRITE a version must be the next one.
- In IMPORT nothing is checked but references and ids: an id that means another content in this context is refused, a version that is
  there is overwritten, and nothing is inherited. In READWRITE, metadata and rules that the request leaves out come from the last version.
- A deleted version with the same id and a lower number is removed for good, if nothing references it.

Compatibility is not computed: `incompatible` of the double decides, and is not asked where the level in force is NONE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.schemas.double import refusals
from tests.schemas.double.content import Content, Settings, requested
from tests.schemas.double.settings import FORWARD, IMPORT, READONLY, READONLY_OVERRIDE, READWRITE, Config, Scopes, has_defaults
from tests.schemas.double.subject_names import beside, context_of
from tests.schemas.double.versions import Version, Versions

# Subject, the new content, and the versions that are there, oldest first.
Incompatible = Callable[[str, Content, list[Version]], bool]
_FREE, _LATEST = 0, -1


def lookup(versions: Versions, subject: str, content: Content | None, deleted: bool, latest_only: bool = False) -> Version | None:
    """The newest version of a subject with this content."""
    if content is None:
        return None
    resolve(versions, subject, content)
    candidates = [one for one in (versions.of(subject)) if deleted or not one.deleted]
    if latest_only:
        candidates = [one for one in [versions.latest(subject)] if one]
    wanted = pinned(versions, subject, content)
    return next((one for one in reversed(candidates) if pinned(versions, subject, one.content) == wanted), None)


def lookup_inheriting(versions: Versions, scopes: Scopes, subject: str, content: Content | None, deleted: bool) -> Version | None:
    """As `lookup`; if nothing is found, with what the content would inherit if it were registered now."""
    found, previous = lookup(versions, subject, content, deleted), versions.latest(subject)
    if found or content is None or previous is None:
        return found
    return lookup(versions, subject, inherited(content, previous, scopes.config(subject), None), deleted)


def register(
    versions: Versions, scopes: Scopes, incompatible: Incompatible, subject: str, request: Settings, force: bool, written: int
) -> Version:
    """The version that the registry then has for this content; `written` is its time if it is new. Refused."""
    content, number, schema_id = requested(request), request.get("version") or _FREE, request.get("id")
    schema_id = None if schema_id is None or schema_id < 0 else schema_id
    config, mode = scopes.config(subject), scopes.mode(subject)
    if not has_defaults(config) and (found := _registered(versions, subject, content, number, schema_id)):
        return found
    _check_mode(subject, mode, schema_id)
    live = [one for one in versions.of(subject) if not one.deleted]
    if mode == READWRITE:
        content = inherited(content, live[-1] if live else None, config, _next(versions, subject) if number != _FREE else None)
    if content is None:
        raise refusals.invalid_schema("it is empty")
    resolve(versions, subject, content)
    content = pinned(versions, subject, content)
    schema_id = schema_id if mode == IMPORT else None
    if (same := versions.same_content(subject, content)) and schema_id in (None, same[0]):
        schema_id = same[0]
        there = versions.get(subject, same[1].get(subject, 0))
        if number == _FREE and there and not there.deleted:
            return there
    if mode == READWRITE and not force and config["compatibilityLevel"] != "NONE" and live and incompatible(subject, content, live):
        raise refusals.incompatible(subject)
    return _write(versions, Version(subject, number, -1, content, written=written), schema_id, mode)


def resolve(versions: Versions, subject: str, content: Content) -> None:
    """Every reference leads to a version that is there, if only deleted. Refused 42201."""
    for reference in content.references:
        target = beside(subject, reference.subject)
        found = versions.latest(target) if reference.version == _LATEST else versions.get(target, reference.version)
        if found is None:
            raise refusals.invalid_schema(f"it references version {reference.version} of {target!r}, which is not there")


def pinned(versions: Versions, subject: str, content: Content) -> Content:
    """The content with the number of the latest version in place of -1."""
    references = [
        replace(one, version=latest.number) if one.version == _LATEST and (latest := versions.latest(beside(subject, one.subject))) else one
        for one in content.references
    ]
    return replace(content, references=tuple(references))


def inherited(content: Content | None, previous: Version | None, config: Config, number: int | None) -> Content | None:
    """What READWRITE adds: metadata and rules of the last version, then the config's defaults and overrides."""
    old = previous.content if previous else None
    if content is None:
        return old
    metadata = _merged(config, "Metadata", content.metadata or (old and old.metadata))
    rule_set = _merged(config, "RuleSet", content.rule_set or (old and old.rule_set))
    if number is not None:
        metadata = {**(metadata or {}), "properties": {**((metadata or {}).get("properties") or {}), "confluent:version": str(number)}}
    return replace(content, metadata=metadata, rule_set=rule_set)


def _merged(config: Config, what: str, own: Settings | None) -> dict[str, Any] | None:
    """Groups of the later parts win; a real registry merges inside the groups of rules too."""
    merged: dict[str, Any] = {}
    for part in (config.get(f"default{what}"), own, config.get(f"override{what}")):
        for group, value in (part or {}).items():
            there = merged.get(group)
            merged[group] = {**there, **value} if isinstance(there, dict) and isinstance(value, dict) else value
    return merged or None


def _registered(versions: Versions, subject: str, content: Content | None, number: int, schema_id: int | None) -> Version | None:
    found = lookup(versions, subject, content, deleted=False, latest_only=number == _LATEST)
    if found is None or schema_id not in (None, found.id):
        return None
    if number in (_FREE, _LATEST, found.number):
        return found if number in (_FREE, _LATEST) or schema_id is not None else None
    older = versions.get(subject, number)
    same = older is not None and not older.deleted and (older.id, older.content.guid) == (found.id, found.content.guid)
    return older if same and schema_id is not None else None


def _check_mode(subject: str, mode: str, schema_id: int | None) -> None:
    if mode in (READONLY, READONLY_OVERRIDE):
        raise refusals.not_permitted(f"{subject!r} is read-only")
    if schema_id is not None and mode not in (IMPORT, FORWARD):
        raise refusals.not_permitted(f"{subject!r} is not in mode IMPORT")
    if schema_id is None and mode != READWRITE:
        raise refusals.not_permitted(f"{subject!r} is not in mode READWRITE")


def _next(versions: Versions, subject: str) -> int:
    return max((one.number for one in versions.of(subject)), default=0) + 1


def _write(versions: Versions, wanted: Version, schema_id: int | None, mode: str) -> Version:
    subject, following = wanted.subject, _next(versions, wanted.subject)
    if wanted.number > 0 and wanted.number != following and mode == READWRITE:
        raise refusals.invalid_schema(f"version {wanted.number} does not follow the last one")
    context = context_of(subject)
    if schema_id is not None and (meaning := versions.with_id(context, schema_id)) and meaning[0].content != wanted.content:
        raise refusals.not_permitted(f"id {schema_id} is another schema in context {context!r}")
    number = wanted.number if wanted.number > 0 else following
    final = replace(wanted, number=number, id=versions.free_id(context) if schema_id is None else schema_id)
    for old in versions.of(subject):
        if old.deleted and old.id == final.id and old.number < final.number and not versions.referring(subject, old.number, deleted=True):
            versions.remove(old)
    return versions.put(final)
