"""The stages of a flow between replicating and failed over, and the table of transitions (pure).

A flow replicates until a failover or a planned cut-over moves its groups. It is then failed over (or cut over) until a failback moves them
back. Every step can be repeated: if a command was stopped, running it again goes on. Abandoning writes nothing to groups; it only records
on which cluster they are.
"""

from collections.abc import Mapping
from enum import StrEnum

from ferry.errors import RecoveryStopped


class Stage(StrEnum):
    """The stages. A flow without a record replicates."""

    REPLICATING = "replicating"
    FAILING_OVER = "failing-over"
    FAILED_OVER = "failed-over"
    CUTTING_OVER = "cutting-over"
    CUT_OVER = "cut-over"
    FAILING_BACK = "failing-back"


class Event(StrEnum):
    """What changes the stage. `…_BEGINS` is written before the first group, `…_ENDS` after the last step."""

    FAILOVER_BEGINS = "failover begins"
    FAILOVER_ENDS = "failover ends"
    FAILOVER_ABANDONED = "failover abandoned"
    CUTOVER_BEGINS = "cut-over begins"
    CUTOVER_ENDS = "cut-over ends"
    CUTOVER_ABANDONED = "cut-over abandoned"
    FAILBACK_BEGINS = "failback begins"
    FAILBACK_ENDS = "failback ends"
    FAILBACK_ABANDONED = "failback abandoned"


TRANSITIONS: Mapping[tuple[Stage, Event], Stage] = {
    (Stage.REPLICATING, Event.FAILOVER_BEGINS): Stage.FAILING_OVER,
    (Stage.FAILING_OVER, Event.FAILOVER_BEGINS): Stage.FAILING_OVER,
    (Stage.FAILED_OVER, Event.FAILOVER_BEGINS): Stage.FAILING_OVER,  # for groups that could not be written then
    (Stage.CUTTING_OVER, Event.FAILOVER_BEGINS): Stage.FAILING_OVER,  # the source went away meanwhile
    (Stage.FAILING_OVER, Event.FAILOVER_ENDS): Stage.FAILED_OVER,
    (Stage.FAILING_OVER, Event.FAILOVER_ABANDONED): Stage.REPLICATING,
    (Stage.FAILED_OVER, Event.FAILOVER_ABANDONED): Stage.REPLICATING,
    (Stage.REPLICATING, Event.CUTOVER_BEGINS): Stage.CUTTING_OVER,
    (Stage.CUTTING_OVER, Event.CUTOVER_BEGINS): Stage.CUTTING_OVER,
    (Stage.CUT_OVER, Event.CUTOVER_BEGINS): Stage.CUTTING_OVER,  # for groups that were left out then
    (Stage.CUTTING_OVER, Event.CUTOVER_ENDS): Stage.CUT_OVER,
    (Stage.CUTTING_OVER, Event.CUTOVER_ABANDONED): Stage.REPLICATING,
    (Stage.CUT_OVER, Event.CUTOVER_ABANDONED): Stage.REPLICATING,
    (Stage.FAILED_OVER, Event.FAILBACK_BEGINS): Stage.FAILING_BACK,
    (Stage.CUT_OVER, Event.FAILBACK_BEGINS): Stage.FAILING_BACK,
    (Stage.FAILING_BACK, Event.FAILBACK_BEGINS): Stage.FAILING_BACK,
    (Stage.FAILING_BACK, Event.FAILBACK_ENDS): Stage.REPLICATING,
    (Stage.FAILING_BACK, Event.FAILBACK_ABANDONED): Stage.FAILED_OVER,
}

# What a person can do in each stage.
_NEXT: Mapping[Stage, str] = {
    Stage.REPLICATING: "there is nothing to come back from: `ferry failover` or `ferry cutover` goes first",
    Stage.FAILING_OVER: "a failover stopped in the middle: run `ferry failover` again, or with --abandon",
    Stage.FAILED_OVER: "it is failed over: come back with `ferry failback`, or say `ferry failover --abandon`",
    Stage.CUTTING_OVER: "a cut-over stopped in the middle: run `ferry cutover` again, or with --abandon",
    Stage.CUT_OVER: "it is cut over: come back with `ferry failback`, or say `ferry cutover --abandon`",
    Stage.FAILING_BACK: "a failback stopped in the middle: run `ferry failback` again, or with --abandon",
}


def advance(flow: str, stage: Stage, event: Event) -> Stage:
    """The stage after `event`. If the event is not possible, RecoveryStopped says what is."""
    found = TRANSITIONS.get((stage, event))
    if found is None:
        raise RecoveryStopped(f"flow {flow} is {stage.value}: {_NEXT[stage]}")
    return found


def groups_are_moving(stage: Stage) -> bool:
    """Whether positions at the source may be older than those on the target. Then no group sync may write them."""
    return stage is not Stage.REPLICATING
