"""Which translated offsets are written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupListing, GroupMember, GroupState, GroupType
from ferry.clusters.net.partitions import TopicPartition
from ferry.syncs.group_decision import GroupDecision, Placement, TargetGroup, decide_group
from ferry.translation.translated import Inexact, TranslatedPosition, Translation

pytestmark = pytest.mark.unit

MEMBER = GroupMember("reader", "/127.0.0.1")
WIDTHS = {"A.t": 4}
REMOTE = [TopicPartition("A.t", number) for number in range(6)]


def position(
    partition: int = 0, image: int | None = 100, *, upstream: int | None = 90, metadata: str = "", **fields: object
) -> TranslatedPosition:
    reason = fields.get("reason")
    translation = None if image is None else Translation(image, reason)  # type: ignore[arg-type]
    return TranslatedPosition("g", "t", partition, "A.t", upstream, translation, metadata, str(fields.get("problem", "")))


def target(state: str = GroupState.EMPTY, *members: GroupMember, kind: str = GroupType.CLASSIC, **offsets: int) -> TargetGroup:
    committed = {REMOTE[int(name[1:])]: CommittedOffset(offset) for name, offset in offsets.items()}
    return TargetGroup(GroupDescription("g", state, "", members), committed, GroupListing("g", kind, ""))


def decide(found: TargetGroup, *positions: TranslatedPosition) -> GroupDecision:
    return decide_group("g", positions, found, WIDTHS, alias="B")


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.DEAD])
@pytest.mark.parametrize("present", [{}, {"p0": -1}, {"p0": 0}, {"p0": 99}])
def test_written_where_the_target_has_no_or_a_smaller_offset(state: GroupState, present: dict[str, int]) -> None:
    assert decide(target(state, **present), position()).writes == {REMOTE[0]: CommittedOffset(100)}


def test_metadata_of_the_source_are_kept_and_none_are_invented() -> None:
    assert decide(target(), position(metadata="theirs")).writes[REMOTE[0]].metadata == "theirs"
    assert decide(target(), position()).writes[REMOTE[0]].metadata == ""


def test_what_earlier_versions_invented_is_taken_away_and_nothing_else() -> None:
    for there, written in (("ferry:0.1.0:2026-01-01T00:00:00+00:00", {REMOTE[0]: CommittedOffset(100)}), ("theirs", {})):
        found = TargetGroup(GroupDescription("g", GroupState.EMPTY, ""), {REMOTE[0]: CommittedOffset(100, -1, there)})
        assert decide(found, position()).writes == written


def test_metadata_that_earlier_versions_carried_across_a_shift_are_taken_away() -> None:
    left_out = replace(position(reason=Inexact.METADATA), source_metadata="bAAPfn8A")
    for there, written in (("bAAPfn8A", {REMOTE[0]: CommittedOffset(100)}), ("of the target", {}), ("", {})):
        found = TargetGroup(GroupDescription("g", GroupState.EMPTY, ""), {REMOTE[0]: CommittedOffset(100, -1, there)})
        assert decide(found, left_out).writes == written
    kept = replace(position(metadata="theirs"), source_metadata="theirs")
    found = TargetGroup(GroupDescription("g", GroupState.EMPTY, ""), {REMOTE[0]: CommittedOffset(100, -1, "theirs")})
    assert not decide(found, kept).writes


def test_metadata_that_are_left_out_are_named() -> None:
    (decision,) = decide(target(), position(reason=Inexact.METADATA)).partitions
    assert decision.reason == ("not exact (metadata): the source's commit metadata may count offsets, which differ here, and are left out")


@pytest.mark.parametrize(("present", "reason"), [(100, "is at 100 already"), (101, "at 101, translated 100; a group never goes back")])
def test_never_backwards(present: int, reason: str) -> None:
    (decision,) = decide(target(p0=present), position()).partitions
    assert (decision.write, decision.placement) == (None, Placement.UP_TO_DATE if present == 100 else Placement.AHEAD)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (target("Stable", MEMBER), "it has 1 member on B (client id reader on 127.0.0.1)"),
        (target(GroupState.EMPTY, MEMBER), "it has 1 member on B (client id reader on 127.0.0.1)"),
        (target("PreparingRebalance"), "it is PreparingRebalance on B"),
        (target("Frozen"), "it is Frozen on B"),
        (target(GroupState.DEAD, kind=GroupType.SHARE), "it is a share group on B"),
    ],
)
def test_groups_that_are_not_touched(found: TargetGroup, reason: str) -> None:
    decision = decide(found, position(), position(1))
    assert reason in decision.untouched
    assert not decision.writes
    assert {(entry.reason, entry.untouched) for entry in decision.partitions} == {(decision.untouched, True)}


def test_each_partition_on_its_own() -> None:
    decision = decide(
        target(p0=200, p1=7),
        position(0),
        position(1, 50, reason=Inexact.AHEAD),
        position(2, 0, upstream=None),
        position(3, None, problem="not copied by this flow"),
        position(4),
    )
    assert {key.partition: entry.offset for key, entry in decision.writes.items()} == {1: 50, 2: 0}
    ahead, inexact, unread, unknown, missing = (entry.reason for entry in decision.partitions)
    assert "ahead" in ahead
    assert "not exact (ahead)" in inexact
    assert "never read" in unread
    assert unknown == "not copied by this flow"
    assert missing == "B has no partition A.t-4"


OFFSETS = st.integers(-2, 12)
POSITIONS = st.lists(
    st.builds(
        position,
        st.integers(0, 5),
        st.none() | st.integers(0, 10),
        upstream=st.none() | st.integers(0, 10),
        reason=st.none() | st.sampled_from(Inexact),
        metadata=st.sampled_from(["", "theirs"]),
    ),
    unique_by=lambda entry: entry.partition,
)
STATES = st.sampled_from([*GroupState, "Frozen"])


@given(POSITIONS, STATES, st.dictionaries(st.sampled_from(REMOTE), OFFSETS), st.sampled_from(["newer", *GroupType]), st.booleans())
def test_no_group_goes_back_and_nothing_is_left_without_a_reason(
    positions: list[TranslatedPosition], state: str, present: dict[TopicPartition, int], kind: str, member: bool
) -> None:
    offsets = {key: CommittedOffset(offset) for key, offset in present.items()}
    description = GroupDescription("g", state, "", (MEMBER,) if member else ())
    decision = decide_group("g", positions, TargetGroup(description, offsets, GroupListing("g", kind, "")), WIDTHS, alias="B")
    assert [entry.position for entry in decision.partitions] == positions
    for entry in decision.partitions:
        before = max(present.get(entry.remote, -1), -1)
        image = entry.position.translation.image if entry.position.translation else None
        possible = (
            not description.active and kind in {"classic", "consumer", "streams"} and image is not None and entry.remote.partition < 4
        )
        assert (entry.write is not None) == (possible and image is not None and image > before)
        if entry.write is not None:
            assert entry.write.offset == image
            assert (entry.write.metadata, entry.placement) == (entry.position.metadata, Placement.WRITE)
        else:
            assert entry.reason
            assert entry.placement in {Placement.UP_TO_DATE, Placement.AHEAD, Placement.NONE}
