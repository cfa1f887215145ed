"""Which groups a failover writes, and to where."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupMember, GroupState
from ferry.clusters.net.partitions import TopicPartition
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import GroupTaken
from ferry.recovery.moving import PlaceShown, described_move, outcome_of, with_consent, without_taken
from ferry.recovery.options import RecoveryOptions
from ferry.recovery.readings import checkpoint_image
from ferry.recovery.recovery_report import RecoveryPlan, group_table, how
from ferry.syncs.group_decision import GroupDecision, Placement, TargetGroup, decide_group
from ferry.syncs.group_placing import GroupResult, NotWritten
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.translation.translated import Inexact, TranslatedPosition, Translation
from ferry.wire.internal_records import Checkpoint

pytestmark = pytest.mark.unit

DESCRIPTION = GroupDescription("g", GroupState.EMPTY, "classic", ())
OFFSETS = st.one_of(st.none(), st.integers(0, 5))


def decided(present: dict[int, int], images: dict[int, int], *, members: int = 0, reason: Inexact | None = None) -> GroupDecision:
    state = "Stable" if members else GroupState.EMPTY
    description = GroupDescription("g", state, "classic", tuple(GroupMember(f"c{n}", "h") for n in range(members)))
    there = {TopicPartition("A.t", number): CommittedOffset(offset) for number, offset in present.items()}
    positions = [TranslatedPosition("g", "t", number, "A.t", 10, Translation(image, reason)) for number, image in images.items()]
    return decide_group("g", positions, TargetGroup(description, there), {"A.t": 9}, alias="B")


def test_each_partition_has_its_own_placement() -> None:
    decision = decided({0: 7, 1: 7, 2: 7}, {0: 9, 1: 7, 2: 5, 3: 1, 9: 1})
    move = described_move(decision, 2, {})
    assert [entry.action for entry in move.partitions] == [
        Placement.WRITE,
        Placement.UP_TO_DATE,
        Placement.AHEAD,
        Placement.WRITE,
        Placement.NONE,
    ]
    assert (move.ahead, move.exact, move.members_at_origin) == ((("g", "A.t", 2, 7),), True, 2)
    agreed = with_consent(decision, move.ahead)
    assert agreed.writes == {TopicPartition("A.t", number): CommittedOffset(offset, -1) for number, offset in ((0, 9), (2, 5), (3, 1))}
    assert [entry.action for entry in described_move(agreed, 0, {}).partitions][2] is Placement.BACK
    plan = RecoveryPlan(RecoveryOptions("failover", "run"), "A->B", moves=(move,))
    rows = [str(row[-1]) for row in group_table(plan).rows]
    assert "2 members" in rows[0]
    assert (rows[1], rows[2].endswith(", exact"), "at 7, translated 5" in rows[3]) == ("exact", True, True)
    back = replace(plan, options=RecoveryOptions("failover", "run", backwards=True))
    assert group_table(back).rows[3][-1] == "goes BACK, exact"


@pytest.mark.parametrize(
    ("translation", "most"),
    [
        (Translation(7), 0),
        (Translation(7, Inexact.MERGED), 13),
        (Translation(7, Inexact.AHEAD, 4), 17),
        (Translation(25, Inexact.AHEAD, 4), 4),
    ],
)
def test_how_many_offsets_are_read_again_at_most(translation: Translation, most: int) -> None:
    """A group at the tail of its log is ahead of what was copied: that is read again too, once it is there."""
    position = TranslatedPosition("g-tail", "t", 0, "A.t", 10, translation)
    decision = decide_group("g-tail", [position], TargetGroup(DESCRIPTION, {}), {"A.t": 1}, alias="B")
    (move,) = described_move(decision, 0, {TopicPartition("A.t", 0): 20}).partitions
    assert move.re_reads == most
    assert how(move).startswith(f"reads at most {most} again" if most else "exact")


def test_a_group_with_members_is_never_written() -> None:
    decision = decided({0: 7, 1: 3}, {0: 5, 1: 5}, members=2)
    assert not with_consent(decision, [("g", "A.t", 0, 7)]).writes
    move = described_move(decision, 0, {})
    assert "2 members on B" in move.obstacle
    assert {entry.action for entry in move.partitions} == {Placement.NONE}


def test_a_group_is_not_done_while_a_cluster_does_not_answer_for_a_partition() -> None:
    """A partition without a position on the other side begins by the consumer's reset policy: it could skip records."""
    known = TranslatedPosition("g", "t", 0, "A.t", 10, Translation(7))
    kept_back = TranslatedPosition("g", "t", 1, "A.t", 10, None, problem="A: no leader", unread=True)
    never_copied = TranslatedPosition("g", "other", 0, "", 10, None, problem="the flow does not copy the topic")
    target = TargetGroup(DESCRIPTION, {TopicPartition("A.t", 0): CommittedOffset(7)})
    for positions, problems in (((known, kept_back), ("A.t-1: A: no leader",)), ((known, never_copied), ())):
        decision = decide_group("g", positions, target, {"A.t": 2}, alias="B")
        outcome = outcome_of(GroupResult(decision), {})
        assert (outcome.done, outcome.problems) == (not problems, problems)


