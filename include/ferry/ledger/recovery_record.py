"""The record of a failover, failback or cut-over in the state topic, and how it changes (pure, except for reading it).

A flow replicates until a failover or a planned cut-over moves its groups. It is then failed over (or cut over) until a failback moves them
back. If a command was stopped, running it again goes on. Abandoning writes nothing to groups; it only records on which cluster they are.

While groups move, and as long as they are on the other cluster, the flow's group sync must not write them: their positions at the source
are older than those on the target.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from ferry.config import Flow
from ferry.errors import RecoveryStopped, time_text
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.state import CutEnds, FlowState, RecoveryRecord

DONE = "done"  # the last step of a movement that has ended
ABANDONED = "abandoned"


class Stage(StrEnum):
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
_SINCE = {
    Stage.FAILING_OVER: "failing over since",
    Stage.FAILED_OVER: "failed over at",
    Stage.CUTTING_OVER: "cutting over since",
    Stage.CUT_OVER: "cut over at",
    Stage.FAILING_BACK: "failing back; failed over at",
}


def advance(flow: str, stage: Stage, event: Event) -> Stage:
    """The stage after `event`. If the event is not possible, RecoveryStopped names those that are."""
    found = TRANSITIONS.get((stage, event))
    if found is None:
        raise RecoveryStopped(f"flow {flow} is {stage.value}: {_NEXT[stage]}")
    return found


def read_recovery(opened: OpenFlow, *, stable: bool = True) -> FlowState:
    """Only the records about failovers of the state topic. NewerFormat as for any state.

    `stable`: read them now, and wait for open transactions. Otherwise what was read before counts.
    """
    return opened.ask_anew(stable=True).answer().recovery if stable else opened.recovery


def current_record(flow: Flow, state: FlowState) -> RecoveryRecord:
    """The flow's record. If there is none, the flow replicates."""
    return state.recovery or RecoveryRecord(flow.name, "", "", Stage.REPLICATING.value, "", 0, 0)


def stage_of(record: RecoveryRecord) -> Stage:
    """The record's stage. A stage that this Ferry does not know counts as FAILING_OVER, in which no group is synced."""
    return Stage(record.stage) if record.stage in set(Stage) else Stage.FAILING_OVER


def cut_of(state: FlowState, record: RecoveryRecord) -> dict[str, CutEnds]:
    """Where the target's topics ended when this recovery began, by topic."""
    return {topic: entry for topic, entry in state.cut.items() if entry.recovery == record.recovery}


def done_groups(state: FlowState, record: RecoveryRecord) -> frozenset[str]:
    """Groups that this movement has written. They are not touched again, because their consumers may have moved them since."""
    return frozenset(entry.group for entry in state.taken.values() if entry.done and entry.phase == record.phase)


def not_home(state: FlowState, record: RecoveryRecord, groups: Collection[str]) -> list[str]:
    """Those of `groups` that the failover or cut-over moved, and that the failback has not moved back (pure)."""
    if record.phase == record.recovery:
        return []
    return sorted(entry.group for entry in state.taken.values() if entry.phase == record.recovery and entry.group in groups)


def begun(state: FlowState, record: RecoveryRecord, event: Event, name: str, now: int) -> RecoveryRecord:
    """The flow's record when groups begin to move (pure). `name`: of a new movement. `now` in ms.

    RecoveryStopped if a movement of that name was abandoned or has ended: the groups that it wrote may have moved since.
    """
    before = stage_of(record)
    stage = advance(record.flow, before, event)
    fresh = before is Stage.REPLICATING
    turns = stage is Stage.FAILING_BACK and before is not stage
    kept = {*(entry.phase for entry in state.taken.values()), *(entry.recovery for entry in state.cut.values())}
    if (fresh or turns) and name in {record.recovery, record.phase, *kept}:
        raise RecoveryStopped(f"{name} was abandoned, or has ended, so its confirmation no longer counts: begin a new one")
    recovery = name if fresh else record.recovery
    phase = name if fresh or turns else record.phase
    since = now if fresh else record.since
    return replace(record, recovery=recovery, phase=phase, stage=stage.value, step="confirmed", at=now, since=since)


def ended(record: RecoveryRecord, event: Event, step: str, now: int) -> RecoveryRecord:
    """The flow's record after the last step, or when it is abandoned (pure). After an abandoned failback the failover counts again."""
    stage = advance(record.flow, stage_of(record), event)
    phase = record.recovery if stage is Stage.FAILED_OVER else record.phase
    return replace(record, phase=phase, stage=stage.value, step=step, at=now)


def has_ended(record: RecoveryRecord, event: Event, step: str = DONE) -> bool:
    """Whether the newest event is `event`, the end of a movement (pure)."""
    behind = {stage for (_, known), stage in TRANSITIONS.items() if known is event}
    return record.step == step and stage_of(record) in behind


def why_groups_may_not_be_synced(opened: OpenFlow) -> str:
    """Why no group may be synced now; empty when groups may be. Waits for open transactions, because the newest record decides."""
    flow = opened.flow
    record = current_record(flow, read_recovery(opened))
    stage = stage_of(record)
    if stage is Stage.REPLICATING:
        return ""
    return f"{flow.name} is {_SINCE[stage]} {iso(record.since)} ({record.recovery}): its groups are at {flow.target.alias} and go on there"


def iso(moment_ms: int | None) -> str | None:
    """A time for people and documents; None where it is not known."""
    return time_text(moment_ms) if moment_ms else None
