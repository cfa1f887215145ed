"""The reasons that the page's row of a group gives."""

from __future__ import annotations

import pytest

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupState
from ferry.clusters.net.partitions import TopicPartition
from ferry.page.groups_reading import _reasons
from ferry.syncs.group_decision import TargetGroup, decide_group
from ferry.translation.translated import TranslatedPosition, Translation

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("state", "reasons"),
    [
        (GroupState.EMPTY.value, ["not copied", "B is ahead: at 9, translated 5; a group never goes back"]),
        (
            "Stable",
            [
                "it is Stable on B, and Ferry writes only groups without members",
                "not copied",
                "B is ahead: at 9, translated 5; a group never goes back",
            ],
        ),
    ],
)
def test_the_reason_of_the_group_comes_first_and_once(state: str, reasons: list[str]) -> None:
    copied = [TranslatedPosition("g", "t", number, "A.t", 5, Translation(5)) for number in range(4)]
    other = [TranslatedPosition("g", "u", number, "", 5, None, problem="not copied") for number in range(2)]
    there = {TopicPartition("A.t", 0): CommittedOffset(5), TopicPartition("A.t", 1): CommittedOffset(9)}
    target = TargetGroup(GroupDescription("g", state, "classic"), there)
    assert _reasons(decide_group("g", [*copied, *other], target, {"A.t": 4}, alias="B")) == reasons
