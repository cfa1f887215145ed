"""What the target's registry lacks, in the order in which it must be written, and what forbids writing it (pure).

The plan looks at contents and never at what a registry says of itself. An id stands for one schema in a context, and a version of a subject
for one schema: whatever would break this is a conflict, and then nothing is written. A version that others refer to is registered before
them, and deleted after them. All are registered before the first is deleted: with its last version a subject loses its settings.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from ferry.errors import some_of
from ferry.schemas.contents import NOTHING_SET, Levels, Reference, SchemaVersion, Subject, VersionKey

IMPORT, READWRITE = "IMPORT", "READWRITE"
COPIED_MODES = frozenset({"READONLY", "READONLY_OVERRIDE", READWRITE})
_CLOSED = frozenset({"READONLY", "READONLY_OVERRIDE", "FORWARD"})
Named = tuple[str, str]  # a thing, and what is to say about it


@dataclass(frozen=True)
class VersionsPlan:
    """`waves`: what to register, under the names of the target; each wave refers only to earlier ones. `delete`: in this order."""

    wanted: Mapping[VersionKey, SchemaVersion]
    sources: Mapping[Subject, Subject]  # by subject of the target
    waves: tuple[tuple[SchemaVersion, ...], ...] = ()
    delete: tuple[SchemaVersion, ...] = ()
    conflicts: tuple[Named, ...] = ()
    skipped: tuple[Named, ...] = ()
    surplus: tuple[VersionKey, ...] = ()  # versions of copied subjects that only the target has
    # If the target gives ids and numbers of its own: for each wanted version the same schema there. None: it keeps those of the source.
    equal: Mapping[VersionKey, SchemaVersion] | None = None

    @property
    def register(self) -> Iterator[SchemaVersion]:
        return (version for wave in self.waves for version in wave)

    @property
    def numbers_needed(self) -> frozenset[VersionKey]:
        """The versions whose numbers on the target must be known: of those that are referred to, and of subjects that lose some."""
        losing = {one.subject for one in self.delete}
        referred = {one.key for version in self.register for one in version.references}
        return frozenset({*referred, *(key for key in self.wanted if key.subject in losing)})

    @property
    def touched(self) -> frozenset[Subject]:
        """The subjects of the target whose versions change."""
        return frozenset(version.subject for version in (*self.register, *self.delete))


def plan_versions(
    source: Iterable[SchemaVersion], target: Iterable[SchemaVersion], images: Mapping[Subject, Subject | str], *, rewritten: bool = False
) -> VersionsPlan:
    """Compare both sides. `images`: as of SubjectNaming.images. `rewritten`: the target gives ids and numbers of its own."""
    here, present = list(source), {version.key: version for version in target}
    named = {subject: image for subject, image in images.items() if isinstance(image, Subject)}
    copied = frozenset(named.values())
    wanted, conflicts = _wanted(here, named)
    equal = _equal(wanted, present.values()) if rewritten else None
    there = present if equal is None else _as_at_source(wanted, equal)
    register, delete = _changes(wanted, there)
    waves, cycle = _waves(register)
    conflicts += [] if rewritten else [*_other_versions(wanted, there), *_other_ids(register, there.values())]
    conflicts += _unknown_references(register, wanted, present, images)
    if cycle:
        conflicts.append((f"subject {cycle[0].subject}", f"its references go in a circle: {some_of(list(map(str, cycle)))}"))
    return VersionsPlan(
        wanted,
        {image: subject for subject, image in named.items()},
        waves,
        tuple(reversed(list(chain.from_iterable(_waves(delete)[0])))),
        tuple(conflicts),
        tuple((f"subject {subject}", image) for subject, image in images.items() if isinstance(image, str)),
        tuple(
            sorted(
                key
                for key in present.keys() - (wanted.keys() if equal is None else {one.key for one in equal.values()})
                if key.subject in copied
            )
        ),
        equal,
    )


def _equal(wanted: Mapping[VersionKey, SchemaVersion], target: Iterable[SchemaVersion]) -> dict[VersionKey, SchemaVersion]:
    """For each wanted version the same schema of its subject on the target, if it is there; one that is not deleted, if there is one."""
    by_subject, found = dict[Subject, list[SchemaVersion]](), dict[VersionKey, SchemaVersion]()
    for version in target:
        by_subject.setdefault(version.subject, []).append(version)
    for version in chain.from_iterable(_waves(list(wanted.values()))[0]):
        if all(one.key in found or one.key not in wanted for one in version.references):
            renumbered = version.referring({key: one.key for key, one in found.items()})
            same = [one for one in by_subject.get(version.subject, ()) if renumbered.means(one)]
            if same:
                found[version.key] = min(same, key=lambda one: (one.deleted, one.version))
    return found


def _as_at_source(wanted: Mapping[VersionKey, SchemaVersion], equal: Mapping[VersionKey, SchemaVersion]) -> dict[VersionKey, SchemaVersion]:
    """The target's versions under the numbers of the source. What another version needs undeleted counts as deleted already."""
    live = {one.key for key, one in equal.items() if not wanted[key].deleted}
    return {key: replace(wanted[key], deleted=one.deleted or (wanted[key].deleted and one.key in live)) for key, one in equal.items()}


def _changes(
    wanted: Mapping[VersionKey, SchemaVersion], there: Mapping[VersionKey, SchemaVersion]
) -> tuple[list[SchemaVersion], list[SchemaVersion]]:
    """What to register, and what to delete then."""
    register = [version for key, version in wanted.items() if key not in there or (there[key].deleted and not version.deleted)]
    return register, [version for key, version in wanted.items() if version.deleted and not (key in there and there[key].deleted)]


