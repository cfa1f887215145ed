"""Plans over random registries: order, what they refuse, and that carrying one out leaves nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.schemas.contents import Levels, Reference, SchemaVersion, Subject, VersionKey
from ferry.schemas.plan import VersionsPlan, closed, plan_levels, plan_versions

pytestmark = pytest.mark.unit


def text_of(number: int) -> str:
    return f'{{"type": "record", "name": "R{number}"}}'


@st.composite
def registries(draw: st.DrawFn) -> list[SchemaVersion]:
    """A registry as one comes to be: each new version refers to some that are there, and ids stand for contents."""
    found: list[SchemaVersion] = []
    for number in range(draw(st.integers(0, 12))):
        subject = Subject(".", draw(st.sampled_from("abcd")))
        version = 1 + max((one.version for one in found if one.subject == subject), default=0) + draw(st.integers(0, 1))
        referred = draw(st.lists(st.sampled_from(found), max_size=2, unique=True)) if found else []
        references = tuple(Reference(str(index), one.key) for index, one in enumerate(referred))
        found.append(SchemaVersion(subject, version, number + 1, text_of(number), references=references, deleted=draw(st.booleans())))
    return found


def same_names(versions: Sequence[SchemaVersion]) -> dict[Subject, Subject | str]:
    return {one.subject: Subject(one.subject.context, f"A.{one.subject.name}") for one in versions}


def carried_out(there: Sequence[SchemaVersion], plan: VersionsPlan) -> list[SchemaVersion]:
    """The target after the plan, as a registry does it: a reference must lead to what is there."""
    found = {one.key: one for one in there}
    for wave in plan.waves:
        known = set(found)
        for one in wave:
            assert {reference.key for reference in one.references} <= known
        found |= {one.key: replace(one, deleted=False) for one in wave}
    for one in plan.delete:
        users = [user.key for user in found.values() if not user.deleted and one.key in {reference.key for reference in user.references}]
        assert set(users) <= {left.key for left in plan.wanted.values() if not left.deleted}  # those the source has too
        found[one.key] = replace(found[one.key], deleted=True)
    return list(found.values())


@given(registries(), st.data())
def test_after_a_plan_nothing_is_left_to_do(here: list[SchemaVersion], data: st.DataObject) -> None:
    images = same_names(here)
    whole = list(plan_versions(here, [], images).wanted.values())
    # What a killed sync leaves: versions with all that they refer to, before any deletion.
    there = [replace(one, deleted=False) for one in whole[: data.draw(st.integers(0, len(whole)))]]
    there = [one for one in there if {reference.key for reference in one.references} <= {other.key for other in there}]
    plan = plan_versions(here, there, images)
    assert plan.conflicts == ()
    after = plan_versions(here, carried_out(there, plan), images)
    assert (list(after.register), after.delete, after.conflicts, after.surplus) == ([], (), (), ())


@st.composite
def registries_with_repeats(draw: st.DrawFn) -> list[SchemaVersion]:
    """A registry in which a content may come again after it was deleted: as a new version with the old id."""
    found: list[SchemaVersion] = []
    for _ in range(draw(st.integers(0, 12))):
        subject = Subject(".", draw(st.sampled_from("abc")))
        referred = draw(st.lists(st.sampled_from(found), max_size=2, unique=True)) if found else []
        references = tuple(Reference(str(index), one.key) for index, one in enumerate(referred))
        new = SchemaVersion(subject, 0, 0, text_of(draw(st.integers(0, 3))), references=references, deleted=draw(st.booleans()))
        if not any(one.subject == subject and one.means(new) and not one.deleted for one in found):
            found.append(numbered(found, new))
    return found


def numbered(there: Sequence[SchemaVersion], new: SchemaVersion) -> SchemaVersion:
    """What a registry gives a version: the next number of its subject, and the id of its content."""
    version = 1 + max((one.version for one in there if one.subject == new.subject), default=0)
    highest = max((one.id for one in there), default=100)
    return replace(new, version=version, id=next((one.id for one in there if one.means(new)), highest + 1))


def registered_anew(there: list[SchemaVersion], plan: VersionsPlan, stop: int) -> list[SchemaVersion]:
    """The target after `stop` requests of a plan, if it gives ids and numbers of its own: a live content that comes again is no version."""
    found, numbers, register = list(there), {key: one.key for key, one in (plan.equal or {}).items()}, list(plan.register)
    for one in register[:stop]:
        assert {reference.key for reference in one.references} <= numbers.keys() | {known.key for known in found}
        new = replace(one.referring(numbers), deleted=False)
        if not any(known.subject == new.subject and known.means(new) and not known.deleted for known in found):
            found.append(numbered(found, new))
        numbers[one.key] = next(known.key for known in found if known.subject == new.subject and known.means(new) and not known.deleted)
    if stop <= len(register):
        return found
    live = {numbers[key] for key, one in plan.wanted.items() if not one.deleted}
    for one in plan.delete[: stop - len(register)]:
        gone = {numbers[one.key]} - live
        found = [replace(known, deleted=known.deleted or known.key in gone) for known in found]
    return found


@given(registries_with_repeats(), st.lists(st.sampled_from("abc"), max_size=3), st.data())
def test_with_ids_of_the_target_nothing_is_left_to_do_after_a_plan(here: list[SchemaVersion], own: list[str], data: st.DataObject) -> None:
    images, there = same_names(here), list[SchemaVersion]()
    for name in own:  # versions that the target has of its own
        there.append(numbered(there, SchemaVersion(Subject(".", f"A.{name}"), 0, 0, text_of(100 + len(there)))))
    killed = registered_anew(there, plan_versions(here, there, images, rewritten=True), data.draw(st.integers(0, 24)))
    plan = plan_versions(here, killed, images, rewritten=True)
    assert plan.conflicts == ()
    done = registered_anew(killed, plan, 100)
    after = plan_versions(here, done, images, rewritten=True)
    assert (list(after.register), after.delete, after.conflicts) == ([], (), ())
    assert after.equal is not None
    assert after.equal.keys() == after.wanted.keys()
    assert set(there) <= set(done)  # what the target has of its own stays
    live = {one.key for key, one in after.equal.items() if not after.wanted[key].deleted}
    assert {key for key, one in after.equal.items() if one.deleted} <= {key for key, one in after.wanted.items() if one.deleted}
    assert all(one.deleted or one.key in live for key, one in after.equal.items() if after.wanted[key].deleted)
    ids = {(after.wanted[key].id, one.id) for key, one in after.equal.items()}
    assert len({source for source, _ in ids}) == len(ids)  # an id of the source has one on the target


@given(registries())
def test_each_version_is_registered_once(here: list[SchemaVersion]) -> None:
    plan = plan_versions(here, [], same_names(here))
    assert sorted(one.key for one in plan.register) == sorted(plan.wanted)
    for subject in {one.subject for one in plan.register}:
        numbers = [one.version for one in plan.register if one.subject == subject]
        assert numbers == sorted(numbers)


@given(registries(), st.integers(0, 11))
def test_an_id_that_means_something_else_is_refused(here: list[SchemaVersion], number: int) -> None:
    other = SchemaVersion(Subject(".", "other"), 1, number + 1, '{"type": "record", "name": "Other"}')
    plan = plan_versions(here, [other], same_names(here))
    named = [why for _, why in plan.conflicts]
    assert bool(named) is any(one.id == number + 1 for one in here)
    assert all("means another schema on the target" in why for why in named)


def version(name: str, number: int = 1, identity: int = 1, *, context: str = ".", text: str = '"int"', to: str = "") -> SchemaVersion:
    references = (Reference(to, VersionKey(Subject(context, to), 1)),) if to else ()
    return SchemaVersion(Subject(context, name), number, identity, text, references=references)


def conflicts(here: Sequence[SchemaVersion], there: Sequence[SchemaVersion], images: dict[Subject, Subject | str]) -> str:
    return " | ".join(f"{what}: {why}" for what, why in plan_versions(here, there, images).conflicts)


def test_conflicts_are_named() -> None:
    one, two = version("a", to="b"), version("b", identity=2, to="a")
    assert "go in a circle" in conflicts([one, two], [], same_names([one, two]))
    assert "version 1, which is not copied: left out" in conflicts([one, two], [], {**same_names([one, two]), two.subject: "left out"})
    assert "the source does not show it" in conflicts([one], [], same_names([one]))
    there = [version("A.a", text='"long"')]
    assert "another schema under this version: text differ" in conflicts([version("a")], there, same_names([version("a")]))
    merged: dict[Subject, Subject | str] = {Subject(".x", "a"): Subject(".", "a"), Subject(".", "a"): Subject(".", "a")}
    assert "as" in conflicts([version("a"), version("a", context=".x")], [], merged)
    other: dict[Subject, Subject | str] = {Subject(".x", "a"): Subject(".", "x"), Subject(".", "a"): Subject(".", "a")}
    assert "in another context" in conflicts([version("a"), version("a", context=".x", text='"long"')], [], other)


def test_what_only_the_target_has_is_surplus() -> None:
    there = [version("A.a"), version("A.a", 2, 2), version("z", 1, 3)]
    assert plan_versions([version("a")], there, same_names([version("a")])).surplus == (VersionKey(Subject(".", "A.a"), 2),)


def test_levels() -> None:
    a, b = Subject(".", "a-value"), Subject(".", "A.a-value")
    full, none = '{"compatibility":"FULL"}', '{"compatibility":"NONE"}'
    images: dict[Subject, Subject | str] = {a: b}

    def changes(here: Levels, there: Levels) -> list[tuple[str | None, str | None]]:
        return [(change.config, change.mode) for change in plan_levels({a: here}, {b: there}, images)]

    assert changes(Levels(), Levels(none, "READONLY")) == []  # what only the target sets stays
    assert changes(Levels(full, "READONLY"), Levels(full, "READONLY")) == []
    assert changes(Levels(full, "READONLY"), Levels(none)) == [(full, "READONLY")]
    assert changes(Levels(mode="IMPORT"), Levels()) == []
    assert changes(Levels('{"alias":"a-value"}'), Levels()) == [('{"alias":"A.a-value"}', None)]


def test_what_is_closed_is_not_opened() -> None:
    subject, there = Subject(".", "s"), Subject(".x", "t")

    def refused(own: str = "", wider: str = "", at_all: str = "", source: str = "") -> list[str]:
        modes = {"": at_all, ".": wider}
        return [what for what, _ in closed([subject, there], {subject: own}, modes, {subject: source})]

    assert refused() == refused(own="READWRITE", wider="READONLY") == refused(own="IMPORT") == []
    assert refused(own="READONLY", source="READONLY") == []
    assert refused(own="READONLY") == refused(wider="READONLY") == refused(own="FORWARD") == ["subject s"]
    assert refused(at_all="READONLY_OVERRIDE") == ["subject s", "subject :.x:t"]
