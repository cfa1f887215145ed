"""Moving groups when both sides answer: a planned cut-over from A to B, and a failback from B to A.

Copy while everything runs; then producers stop, which is measured; then the rest is copied until nothing is left; then both sides are
compared; then a person confirms the table, and groups are written. Before the first group is written, it is checked once more that nothing
is left. Groups that still have members, on either side, are not written, but named: the flow stays in the middle until they are, and the
same command goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ferry.copying.request import RunRequest
from ferry.errors import FerryError, RecoveryStopped
from ferry.ledger.recovery_entries import CutEnds
from ferry.ledger.recovery_record import DONE, current_record, cut_of, done_groups, ended_by, not_home, read_recovery, stage_of
from ferry.ledger.stages import Event, Stage, advance
from ferry.pipeline.plan import plan_run
from ferry.recovery.draining import Copy, drain, refuse_rest
from ferry.recovery.group_moves import GroupMove, without_taken
from ferry.recovery.keeper import RecoveryKeeper
from ferry.recovery.moving import GroupOutcome, members_of, move_groups, plan_moves, refused_groups
from ferry.recovery.not_copied import NotCopied, not_copied
from ferry.recovery.readings import GroupReading, cluster_id_of, read_groups
from ferry.recovery.report import Confirmation, Mode, RecoveryOptions, RecoveryPlan, RecoveryReport
from ferry.recovery.reverse import cut_ends, refuse_other_way, seed_reverse, start_positions
from ferry.recovery.source_identity import refuse_another_source
from ferry.recovery.stopwatch import Stopwatch
from ferry.verify.range_runner import InlineRangeRunner
from ferry.verify.report import VerifyReport
from ferry.verify.request import VerifyRequest
from ferry.verify.verifying import verify

if TYPE_CHECKING:
    from ferry.config import Flow

Say = Callable[[str], None]


@dataclass(frozen=True)
class SwitchOver:
    """`flow` is the forward flow, whose state tells the stage; `onward` copies from where groups are to where they go.

    `reverse`: the flow in the other direction, None where the file has none. `back`: from the flow's target to its source.
    """

    flow: Flow
    onward: Flow
    reverse: Flow | None
    begins: Event
    ends: Event

    @property
    def back(self) -> bool:
        """Whether groups go back to the flow's source."""
        return self.begins is Event.FAILBACK_BEGINS


def cutover(flow: Flow, reverse: Flow | None) -> SwitchOver:
    """From the flow's source to its target."""
    return SwitchOver(flow, flow, reverse, Event.CUTOVER_BEGINS, Event.CUTOVER_ENDS)


def failback(flow: Flow, reverse: Flow) -> SwitchOver:
    """From the flow's target to its source, by the flow in the other direction."""
    return SwitchOver(flow, reverse, reverse, Event.FAILBACK_BEGINS, Event.FAILBACK_ENDS)


def check_passage(passage: SwitchOver, options: RecoveryOptions, *, rebuilt: bool = False) -> RecoveryPlan:
    """Whether it can begin. ClusterUnreachable when a cluster does not answer; RecoveryStopped in the middle of something else, or when
    the source is not what it was and nobody said so (`rebuilt`)."""
    watch, flow = Stopwatch(), passage.flow
    with watch.step("look at both clusters"):
        record = current_record(flow, read_recovery(flow, settled=options.writes))
        advance(flow.name, stage_of(record), passage.begins)
        identity = cluster_id_of(flow.source)
        notices = refuse_another_source(flow, record, identity, rebuilt=rebuilt) if passage.back else refuse_other_way(flow)
        if not passage.onward.exactly_once:
            raise RecoveryStopped(f"{passage.onward.name} copies at least once: set transaction.producer=true for it first")
    return RecoveryPlan(
        command=options.command,
        flow=flow.name,
        run_id=options.run_id,
        mode=options.mode,
        stage=record.stage,
        source_cluster=identity,
        notices=notices,
        steps=watch.steps,
    )


