"""The paths of the REST API: each with its method, and what it asks of the registry.

A page is at most as long as the server's limit; a limit that is larger, or none, gives the default (`normalizeLimit`). A context before
the path (`/contexts/.eu/subjects/…`) is put before subjects, prefixes and ids. An alias stands for the subject that its config names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.schemas.double import refusals
from tests.schemas.double.answers import Answers
from tests.schemas.double.content import TYPES, requested
from tests.schemas.double.registry import Registry, version_number
from tests.schemas.double.subject_names import EVERYWHERE, beside, in_context, parsed, scope_of

Query = Mapping[str, str]
_NO_BODY = object()


@dataclass
class Api:
    """`exporters` and `keks`: names that this registry has, which Confluent's paid parts serve; None: it has no such part."""

    registry: Registry
    answers: Answers = field(default_factory=Answers)
    page: int = 1000
    exporters: Sequence[str] | None = None
    keks: Sequence[str] | None = None


@dataclass(frozen=True)
class Call:
    api: Api
    path: Sequence[str]
    query: Query
    body: dict[str, Any]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def page(self, found: Sequence[Any], largest: int = 2**31 - 1) -> list[Any]:
        limit, offset = int(self.query.get("limit", "-1")), int(self.query.get("offset", "0"))
        limit = limit if 0 < limit <= largest else largest
        return list(found[offset : offset + limit])


Handler = Callable[[Call], Any]


class Text(str):
    """An answer that is the schema's text itself."""

    __slots__ = ()


@dataclass(frozen=True)
class Route:
    method: str
    template: str
    handler: Handler

    def match(self, method: str, path: str) -> list[str] | None:
        found = re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", self.template), path)
        return [unquote(part) for part in found.groups()] if found and method == self.method else None


def find(method: str, path: str) -> tuple[Route, list[str]]:
    """The route of a path without its context, and the values in it. Refused 404 and 405, as the server itself says."""
    for route in ROUTES:
        if (values := route.match(method, path)) is not None:
            return route, values
    others = any(route.match(route.method, path) is not None for route in ROUTES)
    raise refusals.Refused(405, "HTTP 405 Method Not Allowed") if others else refusals.Refused(404, "HTTP 404 Not Found")


def without_context(path: str, query: Query) -> tuple[str, dict[str, str]]:
    """Path and query with the context of the path put where it belongs (ContextFilter)."""
    found = re.fullmatch(r"/contexts/([^/]+)(/.+)", path)
    if not found:
        return path, dict(query)
    context, rest, changed = unquote(found[1]), found[2], dict(query)
    parts = rest.strip("/").split("/")
    if parts[0] in ("subjects", "config", "mode") and len(parts) > 1:
        parts[1] = in_context(context, unquote(parts[1]))
    elif parts[0] in ("config", "mode"):
        parts.append(in_context(context, ""))
    elif parts[:2] == ["schemas", "ids"]:
        changed["subject"] = in_context(context, changed.get("subject", ""))
    elif parts[0] in ("subjects", "schemas"):
        changed["subjectPrefix"] = in_context(context, changed.get("subjectPrefix", ""))
    return "/" + "/".join(part for part in parts if part), changed


def _subject(call: Call) -> str:
    """The subject of the path, or the one that it is an alias of; `:.:a` is `a`."""
    subject = parsed(call.path[0]).text
    alias = (call.api.registry.scopes.configs.get(subject) or {}).get("alias")
    return beside(subject, alias) if alias else subject


def _scope(call: Call) -> str | None:
    return call.path[0] if call.path else None


def _id(call: Call) -> int:
    if not call.path[0].lstrip("-").isdigit():
        raise refusals.Refused(404, "HTTP 404 Not Found")
    return int(call.path[0])


def _subjects(call: Call) -> Any:
    return call.page(
        call.api.registry.subjects(call.query.get("subjectPrefix", EVERYWHERE), call.flag("deleted"), call.flag("deletedOnly"))
    )


def _schemas(call: Call) -> Any:
    found = call.api.registry.schemas(call.query.get("subjectPrefix", ""), call.flag("deleted"), call.flag("latestOnly"))
    return [call.api.answers.version(one) for one in call.page(found, call.api.page)]


def _version(call: Call) -> Any:
    return call.api.answers.version(call.api.registry.version(_subject(call), call.path[1], call.flag("deleted")))


def _versions(call: Call) -> Any:
    return call.page(call.api.registry.numbers(_subject(call), call.flag("deleted"), call.flag("deletedOnly")))


def _referenced_by(call: Call) -> Any:
    one = call.api.registry.version(_subject(call), call.path[1], deleted=True)
    return call.page([number for _, number in call.api.registry.versions.referring(one.subject, one.number, call.flag("deleted"))])


def _register(call: Call) -> Any:
    return call.api.answers.registered(call.api.registry.register(_subject(call), call.body, call.flag("force")))


def _lookup(call: Call) -> Any:
    return call.api.answers.found(call.api.registry.lookup(_subject(call), call.body, call.flag("deleted")))


def _of_id(call: Call) -> Any:
    return call.api.answers.of_id(call.api.registry.by_id(_id(call), call.query.get("subject")), "subject" in call.query)


