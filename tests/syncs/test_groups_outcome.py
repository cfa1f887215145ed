"""What a group sync reports, and which groups count as synced."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupState
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import GroupFailed
from ferry.ledger.run_summary import sync_counts
from ferry.syncs.checkpoints import plan_checkpoints
from ferry.syncs.group_decision import TargetGroup, decide_group
from ferry.syncs.group_offsets import groups_outcome
from ferry.syncs.group_placing import GroupResult, NotWritten
from ferry.syncs.translated_groups import GroupLeftOut, TranslatedGroups
from ferry.translation.translated import TranslatedPosition, Translation

pytestmark = pytest.mark.unit

FLOW: Any = SimpleNamespace(source=SimpleNamespace(alias="A"), target=SimpleNamespace(alias="B"))
KEYS = [TopicPartition("A.t", 0), TopicPartition("A.t", 1)]


def positions(group: str) -> tuple[TranslatedPosition, ...]:
    return tuple(TranslatedPosition(group, "t", number, "A.t", 5, Translation(5)) for number in range(2))


def result(group: str, *present: int, state: str = GroupState.EMPTY, whole: NotWritten | None = None, **failed: NotWritten) -> GroupResult:
    there = {KEYS[number]: CommittedOffset(offset) for number, offset in enumerate(present)}
    target = TargetGroup(GroupDescription(group, state, "classic"), there)
    decision = decide_group(group, positions(group), target, {"A.t": 2}, alias="B")
    return GroupResult(decision, whole, {KEYS[int(name[1:])]: why for name, why in failed.items()})


def test_a_group_with_anything_left_alone_or_failed_is_not_synced() -> None:
    results = [
        result("ahead", 9),
        result("busy", state="Stable"),
        result("came", whole=NotWritten("it became active")),
        result("fine"),
        result("refused, part", p1=NotWritten("no", "NotAuthorized")),
        result("up to date", 5, 5),
    ]
    groups = ("ahead", "busy", "came", "fine", "none", "refused, part", "unread", "up to date")
    found = tuple(entry for group in groups if group != "none" for entry in positions(group))
    left_out = (GroupLeftOut("filtered", "not in the property groups"), GroupLeftOut("later", "not now", "GroupFailed"))
    translated = TranslatedGroups(groups, found, left_out)
    outcome = groups_outcome(FLOW, translated, results, {"unread": GroupFailed("no answer")})
    assert [(entry.name, entry.value) for entry in outcome.measurements] == [("groups-synced", 2), ("groups-not-synced", 6)]
    assert [change.what for change in outcome.changes] == [
        "group ahead, A.t-1",
        "group fine, A.t-0",
        "group fine, A.t-1",
        "group refused, part, A.t-0",
    ]
    assert [entry.what for entry in outcome.skipped] == [
        "group busy",  # held up: it comes first
        "group filtered",
        "group none",
        "group ahead, A.t-0",
        "group came",
        "group up to date",
    ]
    assert [(failure.what, failure.error) for failure in outcome.failed] == [
        ("group later", "GroupFailed"),
        ("group unread", "GroupFailed"),
        ("group refused, part, A.t-1", "NotAuthorized"),
    ]
    assert outcome.counts == {"groups": 7, "partitions": 14, "up_to_date": 2, "held": 1}


@pytest.mark.parametrize(
    ("present", "state", "held"),
    [((), "Stable", 1), ((5, 4), "Stable", 1), ((5, 5), "Stable", 0), ((9, 9), "Stable", 0), ((), GroupState.EMPTY, 0)],
)
def test_a_group_is_held_up_if_its_offsets_stay_behind_because_it_has_members(present: tuple[int, ...], state: str, held: int) -> None:
    """One whose members have read as far as on the source, or further, lacks nothing."""
    outcome = groups_outcome(FLOW, TranslatedGroups(("g",), positions("g"), ()), [result("g", *present, state=state)], {})
    assert outcome.counts["held"] == held
    kept = sync_counts(outcome.document())
    assert ("held" in kept) is bool(held)
    if held:
        assert kept["held"] == {
            "total": 1,
            "named": [{"what": "group g", "reason": "it is Stable on B, and Ferry writes only groups without members"}],
        }


def test_a_partition_that_the_group_never_read_holds_nothing_up() -> None:
    never = replace(positions("g")[0], upstream_offset=None)
    decision = decide_group("g", (never,), TargetGroup(GroupDescription("g", "Stable", "classic"), {}), {"A.t": 2}, alias="B")
    assert groups_outcome(FLOW, TranslatedGroups(("g",), (never,), ()), [GroupResult(decision)], {}).counts["held"] == 0


def test_a_notice_says_that_nothing_was_written() -> None:
    refused = result("g", p0=NotWritten("no", "NotAuthorized"), p1=NotWritten("no", "NotAuthorized"))
    translated = TranslatedGroups(("g",), positions("g"), ())
    (notice,) = groups_outcome(FLOW, translated, [refused], {}).notices
    assert "1 group with something to write, and none was written" in notice
    (notice,) = groups_outcome(FLOW, TranslatedGroups((), (), ()), [], {}).notices
    assert "A has no consumer groups" in notice


def test_a_partition_that_a_cluster_did_not_answer_for_has_failed() -> None:
    """Another try may find its translation. A group that is not synced anyway waits for none."""
    known, unread = positions("g")[0], replace(positions("g")[1], translation=None, problem="no leader", unread=True)
    for state, failures in ((GroupState.EMPTY, ["group g, A.t-1: GroupFailed: no leader"]), ("Stable", [])):
        decision = decide_group("g", (known, unread), TargetGroup(GroupDescription("g", state, "classic"), {}), {"A.t": 2}, alias="B")
        outcome = groups_outcome(FLOW, TranslatedGroups(("g",), (known, unread), ()), [GroupResult(decision)], {})
        assert list(map(str, outcome.failed)) == failures
        assert "group g, A.t-1" not in [entry.what for entry in outcome.skipped]
    plan = plan_checkpoints(TranslatedGroups(("g",), (known, unread), ()), {})
    assert ([str(failure) for failure in plan.failed], plan.skipped) == (["group g, t-1: GroupFailed: no leader"], ())
