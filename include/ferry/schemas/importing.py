"""Writes what a plan says to the target's registry, in stages, each of which a kill may end.

The modes of the subjects that change are written down in Ferry's state; the subjects are opened (IMPORT); versions are registered, then
deleted; configs are set; the subjects are closed, which gives them the modes that they shall have; the record is forgotten. So at every
moment a subject has its mode, or a record says which. After an error Ferry closes at once, after a kill the next sync does.

Each answer to a registration is compared with what was asked for. The first one is also read back before any other is sent: a registry can
accept the mode IMPORT and ignore it.
"""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from ferry.errors import FerryError, IdsNotKept, RegistryUnreachable, SchemasRefused
from ferry.schemas.at_once import at_once
from ferry.schemas.comparing import Comparison
from ferry.schemas.contents import SchemaVersion, Subject, VersionKey, answered_otherwise, decode_version, encode_version
from ferry.schemas.inventory import scope_path
from ferry.schemas.plan import IMPORT, READWRITE, LevelChange
from ferry.schemas.registry import SchemaRegistry, path_of


class Import:
    """One import. `write_down`, `forget`: keep the modes that subjects had, and drop them. `recorded`: those of a killed sync."""

    def __init__(
        self,
        target: SchemaRegistry,
        write_down: Callable[[Mapping[Subject, str]], None],
        forget: Callable[[Collection[Subject]], None],
        recorded: Mapping[Subject, str],
    ) -> None:
        self._target, self._write_down, self._forget = target, write_down, forget
        self._recorded = dict(recorded)
        self._mode = IMPORT
        # The numbers that versions have on the target, if it gives its own; and the versions whose numbers others need.
        self._numbers, self._asked = dict[VersionKey, VersionKey](), frozenset[VersionKey]()

    def carry_out(self, found: Comparison) -> None:
        """All stages. FerryError; then the subjects have their modes again, if the registry still answers."""
        if found.plan.equal is not None:
            self._mode, self._numbers = READWRITE, {key: one.key for key, one in found.plan.equal.items()}
            self._asked = found.plan.numbers_needed
        closed = sorted(subject for subject in found.touched if found.mode_of(subject) != self._mode)
        fresh = {subject: found.own.get(subject, "") for subject in closed if subject not in self._recorded}
        if fresh:
            self._write_down(fresh)
        self._recorded |= fresh
        modes = {change.subject: change.mode for change in found.levels if change.mode is not None}
        try:
            at_once(self._open, closed)
            self._register(found)
            at_once(self._set_config, [change for change in found.levels if change.config is not None])
        except FerryError:
            with suppress(FerryError):
                self.close()
            raise
        self.close(modes)

    def _open(self, subject: Subject) -> None:
        try:
            self._target.ask("PUT", scope_path("mode", subject), {"mode": self._mode}, query={"force": "true"})
        except SchemasRefused as problem:
            if self._mode != IMPORT:
                raise
            raise IdsNotKept(f"{problem}: without the mode IMPORT this registry gives ids of its own") from problem

    def _register(self, found: Comparison) -> None:
        waves = list(found.plan.waves)
        if waves and self._mode == IMPORT:
            self._register_first(waves[0][0])
            waves[0] = waves[0][1:]
        for wave in waves:
            at_once(self._register_one, wave)
        # Of a content that was deleted and came again, a target with numbers of its own has one version: it stays.
        live = {self._numbers.get(key, key) for key, version in found.plan.wanted.items() if not version.deleted}
        for version in found.plan.delete:
            number = self._numbers.get(version.key, version.key)
            if number not in live:
                self._target.ask("DELETE", path_of("subjects", version.subject, "versions", number.version), missing=True)

    def _register_one(self, version: SchemaVersion) -> None:
        path = path_of("subjects", version.subject, "versions")
        body = encode_version(version.referring(self._numbers))
        if self._mode != IMPORT:
            del body["id"], body["version"]
        answer = self._target.ask("POST", path, body)
        if not isinstance(answer, Mapping):
            raise RegistryUnreachable(f"{self._target.login.where}: POST {path} answers no id")
        if self._mode != IMPORT:
            if version.key in self._asked:  # releases before 8 answer the id alone
                there = self._target.ask("POST", path_of("subjects", version.subject), body)
                self._numbers[version.key] = VersionKey(version.subject, int(there["version"]))
        elif parts := answered_otherwise(version, answer):
            raise self._not_kept(version, parts, answer.get("id"), answer.get("version"))

    def _register_first(self, version: SchemaVersion) -> None:
        """Register one version and read it back. If it is another one there, delete what was registered."""
        path = path_of("subjects", version.subject, "versions")
        before = set(self._target.find(path, deleted="true") or ())
        try:
            self._register_one(version)
            back = self._target.find(f"{path}/{version.version}", deleted="true")
            if back is None or (parts := version.differences(decode_version(back))):
                raise self._not_kept(version, parts if back else ["version"], (back or {}).get("id"), (back or {}).get("version"))
        except IdsNotKept:
            with suppress(FerryError):
                new = sorted(set(self._target.find(path, deleted="true") or ()) - before)
                # Apicurio forgets a subject that is new only as a whole.
                for gone in [f"{path}/{number}" for number in new] if before else [path_of("subjects", version.subject)]:
                    for query in ({}, {"permanent": "true"}):
                        self._target.ask("DELETE", gone, query=query, missing=True)
            raise

    def _not_kept(self, version: SchemaVersion, parts: Collection[str], number: object, place: object) -> IdsNotKept:
        what = f"{self._target.login.where}: {version.key} with id {version.id} was registered"
        got = f"it has id {number}" + (f" and version {place}" if place is not None else "")
        return IdsNotKept(f"{what}, and {got}: {', '.join(parts)} differ. No record was copied")

    def _set_config(self, change: LevelChange) -> None:
        self._target.ask("PUT", scope_path("config", change.subject), json.loads(change.config or "{}"))

    def close(self, modes: Mapping[Subject, str] | None = None) -> None:
        """Give the subjects their modes: `modes` where it has some, otherwise those that they had before they were opened."""
        wanted = self._recorded | dict(modes or {})
        at_once(lambda subject: self._set_mode(subject, wanted[subject]), sorted(wanted))
        if self._recorded:
            self._forget(list(self._recorded))
        self._recorded = {}

    def _set_mode(self, subject: Subject, mode: str) -> None:
        path = scope_path("mode", subject)
        if mode:
            self._target.ask("PUT", path, {"mode": mode}, query={"force": "true"})
        else:
            self._target.ask("DELETE", path, missing=True)