def _users(call: Call) -> Any:
    return call.api.registry.users_of_id(_id(call), call.query.get("subject"), call.flag("deleted"))


def _guid(call: Call) -> Any:
    if call.api.answers.before_8:
        raise refusals.Refused(404, "HTTP 404 Not Found")
    return call.api.answers.of_id(call.api.registry.by_guid(call.path[0]), with_subject=False)


def _get_mode(call: Call) -> Any:
    scopes, scope = call.api.registry.scopes, _own_scope(call)
    mode = scopes.mode(scope) if call.flag("defaultToGlobal") else scopes.own_mode(scope)
    if mode is None:
        raise refusals.mode_not_set(str(scope))
    return {"mode": mode}


def _own_scope(call: Call) -> str | None:
    return scope_of(_scope(call))


def _set_mode(call: Call) -> Any:
    call.api.registry.set_mode(_scope(call), call.body.get("mode"), call.flag("force"))
    return {"mode": call.body.get("mode")}


def _get_config(call: Call) -> Any:
    scopes, scope = call.api.registry.scopes, _own_scope(call)
    config = scopes.config(scope) if call.flag("defaultToGlobal") else scopes.own_config(scope)
    if config is None:
        raise refusals.config_not_set(str(scope))
    return config


def _compatibility(call: Call) -> Any:
    subject, content = _subject(call), requested(call.body)
    registry = call.api.registry
    there = [one for one in registry.versions.of(subject) if not one.deleted]
    if len(call.path) > 1 and version_number(call.path[1]) != -1:
        there = [registry.version(subject, call.path[1], deleted=False)]
    level = registry.scopes.config(subject)["compatibilityLevel"]
    good = content is not None and (level == "NONE" or not there or not registry.incompatible(subject, content, there))
    return {"is_compatible": good}


def _named(names: Callable[[Api], Sequence[str] | None]) -> Handler:
    def handler(call: Call) -> Any:
        found = names(call.api)
        if found is None:
            raise refusals.Refused(404, "HTTP 404 Not Found")
        return list(found)

    return handler


def _delete_context(call: Call) -> Any:
    call.api.registry.delete_context(call.path[0])
    return _NO_BODY


def is_empty(answer: object) -> bool:
    """Whether an answer is 204."""
    return answer is _NO_BODY


def _settings(template: str) -> list[Route]:
    return [
        Route("GET", f"/mode{template}", _get_mode),
        Route("PUT", f"/mode{template}", _set_mode),
        Route("DELETE", f"/mode{template}", lambda call: {"mode": call.api.registry.delete_mode(_scope(call), call.flag("recursive"))}),
        Route("GET", f"/config{template}", _get_config),
        Route("PUT", f"/config{template}", lambda call: call.api.registry.set_config(_scope(call), call.body)),
        Route("DELETE", f"/config{template}", lambda call: call.api.registry.delete_config(_scope(call))),
    ]


ROUTES = [
    Route("GET", "/", lambda _: {}),
    Route("GET", "/subjects", _subjects),
    Route("POST", "/subjects/{subject}", _lookup),
    Route("DELETE", "/subjects/{subject}", lambda call: call.api.registry.delete_subject(_subject(call), call.flag("permanent"))),
    Route("GET", "/subjects/{subject}/versions", _versions),
    Route("POST", "/subjects/{subject}/versions", _register),
    Route("GET", "/subjects/{subject}/versions/{version}", _version),
    Route("GET", "/subjects/{subject}/versions/{version}/schema", lambda call: Text(_version(call)["schema"])),
    Route("GET", "/subjects/{subject}/versions/{version}/referencedby", _referenced_by),
    Route(
        "DELETE",
        "/subjects/{subject}/versions/{version}",
        lambda call: call.api.registry.delete_version(_subject(call), call.path[1], call.flag("permanent")),
    ),
    Route("GET", "/schemas", _schemas),
    Route("GET", "/schemas/types", lambda _: sorted(TYPES)),
    Route("GET", "/schemas/ids/{id}", _of_id),
    Route("GET", "/schemas/ids/{id}/schema", lambda call: Text(_of_id(call)["schema"])),
    Route("GET", "/schemas/ids/{id}/subjects", lambda call: call.page([one.subject for one in _users(call)])),
    Route(
        "GET",
        "/schemas/ids/{id}/versions",
        lambda call: call.page([{"subject": one.subject, "version": one.number} for one in _users(call)]),
    ),
    Route("GET", "/schemas/guids/{guid}", _guid),
    Route(
        "GET",
        "/schemas/guids/{guid}/ids",
        lambda call: [{"context": context, "id": number} for context, number in call.api.registry.ids_of_guid(call.path[0])],
    ),
    Route("GET", "/contexts", lambda call: call.page([".", *sorted(call.api.registry.versions.contexts)])),
    Route("DELETE", "/contexts/{context}", _delete_context),
    Route("POST", "/compatibility/subjects/{subject}/versions", _compatibility),
    Route("POST", "/compatibility/subjects/{subject}/versions/{version}", _compatibility),
    *_settings(""),
    *_settings("/{subject}"),
    Route("GET", "/exporters", _named(lambda api: api.exporters)),
    Route("GET", "/dek-registry/v1/keks", _named(lambda api: api.keks)),
]