def settle_start(passage: SwitchOver, options: RecoveryOptions) -> tuple[str, ...]:
    """Write down where the reverse flow begins that has never run; what was written. RecoveryStopped when it cannot be."""
    if not passage.back:
        return ()
    positions, recovery = _starts(passage)
    outcome = seed_reverse(passage.onward, positions, f"{options.run_id}__seed", recovery)
    if outcome is None:
        return ()
    if outcome.failed:
        raise RecoveryStopped(f"{passage.onward.name} could not begin: {'; '.join(map(str, outcome.failed))}")
    return tuple(f"{passage.onward.name}: {entry.topic}-{entry.partition} begins at {entry.position}" for entry in outcome.seeds)


def copy_ahead(flow: Flow, options: RecoveryOptions, copy: Copy, what: str) -> str:
    """A run while producers are still at work, so that little is left when they stop; what it did."""
    report = copy(flow, RunRequest(flow.name, f"{options.run_id}__{what}"))
    report.raise_for_outcome()
    return f"{flow.name}: {report.records:,} records in {report.seconds:.1f} s"


def drain_and_verify(passage: SwitchOver, options: RecoveryOptions, copy: Copy, say: Say, *, compare: bool) -> tuple[str, str]:
    """Copy the rest and compare both sides; what was done, in words. RecoveryStopped when something is left, or differs."""
    records = drain(passage.onward, options.run_id, copy)
    told = f"{passage.onward.name}: {records:,} records drained, nothing is left"
    if not compare:
        return told, "not asked for"
    return told, verified(verify(passage.onward, VerifyRequest(passage.onward.name, f"{options.run_id}__verify"), InlineRangeRunner(), say))


def verified(outcome: VerifyReport) -> str:
    """What a verify found, in words; RecoveryStopped when the sides differ, or could not be compared."""
    problems = outcome.problems()
    if problems:
        told = "; ".join(f"{type(problem).__name__}: {problem}" for problem in problems)
        raise RecoveryStopped(f"the sides are not proven equal: {told}")
    return f"{outcome.records:,} records are equal on both sides"


def plan_passage(passage: SwitchOver, options: RecoveryOptions, checked: RecoveryPlan) -> RecoveryPlan:
    """What would be written for every group, and what is not on the other side. Reads only."""
    watch = Stopwatch()
    with watch.step("translate groups"):
        reading = _read(passage, options)
    with watch.step("look at groups"):
        moves, unread = plan_moves(passage.onward.target, reading.positions, passage.onward.source)
    if options.mode is Mode.REHEARSAL:
        with watch.step("ask for the right to write groups"):
            unread = (*unread, *refused_groups(passage.onward.target, reading.positions))
    with watch.step("what is not copied"):
        missing, problems = _missing(passage, options)
    return replace(
        checked,
        moves=tuple(_held(move, passage) for move in moves),
        unread=(*reading.told_unread, *unread),
        left_out=reading.left_out,
        missing=missing,
        notices=(*checked.notices, *reading.notices),
        problems=(*checked.problems, *problems),
        steps=(*checked.steps, *watch.steps),
    )


def carry_out_passage(
    passage: SwitchOver, options: RecoveryOptions, plan: RecoveryPlan, confirmed: Confirmation, proven: str
) -> RecoveryReport:
    """Write the groups; the stage ends when none is left over. `proven`: what a verify said."""
    watch, flow, onward = Stopwatch(), passage.flow, passage.onward
    with RecoveryKeeper(flow) as keeper:
        if ended_by(keeper.record, passage.ends, options.run_id):
            return _told_again(keeper, plan, proven)
        advance(flow.name, stage_of(keeper.record), passage.begins)
        with watch.step("check that nothing is left"):
            refuse_rest(onward, options.run_id)
        with watch.step("say that groups move"):
            record = keeper.begin(
                passage.begins,
                name=f"{options.command} {options.run_id}",
                run_id=options.run_id,
                confirmed_by=confirmed.by,
                source_cluster=plan.source_cluster,
                cut=partial(cut_ends, flow, passage.reverse),
            )
        with watch.step("write groups"):
            reading = _read(passage, options)
            idle, busy = _without_members(reading, passage)
            agreed = without_taken(confirmed.back, keeper.state.taken, record.phase)
            outcomes = (*move_groups(onward.target, idle.positions, agreed, record.phase, keeper.take), *busy)
            keeper.note("groups written")
        left = _left_out(passage, options, keeper)
        if all(entry.done for entry in outcomes) and not (reading.unread or left):
            keeper.end(passage.ends, DONE)
        return RecoveryReport(
            plan=plan,
            recovery=record.recovery,
            stage=keeper.record.stage,
            confirmed_by=confirmed.by,
            groups=outcomes,
            verified=proven,
            problems=(*reading.told_unread, *left),
            steps=watch.steps,
        )


