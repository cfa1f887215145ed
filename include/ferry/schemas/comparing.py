"""Compares the schema registries of a flow: what a sync would write, and what forbids it. Only reads."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.config import Flow
from ferry.schemas.at_once import at_once
from ferry.schemas.contents import DEFAULT_CONTEXT, NOTHING_SET, Levels, SchemaVersion, Subject
from ferry.schemas.inventory import read_contexts, read_levels, read_modes, read_versions, sets_levels
from ferry.schemas.naming import SubjectNaming, record_names, topic_of
from ferry.schemas.plan import READWRITE, LevelChange, Named, VersionsPlan, closed, plan_levels, plan_versions
from ferry.schemas.registry import SchemaRegistry

Choose = Callable[[Sequence[Subject]], Collection[Subject]]


@dataclass(frozen=True)
class Comparison:
    """`own`: modes of the target's subjects that change, before Ferry opened them. `wider`: modes of the target's contexts."""

    here: list[SchemaVersion]
    images: Mapping[Subject, Subject | str]
    plan: VersionsPlan
    levels: tuple[LevelChange, ...]
    own: Mapping[Subject, str]
    wider: Mapping[str, str]
    conflicts: tuple[Named, ...]
    notices: tuple[str, ...]
    looked_at: tuple[Subject, ...]  # the source's subjects whose settings were compared

    @property
    def touched(self) -> frozenset[Subject]:
        """The target's subjects that must be open for writing. A change of a mode alone needs no other mode."""
        return self.plan.touched | {change.subject for change in self.levels if change.config is not None and change.subject.name}

    def mode_of(self, subject: Subject) -> str:
        """The mode that decides for a subject of the target."""
        return self.own.get(subject) or self.wider.get(subject.context) or READWRITE

    @property
    def is_equal(self) -> bool:
        return not (self.plan.waves or self.plan.delete or self.levels or self.conflicts)


def everything(subjects: Sequence[Subject]) -> Collection[Subject]:
    """As `choose` of `compare`."""
    return subjects


def compare(
    flow: Flow, source: SchemaRegistry, target: SchemaRegistry, opened: Mapping[Subject, str] | None = None, choose: Choose = everything
) -> Comparison:
    """Read both registries. `opened`: earlier modes of subjects that a killed sync has opened.

    `choose`: of the subjects without new versions, those whose settings are compared.
    """
    contexts = dict(flow.schemas.contexts)
    here, there = at_once(lambda side: read_versions(*side), [(source, contexts.keys()), (target, frozenset(contexts.values()))])
    images = SubjectNaming(flow.topic_rules, flow.subject_filter, contexts).images(here)
    plan = plan_versions(here, there, images, rewritten=flow.rewriting is not None)
    changed = dict.fromkeys(plan.sources[subject] for subject in sorted(plan.touched))
    looked_at = (*changed, *choose([subject for subject in plan.sources.values() if subject not in changed]))
    levels_here, notices = _levels_here(source, looked_at, contexts)
    wider = read_levels(target, dict.fromkeys([Subject("", ""), *(Subject(name, "") for name in contexts.values())]))
    levels_there = _levels_there(target, [images[subject] for subject in looked_at], there, opened or {})
    own = {subject: levels.mode for subject, levels in levels_there.items()}
    of_contexts = _of_contexts(contexts, levels_here, wider)
    if not flow.schemas.with_global:
        notices += [_level_differs(change, source, target) for change in of_contexts]
    levels = (*plan_levels(levels_here, levels_there, images), *(of_contexts if flow.schemas.with_global else ()))
    modes = {subject.context: found.mode for subject, found in wider.items()}
    found = Comparison(here, images, plan, levels, own, modes, (), tuple(notices), looked_at)
    copied = {image: levels_here[subject].mode for image, subject in plan.sources.items() if subject in levels_here}
    return replace(found, conflicts=(*plan.conflicts, *_not_rewritten(flow, plan), *closed(found.touched, own, modes, copied)))


def _not_rewritten(flow: Flow, plan: VersionsPlan) -> Iterator[Named]:
    """Subjects of topics whose copies would keep ids that the target does not have."""
    rules, rewriting = flow.topic_rules, flow.rewriting
    for version in plan.wanted.values() if rewriting else ():
        topic = topic_of(plan.sources[version.subject].name, record_names(version))
        if topic and rewriting and not rules.why_not(topic) and (why := rewriting.why_not(topic)):
            yield str(version.key), f"topic {topic} is copied, and its records would keep the source's ids: {why}"


def _levels_here(
    source: SchemaRegistry, subjects: Collection[Subject], contexts: Collection[str]
) -> tuple[dict[Subject, Levels], list[str]]:
    """The settings of the source's subjects and contexts, and what is to say about them."""
    name, others = source.login.alias, sorted(read_contexts(source) - set(contexts))
    notices = [f"context {other} of {name} is not copied: sync.schemas.contexts does not name it" for other in others]
    if sets_levels(source):
        return read_levels(source, [*subjects, *(Subject(context, "") for context in contexts)]), notices
    return {}, [*notices, f"compatibility levels and modes are not copied: {source.login.where} gives some to subjects that have none"]


def _levels_there(
    target: SchemaRegistry, subjects: Sequence[Subject | str], there: Collection[SchemaVersion], opened: Mapping[Subject, str]
) -> dict[Subject, Levels]:
    """Of a subject without any version, only the mode is asked for: its config will be written in any case. `opened`: as of `compare`."""
    known, named = {version.subject for version in there}, [subject for subject in subjects if isinstance(subject, Subject)]
    found = read_levels(target, [subject for subject in named if subject in known])
    modes = read_modes(target, [subject for subject in named if subject not in known])
    found |= {subject: Levels(mode=mode) for subject, mode in modes.items()}
    return {subject: replace(levels, mode=opened.get(subject, levels.mode)) for subject, levels in found.items()}


def _of_contexts(contexts: Mapping[str, str], here: Mapping[Subject, Levels], there: Mapping[Subject, Levels]) -> tuple[LevelChange, ...]:
    found = []
    for name, image in contexts.items():
        wanted, present = here.get(Subject(name, ""), NOTHING_SET), there.get(Subject(image, ""), NOTHING_SET)
        if wanted.config and wanted.compatibility != present.compatibility:
            found.append(LevelChange(Subject(image, ""), wanted.config, None, present))
    return tuple(found)


def _level_differs(change: LevelChange, source: SchemaRegistry, target: SchemaRegistry) -> str:
    name = "as a whole" if change.subject.context == DEFAULT_CONTEXT else f"in context {change.subject.context}"
    levels = Levels(change.config or "").compatibility, change.before.compatibility or "none"
    what = f"the compatibility level {name} is {levels[0]} at {source.login.alias} and {levels[1]} at {target.login.alias}"
    return f"{what}: it decides about subjects without a level of their own; sync.schemas.global=true copies it"
