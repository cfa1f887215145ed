"""What the registry does beside registering: reads, deletions, modes, configs, contexts. No I/O.

A soft deletion hides a version; only what is hidden can be deleted for good. Putting a subject, a context or everything into IMPORT needs
that it has no visible version, and removes the hidden ones for good, unless `force` is given (`setMode` of KafkaSchemaRegistry).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from tests.schemas.double import refusals, registration, subject_names
from tests.schemas.double.content import requested
from tests.schemas.double.settings import FORWARD, IMPORT, MODES, READONLY, READONLY_OVERRIDE, TOP, Config, Scopes
from tests.schemas.double.subject_names import scope_of
from tests.schemas.double.versions import Version, Versions


class Registry:
    """`incompatible` may be set: see `registration`."""

    def __init__(self, scopes: Scopes | None = None) -> None:
        self.versions, self.scopes = Versions(), scopes or Scopes()
        self.incompatible: registration.Incompatible = lambda *_: False
        self.clock = itertools.count(1_700_000_000_000)

    # Reading

    def subjects(self, prefix: str, deleted: bool, deleted_only: bool) -> list[str]:
        """Sorted as text. With `deleted_only`, those of which every version is deleted."""
        gone: dict[str, bool] = {}
        for version in self._with_prefix(prefix):
            gone[version.subject] = gone.get(version.subject, True) and version.deleted
        return sorted(one for one, all_gone in gone.items() if (all_gone if deleted_only else deleted or not all_gone))

    def schemas(self, prefix: str, deleted: bool, latest_only: bool) -> list[Version]:
        found = [one for one in self._with_prefix(prefix) if deleted or not one.deleted]
        if latest_only:
            found = list({one.subject: one for one in found}.values())
        return sorted(found, key=lambda one: (one.subject, one.number))

    def numbers(self, subject: str, deleted: bool, deleted_only: bool) -> list[int]:
        if not self.versions.any_in(subject, deleted or deleted_only):
            raise refusals.subject_not_found(subject)
        return [one.number for one in self.versions.of(subject) if (one.deleted if deleted_only else deleted or not one.deleted)]

    def version(self, subject: str, text: str, deleted: bool) -> Version:
        """`text`: a number, -1 or latest. A subject without context is also looked for in the other contexts."""
        number = version_number(text)
        names = [subject]
        if subject_names.context_of(subject) == subject_names.DEFAULT:
            names += [f":{context}:{subject}" for context in self.versions.contexts]
        for name in names:
            found = self.versions.latest(name) if number == -1 else self.versions.get(name, number)
            if found and (deleted or not found.deleted):
                return found
        if not self.versions.any_in(subject, deleted):
            raise refusals.subject_not_found(subject)
        raise refusals.version_not_found(number)

    def lookup(self, subject: str, body: dict[str, Any], deleted: bool) -> Version:
        found = registration.lookup_inheriting(self.versions, self.scopes, subject, requested(body), deleted)
        if found is None:
            raise (
                refusals.schema_not_found(f"of {subject!r} with this content")
                if self.versions.any_in(subject, deleted)
                else refusals.subject_not_found(subject)
            )
        return found

    def by_id(self, number: int, scope: str | None) -> Version:
        """The schema of an id: in the context of `scope`; a subject without context is also looked for in the other contexts."""
        found = self.versions.by_id(number, scope)
        if found is None and scope and subject_names.context_of(scope) == subject_names.DEFAULT:
            tries = [f":{context}:{scope}" for context in self.versions.contexts] + [None]
            found = next((one for name in tries if (one := self.versions.by_id(number, name))), None)
        if found is None:
            raise refusals.schema_not_found(number)
        return found

    def users_of_id(self, number: int, scope: str | None, deleted: bool) -> list[Version]:
        first = self.by_id(number, scope)
        users = self.versions.with_id(subject_names.context_of(first.subject), number)
        return [one for one in users if deleted or not one.deleted]

    def ids_of_guid(self, guid: str) -> list[tuple[str, int]]:
        contexts = (subject_names.DEFAULT, *self.versions.contexts)
        return sorted((context, number) for context in contexts if (number := self.versions.id_of_guid(guid, context)) is not None)

    def by_guid(self, guid: str) -> Version:
        for context, number in self.ids_of_guid(guid):
            if users := self.versions.with_id(context, number):
                return users[0]
        raise refusals.schema_not_found(guid)

    # Writing

    def register(self, subject: str, body: dict[str, Any], force: bool = False) -> Version:
        """`body` as of POST /subjects/{subject}/versions."""
        if not subject_names.is_valid(subject):
            raise refusals.invalid_subject(subject)
        return registration.register(self.versions, self.scopes, self.incompatible, subject, body, force, next(self.clock))

    def delete_version(self, subject: str, text: str, permanent: bool) -> int:
        number = version_number(text)
        found = self.versions.latest(subject) if number == -1 else self.versions.get(subject, number)
        if found is None:
            there = self.versions.any_in(subject, deleted=True)
            raise refusals.version_not_found(number) if there else refusals.subject_not_found(subject)
        if found.deleted and not permanent:
            raise refusals.version_soft_deleted(subject, number)
        self._check_writable(subject)
        if self.versions.referring(subject, found.number, deleted=permanent):
            raise refusals.referenced(subject, found.number)
        if permanent and not found.deleted:
            raise refusals.version_not_soft_deleted(subject, found.number)
        self._delete([found], permanent)
        return found.number

    def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        if not self.versions.any_in(subject, deleted=True):
            raise refusals.subject_not_found(subject)
        if not permanent and not self.versions.any_in(subject, deleted=False):
            raise refusals.subject_soft_deleted(subject)
        self._check_writable(subject)
        doomed = [one for one in self.versions.of(subject) if permanent or not one.deleted]
        for one in doomed:
            users = [user for key in self.versions.referring(subject, one.number, permanent) for user in self.versions.with_id(*key)]
            if any(user.subject != subject and (permanent or not user.deleted) for user in users):
                raise refusals.referenced(subject, one.number)
            if permanent and not one.deleted:
                raise refusals.subject_not_soft_deleted(subject)
        self._delete(doomed, permanent)
        return [one.number for one in doomed]

    def delete_context(self, context: str) -> None:
        name = subject_names.parsed(context if context.startswith(":") else f":{context}:").context
        if self.versions.any_in(f":{name}:", deleted=True):
            raise refusals.context_not_empty(context)
        if name in self.versions.contexts:
            self.versions.contexts.remove(name)

    def set_mode(self, subject: str | None, mode: str | None, force: bool) -> None:
        scope = scope_of(subject)
        if mode is not None and mode.upper() not in MODES:
            raise refusals.invalid_mode(mode)
        if mode == FORWARD and scope != TOP:
            raise refusals.invalid_mode(mode)
        if mode is None:
            self.scopes.modes.pop(scope, None)
            return
        if mode.upper() == IMPORT and self.scopes.mode(scope) != IMPORT and not force:
            self._empty(scope)
        self.scopes.modes[scope] = mode.upper()

    def delete_mode(self, subject: str | None, recursive: bool) -> str | None:
        scope = scope_of(subject)
        mode = self.scopes.own_mode(scope)
        if mode is None and not recursive:
            raise refusals.subject_not_found(scope)
        self.scopes.modes.pop(scope, None)
        if recursive and (scope is None or not subject_names.parsed(scope).name):
            within = [one for one in self.scopes.modes if one is not None and subject_names.within(one, scope or ":.:")]
            for one in within:
                del self.scopes.modes[one]
        return mode

    def set_config(self, subject: str | None, request: Config) -> Config:
        scope = scope_of(subject)
        if scope is not None and not subject_names.is_valid(scope, for_settings=True):
            raise refusals.invalid_subject(scope)
        self._check_writable(scope)
        return self.scopes.update_config(scope, request)

    def delete_config(self, subject: str | None) -> Config:
        scope = scope_of(subject)
        config = self.scopes.own_config(scope)
        if config is None:
            raise refusals.subject_not_found(scope)
        self._check_writable(scope)
        self.scopes.configs.pop(scope, None)
        return config

    def _with_prefix(self, prefix: str) -> Iterable[Version]:
        context, name = subject_names.parsed(prefix)
        every = context == "*"
        return (
            one
            for one in self.versions.all()
            if (every or subject_names.context_of(one.subject) == context) and subject_names.parsed(one.subject).name.startswith(name)
        )

    def _check_writable(self, scope: str | None) -> None:
        if self.scopes.mode(scope) in (READONLY, READONLY_OVERRIDE):
            raise refusals.not_permitted(f"{scope!r} is read-only")

    def _delete(self, doomed: list[Version], permanent: bool) -> None:
        for one in doomed:
            if permanent:
                self.versions.remove(one)
            else:
                self.versions.soft_delete(one)
        for subject in {one.subject for one in doomed} if permanent else ():
            if not self.versions.of(subject):
                self.scopes.modes.pop(subject, None)
                self.scopes.configs.pop(subject, None)

    def _empty(self, scope: str | None) -> None:
        if self.versions.any_in(scope, deleted=False):
            raise refusals.not_permitted(f"{scope or 'the registry'!r} has subjects, so it cannot be put into mode IMPORT")
        doomed = [one for one in self.versions.all() if subject_names.within(one.subject, scope)]
        for one in doomed:
            if self.versions.referring(one.subject, one.number, deleted=True):
                raise refusals.referenced(one.subject, one.number)
        for one in doomed:
            self.versions.remove(one)


def version_number(text: str) -> int:
    """A positive number, or -1 for the latest. Refused 42202."""
    if text.strip().lower() == "latest":
        return -1
    try:
        number = int(text)
    except ValueError:
        raise refusals.invalid_version(text) from None
    if number < 1 and number != -1:
        raise refusals.invalid_version(text)
    return number