def _read(passage: SwitchOver, options: RecoveryOptions) -> GroupReading:
    """Positions on the other side, without groups that this very movement has done."""
    state = read_recovery(passage.flow, settled=options.writes)
    record = current_record(passage.flow, state)
    reading = read_groups(passage.flow, away=False, back=passage.back, only=options.only)
    moving = {Stage.FAILING_BACK} if passage.back else {Stage.CUTTING_OVER, Stage.CUT_OVER}
    return reading.without(done_groups(state, record)) if stage_of(record) in moving else reading


def _told_again(keeper: RecoveryKeeper, plan: RecoveryPlan, proven: str) -> RecoveryReport:
    """What an earlier try of this very run has done to the end: it was killed before it could say so."""
    record = keeper.record
    done = done_groups(keeper.state, record)
    outcomes = tuple(GroupOutcome(GroupMove(group, "", ()), done=True) for group in sorted(done))
    return RecoveryReport(plan, record.recovery, record.stage, record.confirmed_by, outcomes, verified=proven)


def _left_out(passage: SwitchOver, options: RecoveryOptions, keeper: RecoveryKeeper) -> tuple[str, ...]:
    """Groups that are to come home and that --groups leaves out: the flow does not replicate again before they have."""
    if options.only is None or not passage.back:
        return ()
    left = not_home(keeper.state, keeper.record, _read(passage, replace(options, only=None)).positions)
    return tuple(f"group {group}: it went by {keeper.record.recovery}, and is not among the groups of this command" for group in left)


def _starts(passage: SwitchOver) -> tuple[Mapping[tuple[str, int], int], str]:
    state = read_recovery(passage.flow)
    record = current_record(passage.flow, state)
    cut: dict[str, CutEnds] = cut_of(state, record)
    return start_positions(passage.onward, cut), record.recovery


def _missing(passage: SwitchOver, options: RecoveryOptions) -> tuple[tuple[NotCopied, ...], tuple[str, ...]]:
    try:
        planned = plan_run(passage.onward, RunRequest(passage.onward.name, options.run_id))
    except FerryError as problem:
        if options.writes:
            raise
        return (), (f"{passage.onward.name}: {type(problem).__name__}: {problem}",)
    starts = _starts(passage)[0] if passage.back and not options.writes else {}
    rest = tuple(_begun_at(entry, starts.get((entry.topic, entry.partition))) for entry in not_copied(planned))
    return tuple(entry for entry in rest if entry.offsets or entry.reason), tuple(str(failure) for failure in planned.failed)


def _begun_at(entry: NotCopied, start: int | None) -> NotCopied:
    if start is None or entry.end is None:
        return entry
    return replace(entry, start=start, offsets=max(0, entry.end - start))


def _without_members(reading: GroupReading, passage: SwitchOver) -> tuple[GroupReading, tuple[GroupOutcome, ...]]:
    """Groups that can be moved, and the others: who still reads where a group comes from would go on there."""
    members, unknown = members_of(passage.onward.source, reading.positions)
    busy = unknown | {group: _why(count, passage) for group, count in members.items() if count}
    positions = {group: found for group, found in reading.positions.items() if group not in busy}
    return replace(reading, positions=positions), tuple(
        GroupOutcome(GroupMove(group, why, (), members.get(group, 0)), done=False, problems=(why,)) for group, why in sorted(busy.items())
    )


def _held(move: GroupMove, passage: SwitchOver) -> GroupMove:
    return replace(move, obstacle=_why(move.members_at_origin, passage)) if move.members_at_origin and not move.obstacle else move


def _why(members: int, passage: SwitchOver) -> str:
    return f"it has {members} members on {passage.onward.source.alias}: stop them first"


def tail(flow: Flow, options: RecoveryOptions) -> Iterable[NotCopied]:
    """What of the source was never copied to the target: records of before the failover."""
    return not_copied(plan_run(flow, RunRequest(flow.name, options.run_id)))
