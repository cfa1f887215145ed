"""The versions that the registry holds, and its indexes: id → subjects and content → id, in each context for itself.

The indexes behave as those of InMemoryCache: an id knows one version of a subject, the one that was written last; and what is deleted for
good stays in the index of contents, but no id leads to it, so the same content then gets another id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.schemas.double.content import Content
from tests.schemas.double.subject_names import beside, context_of, parsed, within


@dataclass(frozen=True)
class Version:
    """`written`: milliseconds, as the registry's `ts`."""

    subject: str
    number: int
    id: int
    content: Content
    deleted: bool = False
    written: int = 0


class Versions:
    def __init__(self) -> None:
        self.contexts: list[str] = []
        self._subjects: dict[str, dict[int, Version]] = {}
        self._subjects_by_id: dict[str, dict[int, dict[str, int]]] = defaultdict(dict)
        self._ids_by_guid: dict[str, dict[str, int]] = defaultdict(dict)
        self._referring: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
        self._highest: dict[str, int] = defaultdict(int)

    def get(self, subject: str, number: int) -> Version | None:
        return self._subjects.get(subject, {}).get(number)

    def of(self, subject: str) -> list[Version]:
        """All versions of a subject, also deleted ones, oldest first."""
        return [version for _, version in sorted(self._subjects.get(subject, {}).items())]

    def all(self) -> Iterator[Version]:
        """By context, subject and version, as the registry lists them."""
        for subject in sorted(self._subjects, key=parsed):
            yield from self.of(subject)

    def latest(self, subject: str) -> Version | None:
        return max((one for one in self._subjects.get(subject, {}).values() if not one.deleted), key=lambda one: one.number, default=None)

    def any_in(self, scope: str | None, deleted: bool) -> bool:
        """Whether `scope` (a subject, a context, or None for all) has a version; with `deleted`, also a deleted one."""
        if scope in self._subjects and any(deleted or not one.deleted for one in self.of(scope)):
            return True
        if scope is not None and parsed(scope).name:
            return False
        return any(within(subject, scope) and any(deleted or not one.deleted for one in self.of(subject)) for subject in self._subjects)

    def by_id(self, number: int, scope: str | None) -> Version | None:
        """What an id means in a context or to a subject."""
        subjects = self._subjects_by_id[context_of(scope)].get(number, {})
        if not subjects:
            return None
        if not parsed(scope or "").name:
            subject, version = next(iter(subjects.items()))
            return self.get(subject, version)
        return self.get(scope, subjects[scope]) if scope in subjects else None

    def same_content(self, subject: str, content: Content) -> tuple[int, dict[str, int]] | None:
        """The id of a content in the context of a subject, and the version of each subject that has it."""
        context = context_of(subject)
        number = self._ids_by_guid[context].get(content.guid)
        subjects = self._subjects_by_id[context].get(number, {}) if number is not None else {}
        return (number, subjects) if number is not None and subjects else None

    def id_of_guid(self, guid: str, context: str) -> int | None:
        return self._ids_by_guid[context].get(guid)

    def referring(self, subject: str, number: int, deleted: bool) -> list[tuple[str, int]]:
        """Context and id of the schemas that reference a version; with `deleted`, also of deleted ones."""
        found = sorted(self._referring.get((subject, number), ()))
        return found if deleted else [one for one in found if any(not version.deleted for version in self.with_id(*one))]

    def with_id(self, context: str, number: int) -> list[Version]:
        subjects = self._subjects_by_id[context].get(number, {})
        return [found for subject, version in subjects.items() if (found := self.get(subject, version))]

    def free_id(self, context: str) -> int:
        return self._highest[context] + 1

    def put(self, version: Version) -> Version:
        """Write a version; one that is there under its number is lost, as in the registry."""
        context = context_of(version.subject)
        if context not in (".", *self.contexts):
            self.contexts.append(context)
        if (old := self.get(version.subject, version.number)) and old.id != version.id:
            self.remove(old)
        self._subjects.setdefault(version.subject, {})[version.number] = version
        self._subjects_by_id[context].setdefault(version.id, {})[version.subject] = version.number
        self._ids_by_guid[context][version.content.guid] = version.id
        self._highest[context] = max(self._highest[context], version.id)
        for reference in version.content.references:
            self._referring[beside(version.subject, reference.subject), reference.version].add((context, version.id))
        return version

    def soft_delete(self, version: Version) -> None:
        self.put(replace(version, deleted=True))

    def remove(self, version: Version) -> None:
        context = context_of(version.subject)
        self._subjects[version.subject].pop(version.number)
        if not self._subjects[version.subject]:
            del self._subjects[version.subject]
        subjects = self._subjects_by_id[context].get(version.id, {})
        if subjects.get(version.subject) == version.number:
            del subjects[version.subject]
        if not subjects:
            self._subjects_by_id[context].pop(version.id, None)
        for reference in version.content.references:
            self._referring[beside(version.subject, reference.subject), reference.version].discard((context, version.id))