def _other_versions(wanted: Mapping[VersionKey, SchemaVersion], there: Mapping[VersionKey, SchemaVersion]) -> Iterator[Named]:
    for key, version in wanted.items():
        if key in there and (parts := version.differences(there[key])):
            yield str(key), f"the target has another schema under this version: {', '.join(parts)} differ"


def _wanted(here: Iterable[SchemaVersion], images: Mapping[Subject, Subject]) -> tuple[dict[VersionKey, SchemaVersion], list[Named]]:
    """The versions of the source under the names of the target, and those that would become one."""
    found: dict[VersionKey, SchemaVersion] = {}
    conflicts, owners = [], dict[Subject, Subject]()
    for version in sorted(here, key=lambda one: one.key):
        image = images.get(version.subject)
        if image is None:
            continue
        if (owner := owners.setdefault(image, version.subject)) != version.subject:
            conflicts.append((str(version.key), f"it would be {image} on the target, as {owner} is"))
        references = tuple(Reference(one.name, _image(one.key, images)) for one in version.references)
        renamed = replace(version, subject=image, references=references)
        found[renamed.key] = renamed
    return found, list(dict.fromkeys(conflicts))


def _image(key: VersionKey, images: Mapping[Subject, Subject]) -> VersionKey:
    return VersionKey(images.get(key.subject, key.subject), key.version)


def _other_ids(register: Iterable[SchemaVersion], there: Iterable[SchemaVersion]) -> Iterator[Named]:
    """The versions whose id means another schema in their context of the target."""
    holders = {(version.subject.context, version.id): (version, "on the target") for version in there}
    for version in register:
        holder, where = holders.setdefault((version.subject.context, version.id), (version, "at the source, in another context"))
        if not version.means(holder):
            yield str(version.key), f"id {version.id} means another schema {where}: that of {holder.key}"


def _unknown_references(
    register: Iterable[SchemaVersion],
    wanted: Mapping[VersionKey, SchemaVersion],
    there: Mapping[VersionKey, SchemaVersion],
    images: Mapping[Subject, Subject | str],
) -> Iterator[Named]:
    for version in register:
        for reference in version.references:
            if reference.key not in wanted and reference.key not in there:
                why = images.get(reference.key.subject, "the source does not show it")
                shown = why if isinstance(why, str) else "the source does not show this version"
                yield str(version.key), f"it refers to {reference.key}, which is not copied: {shown}"


def _waves(versions: Sequence[SchemaVersion]) -> tuple[tuple[tuple[SchemaVersion, ...], ...], list[VersionKey]]:
    """The versions in waves, each after the earlier versions of its subject; and the references that go in a circle, if some do."""
    known, before = {version.key: version for version in versions}, dict[Subject, VersionKey]()
    graph: dict[VersionKey, set[VersionKey]] = {}
    for key, version in sorted(known.items()):
        graph[key] = {one.key for one in version.references if one.key in known}
        if key.subject in before:
            graph[key].add(before[key.subject])
        before[key.subject] = key
    order, waves = TopologicalSorter(graph), []
    try:
        order.prepare()
    except CycleError as problem:
        return (), list(problem.args[1])
    while ready := sorted(order.get_ready()):
        waves.append(tuple(known[key] for key in ready))
        order.done(*ready)
    return tuple(waves), []


@dataclass(frozen=True)
class LevelChange:
    """What is to be set for a subject of the target, or (with an empty name) for a context. None: it stays."""

    subject: Subject
    config: str | None = None
    mode: str | None = None
    before: Levels = NOTHING_SET


def plan_levels(
    source: Mapping[Subject, Levels], target: Mapping[Subject, Levels], images: Mapping[Subject, Subject | str]
) -> tuple[LevelChange, ...]:
    """What the source sets and the target does not. `source`: by subject of the source, `target`: by subject of the target.

    What only the target sets stays. The mode IMPORT is of a moment, and is not copied.
    """
    found = []
    for subject, levels in sorted(source.items()):
        image = images.get(subject)
        if not isinstance(image, Subject):
            continue
        there = target.get(image, NOTHING_SET)
        config, mode = _renamed_alias(levels.config, subject, images), levels.mode if levels.mode in COPIED_MODES else ""
        change = LevelChange(
            image, config if config and config != there.config else None, mode if mode and mode != there.mode else None, there
        )
        if change.config is not None or change.mode is not None:
            found.append(change)
    return tuple(found)


def _renamed_alias(config: str, subject: Subject, images: Mapping[Subject, Subject | str]) -> str:
    """The config, whose alias names a subject, as the target has it."""
    document = json.loads(config) if config else {}
    if isinstance(alias := document.get("alias"), str):
        named = Subject.parse(alias, subject.context)
        image = images.get(named, named)
        target = image if isinstance(image, Subject) else named
        document["alias"] = target.name if named.context == subject.context and ":" not in alias else str(target)
        return json.dumps(document, sort_keys=True, separators=(",", ":"))
    return config


def closed(
    touched: Collection[Subject], own: Mapping[Subject, str], wider: Mapping[str, str], source: Mapping[Subject, str]
) -> Iterator[Named]:
    """The touched subjects of the target that somebody has closed for writers.

    `own`: modes of subjects, before Ferry changed them; `wider`: of contexts (empty: of all). `source`: modes of the source, by subject of
    the target: what Ferry itself has copied from there does not stop it.
    """
    for subject in sorted(touched):
        mode = own.get(subject, "")
        scope = mode or wider.get(subject.context, "")
        if wider.get("") == "READONLY_OVERRIDE":
            yield f"subject {subject}", "the target's registry is in the mode READONLY_OVERRIDE"
        elif scope in _CLOSED and not (mode and mode == source.get(subject)):
            yield f"subject {subject}", f"the target has {'it' if mode else 'its context'} in the mode {scope}: Ferry does not open it"
