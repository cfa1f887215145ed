"""Reads what a registry holds, in few requests: pages of all schemas, where the registry says of each which version it is.

A page may be shorter than what was asked for although more follow, so a list ends with a page that brings nothing new. What no page had is
asked for subject by subject, as in a registry whose pages hold texts only. A version is what its answer says, not what was asked for.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ferry import clock
from ferry.errors import RegistryUnreachable, SchemasRefused
from ferry.schemas.at_once import at_once
from ferry.schemas.contents import DEFAULT_CONTEXT, Levels, SchemaVersion, Subject, VersionKey, decode_config, decode_version
from ferry.schemas.registry import SchemaRegistry, path_of

PAGE = 1000
# A list that never ends would hold a run: no registry has this many pages.
MOST_PAGES = 10_000
_SUBJECTS = "/subjects"
Key = Callable[[Any], Any]


def read_contexts(registry: SchemaRegistry) -> frozenset[str]:
    """The contexts of a registry; only the default one if it does not know the word."""
    found = registry.find("/contexts")
    return frozenset(map(str, found)) if isinstance(found, list) else frozenset({DEFAULT_CONTEXT})


def read_versions(registry: SchemaRegistry, contexts: Collection[str]) -> list[SchemaVersion]:
    """Every version of these contexts, also those that are soft-deleted."""
    found = dict[VersionKey, SchemaVersion]()
    for context in sorted(contexts):
        prefix = "" if context == DEFAULT_CONTEXT else f":{context}:"
        found |= {version.key: version for version in _pages_of_versions(registry, prefix)}
        seen = {key.subject for key in found}
        missed = sorted({Subject.parse(str(name)) for name in subject_names(registry, prefix)} - seen)
        for versions in at_once(lambda subject: _one_by_one(registry, subject), [one for one in missed if one.context == context]):
            found |= {version.key: version for version in versions}
    return [version for version in found.values() if version.subject.context in contexts]


def subject_names(registry: SchemaRegistry, prefix: str = "") -> Iterator[Any]:
    """The names of all subjects, also of deleted ones. RegistryUnreachable if this is no schema registry: each has this list."""
    return _pages(registry, _SUBJECTS, {"subjectPrefix": prefix, "deleted": "true"}, str)


def _pages_of_versions(registry: SchemaRegistry, prefix: str) -> list[SchemaVersion]:
    """The versions that pages hold; nothing if the registry's pages do not say which versions they hold.

    Releases before 8 do not say which are deleted, so those are listed that are not. This comes second: what is registered meanwhile would
    else be taken for deleted.
    """
    documents = list(_pages(registry, "/schemas", {"subjectPrefix": prefix, "deleted": "true"}, _key))
    says = all(isinstance(document, Mapping) and "deleted" in document for document in documents)
    live = set() if says else {_key(document) for document in _pages(registry, "/schemas", {"subjectPrefix": prefix}, _key)}
    try:
        return [decode_version(one, deleted=one["deleted"] is True if says else _key(one) not in live) for one in documents]
    except (KeyError, TypeError, ValueError):
        return []


def _key(document: Any) -> Any:
    return (document.get("subject"), document.get("version")) if isinstance(document, Mapping) else str(document)


def _pages(registry: SchemaRegistry, path: str, query: Mapping[str, str], key: Key) -> Iterator[Any]:
    seen = set[Any]()
    for _ in range(MOST_PAGES):
        page = registry.find(path, **query, offset=str(len(seen)), limit=str(PAGE))
        if path == _SUBJECTS and not isinstance(page, list):
            raise RegistryUnreachable(
                f"{registry.login.where}: GET {path} gives no list: is schema.registry.url the URL of a schema registry?"
            )
        new = [entry for entry in page if key(entry) not in seen] if isinstance(page, list) else []
        if not new:
            return
        seen.update(map(key, new))
        yield from new
    raise RegistryUnreachable(f"{registry.login.where}: GET {path} does not end: it gave {MOST_PAGES:,} pages")


def _one_by_one(registry: SchemaRegistry, subject: Subject) -> list[SchemaVersion]:
    """The versions of one subject, each by a request. SchemasRefused if the numbers of its versions are not theirs."""
    path = path_of("subjects", subject, "versions")
    numbers = registry.find(path, deleted="true") or ()
    live = set(registry.find(path) or ())  # second, as above
    numbers = sorted({*live, *numbers})
    answers = {number: registry.find(f"{path}/{number}", deleted="true") for number in numbers}
    answers |= {"latest": registry.find(f"{path}/latest")} if live else {}
    found = []
    for number, document in answers.items():
        if document is None:  # deleted, and this registry does not give it any more
            continue
        try:
            version = decode_version({"subject": str(subject), **document}, deleted=number != "latest" and number not in live)
        except (KeyError, TypeError, ValueError):
            raise RegistryUnreachable(f"{registry.login.where}: GET {path}/{number} answers no schema") from None
        if version.version != (max(live) if number == "latest" else number):
            what = f"{registry.login.where}: subject {subject}: asked for version {number}, it gives version {version.version}"
            raise SchemasRefused(f"{what}: its versions have names, or it does not list them all, so Ferry cannot tell them apart")
        found += [version] if number != "latest" else []
    return found


def sets_levels(registry: SchemaRegistry) -> bool:
    """Whether the registry says what is set for a subject itself. Some answer 200 for a subject that is not there."""
    nobody = f"ferry-{clock.token_hex(8)}"
    return registry.find(path_of("config", nobody)) is None and registry.find(path_of("mode", nobody)) is None


def read_levels(registry: SchemaRegistry, subjects: Iterable[Subject]) -> dict[Subject, Levels]:
    """What is set for each of these subjects itself; a subject without a name is its whole context."""
    listed = list(subjects)
    return dict(zip(listed, at_once(lambda subject: _levels(registry, subject), listed), strict=True))


def read_modes(registry: SchemaRegistry, subjects: Iterable[Subject]) -> dict[Subject, str]:
    """The mode of each of these subjects; empty: it has none of its own."""
    listed = list(subjects)
    return dict(zip(listed, at_once(lambda subject: _mode(registry, subject), listed), strict=True))


def scope_path(what: str, subject: Subject) -> str:
    """The path of the config or mode of a subject or context."""
    return path_of(what) if subject == Subject(DEFAULT_CONTEXT, "") else path_of(what, subject)


def _levels(registry: SchemaRegistry, subject: Subject) -> Levels:
    return Levels(decode_config(registry.find(scope_path("config", subject)) or {}), _mode(registry, subject))


def _mode(registry: SchemaRegistry, subject: Subject) -> str:
    return str((registry.find(scope_path("mode", subject)) or {}).get("mode") or "")


def unknown_ids(registry: SchemaRegistry, contexts: Iterable[str], ids: Iterable[int | str]) -> list[int | str]:
    """Which of these ids (in any of the contexts) and GUIDs the registry does not know. It knows those of soft-deleted versions."""
    listed, scopes = list(ids), [{} if context == DEFAULT_CONTEXT else {"subject": f":{context}:"} for context in contexts]

    def is_known(number: int | str) -> bool:
        if isinstance(number, str):
            return registry.find(path_of("schemas", "guids", number)) is not None
        return any(registry.find(path_of("schemas", "ids", number), **scope) is not None for scope in scopes)

    return [number for number, known in zip(listed, at_once(is_known, listed), strict=True) if not known]