def test_a_group_is_not_done_if_something_was_not_written() -> None:
    decision = decided({}, {0: 5, 1: 6})
    refused = outcome_of(GroupResult(decision, None, {TopicPartition("A.t", 1): NotWritten("no right", "NotAuthorized")}), {})
    assert (refused.done, refused.written, refused.problems) == (False, 1, ("A.t-1: NotAuthorized: no right",))
    active = outcome_of(GroupResult(decision, NotWritten("it became active")), {})
    assert (active.done, active.written, active.problems) == (False, 0, ("it became active",))


@given(present=OFFSETS, image=st.integers(0, 5), shown=OFFSETS)
def test_a_partition_goes_back_only_from_the_offset_that_was_shown(present: int | None, image: int, shown: int | None) -> None:
    consent: list[PlaceShown] = [] if shown is None else [("g", "A.t", 0, shown)]
    decision = with_consent(decided({} if present is None else {0: present}, {0: image}), consent)
    forward = present is None or present < image
    back = present is not None and present > image and shown == present
    assert bool(decision.writes) == (forward or back)


def test_a_group_of_an_earlier_try_goes_back_only_from_its_offset_of_then() -> None:
    shown = [("g", "A.t", 0, 7), ("g", "A.t", 1, 8), ("other", "A.t", 0, 9)]
    taken = {"g": GroupTaken("g", "failover 1", (("A.t", 0, 7),))}
    assert without_taken(shown, taken, "failover 1") == {shown[0], shown[2]}
    assert without_taken(shown, taken, "failover 2") == set(shown)


def receipt(upstream: int, downstream: int, count: int) -> Receipt:
    return Receipt(
        ReceiptKind.COPIED,
        "t",
        0,
        "s",
        "t",
        "r",
        upstream,
        upstream + count,
        downstream + count,
        ((upstream, downstream, count),),
        counters=Counters(count, transactions=1),
    )


@pytest.mark.parametrize(
    ("receipts", "end", "expected"),
    [
        # Copied without records of the target's own between: what was copied since the checkpoint counts.
        ([receipt(0, 0, 10), receipt(10, 11, 10)], 22, Translation(16)),
        # The target's own records at 11 to 14: the group may not have read them, so its place of then counts.
        ([receipt(0, 0, 10), receipt(10, 15, 10)], 26, Translation(10, Inexact.MERGED)),
        # They lie behind all copies.
        ([receipt(0, 0, 10), receipt(10, 11, 10)], 40, Translation(10, Inexact.MERGED)),
    ],
)
def test_the_image_of_a_checkpoint_where_names_stay(receipts: list[Receipt], end: int, expected: Translation) -> None:
    known = OffsetMap(receipts, LogBounds(target_end=end))
    checkpoint = Checkpoint("g", "t", 0, 15, 10)
    assert checkpoint_image(known, checkpoint, one_name=True) == expected
    assert checkpoint_image(known, checkpoint, one_name=False) == known.translate(15)
