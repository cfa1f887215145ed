"""Two runs of one flow: exactly once with all of Ferry's rules, and what breaks without each of them."""

from __future__ import annotations

import os

import pytest
from tests.drills.model.exploring import Exploration, explore
from tests.drills.model.rules import Rules
from tests.drills.model.run_worlds import Scene
from tests.drills.model.runs import RunModel

pytestmark = pytest.mark.unit

NEW = Scene(2, None, again=(0, 0), losses=0, timeouts=0, doubles=0)
HISTORY = Scene(2, 1, backfill=True, again=(0, 0), losses=0, timeouts=0, doubles=0)
DUPLICATE = "a record is there twice"
FALSE_ALARM = "PositionDisagrees for no reason"


# A run follows, and another one takes over while it copies.
FOLLOWING = NEW._replace(follows=True, losses=1)
ONE_MORE_TRY = NEW._replace(again=(1, 0))
SCENES = [
    (ONE_MORE_TRY, True),
    (ONE_MORE_TRY._replace(end=1, losses=1), True),
    (ONE_MORE_TRY._replace(end=1, timeouts=1), False),
    (HISTORY._replace(losses=1, timeouts=1), True),
    (HISTORY._replace(losses=1, timeouts=1), False),
    (HISTORY._replace(losses=2), True),
    (FOLLOWING, True),
    (FOLLOWING._replace(timeouts=1), False),
]
# `make model`: minutes.
LARGER = [
    (NEW._replace(again=(0, 1)), True),
    (ONE_MORE_TRY._replace(losses=1), True),
    (ONE_MORE_TRY._replace(losses=1), False),
    (NEW._replace(again=(0, 1), losses=1), True),
    (HISTORY._replace(again=(1, 0), losses=1), True),
    (HISTORY._replace(again=(0, 1), losses=1), False),
    (NEW._replace(end=1, again=(1, 1)), True),
]


def found(scene: Scene, rules: Rules, *, strict: bool = True) -> Exploration:
    return explore(RunModel(scene, rules, strict=strict).world(bound=500_000))


@pytest.mark.parametrize(
    ("scene", "bumps"),
    [*SCENES, *(LARGER if "FERRY_MODEL_LARGER" in os.environ else ())],
    ids=str,
)
def test_with_all_rules_every_interleaving_is_exactly_once(scene: Scene, bumps: bool) -> None:
    seen = found(scene, Rules(bumps=bumps))
    print(f"{seen.states:,} states, {seen.steps:,} steps, {seen.goals} of them with all work done")  # noqa: T201 - for pytest -s
    assert not seen.violation, seen.text()
    assert seen.states > 1_000
    assert seen.goals


# Rule left out, in which scene, and what breaks; what only stops a run or lets an older one write is looked for strictly.
BROKEN = {
    "fence_at_start": (NEW._replace(end=1), Rules(fence_at_start=False), False, DUPLICATE),
    "fence_before_reading": (HISTORY, Rules(fence_before_reading=False), False, DUPLICATE),
    "first_attempt_only": (NEW._replace(end=1, doubles=1), Rules(first_attempt_only=False), False, DUPLICATE),
    "two_inits": (NEW._replace(end=1, doubles=1), Rules(two_inits=False, first_attempt_only=False), False, DUPLICATE),
    "conditional_recovery": (HISTORY._replace(losses=1), Rules(conditional_recovery=False), False, DUPLICATE),
    "look_after_lost_commit": (NEW._replace(end=1, losses=1), Rules(look_after_lost_commit=False), False, DUPLICATE),
    "look_at_mark": (HISTORY._replace(losses=1), Rules(look_at_mark=False), False, "count as copied"),
    "positions_sent_once": (NEW._replace(losses=1), Rules(positions_sent_once=False, bumps=False), False, "position and records disagree"),
    "receipt_inside": (NEW._replace(end=1), Rules(receipt_inside=False), False, "receipts and records disagree"),
    "grow_what_is_committed": (
        FOLLOWING,
        Rules(grow_what_is_committed=False),
        False,
        "a receipt names records of an aborted transaction",
    ),
    "prove_before_taking_back": (
        NEW._replace(end=1, again=(1, 0)),
        Rules(prove_before_taking_back=False, prove_after_taking=False),
        True,
        "a superseded run writes",
    ),
    "prove_after_taking": (NEW._replace(end=1, again=(1, 0)), Rules(prove_after_taking=False), True, "a superseded run writes"),
    "prove_before_blaming": (NEW, Rules(prove_before_blaming=False), True, FALSE_ALARM),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_without_a_rule(rule: str) -> None:
    scene, rules, strict, harm = BROKEN[rule]
    assert not getattr(rules, rule)
    seen = found(scene, rules, strict=strict)
    print(seen.text())  # noqa: T201 - for pytest -s
    assert harm in seen.violation
    repaired = Rules(bumps=rules.bumps)
    assert not found(scene, repaired, strict=strict).violation


def test_before_kip_890_a_late_position_would_come_back() -> None:
    """With it, the epoch of the transaction that it belonged to is over."""
    assert not found(NEW._replace(losses=1), Rules(positions_sent_once=False)).violation
