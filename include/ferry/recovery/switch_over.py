"""The stages of a planned move, when both clusters answer: a cut-over from A to B, and a failback from B to A.

Ferry first copies while everything runs, so that little is left when producers stop. Before it writes the first group, it checks again that
nothing is left to copy. It does not write groups that still have members on either cluster; it names them. The flow then stays between
its stages until the same command has written these groups too.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.request import RunRequest
from ferry.errors import FerryError, RecoveryStopped, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import DONE, Event, advance, current_record, has_ended, not_home, read_recovery, stage_of
from ferry.pipeline.run_plan import plan_run
from ferry.recovery.keeper import RecoveryKeeper, keep_recovery
from ferry.recovery.moving import GroupMove, GroupOutcome, members_of
from ferry.recovery.not_copied import Copy, NotCopied, not_copied, refuse_rest
from ferry.recovery.options import RecoveryOptions
from ferry.recovery.readings import GroupReading, groups_planned, groups_to_move
from ferry.recovery.recovery_report import Confirmation, RecoveryPlan, RecoveryReport, Stopwatch
from ferry.recovery.reverse import cut_ends, refuse_another_source, refuse_other_way, require_reverse, seed_reverse, start_positions
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest
from ferry.verify.verify_report import VerifyReport
from ferry.verify.verifying import verify


@dataclass(frozen=True)
class SwitchOver:
    """A movement of groups while both clusters answer."""

    flow: OpenFlow
    active: OpenFlow
    reverse: OpenFlow | None
    begins: Event
    ends: Event

    @property
    def back(self) -> bool:
        """Whether groups move from the flow's target back to its source."""
        return self.begins is Event.FAILBACK_BEGINS


def cutover(flow: OpenFlow, reverse: OpenFlow | None) -> SwitchOver:
    """From the flow's source to its target."""
    return SwitchOver(flow, flow, reverse, Event.CUTOVER_BEGINS, Event.CUTOVER_ENDS)


def failback(flow: OpenFlow, reverse: OpenFlow | None) -> SwitchOver:
    """From the flow's target to its source, by the flow in the other direction. ArgumentError if there is none."""
    return SwitchOver(flow, require_reverse(flow.flow, reverse), reverse, Event.FAILBACK_BEGINS, Event.FAILBACK_ENDS)


def report_of_ended(switch: SwitchOver, options: RecoveryOptions) -> RecoveryReport | None:
    """The report of a movement that ended before and leaves no group to move; None: there is something to do."""
    flow = switch.flow.flow
    record = current_record(flow, read_recovery(switch.flow, stable=options.writes))
    if has_ended(record, switch.ends) and (switch.back or groups_to_move(switch.flow, options, back=switch.back).nothing_left):
        return RecoveryReport(RecoveryPlan(options, flow.name, record.stage), record)
    return None


def check_switch_over(switch: SwitchOver, options: RecoveryOptions, *, rebuilt: bool = False) -> RecoveryPlan:
    """Whether it can begin. ClusterUnreachable when a cluster does not answer. RecoveryStopped while another movement is not finished, and
    when the source is another one than it was, unless it was `rebuilt`."""
    watch, opened, flow = Stopwatch(), switch.flow, switch.flow.flow
    with watch.step("look at both clusters"):
        record = current_record(flow, read_recovery(opened, stable=options.writes))
        advance(flow.name, stage_of(record), switch.begins)
        identity = opened.source.admin.cluster_id()
        if switch.back:
            notices = refuse_another_source(opened, record, identity, rebuilt=rebuilt)
        else:
            notices = refuse_other_way(opened, switch.reverse)
        if not switch.active.flow.exactly_once:
            raise RecoveryStopped(f"{switch.active.flow.name} copies at least once: set transaction.producer=true for it first")
    return RecoveryPlan(options, flow.name, record.stage, source_cluster=identity, notices=notices, steps=watch.steps)


def settle_start(switch: SwitchOver, options: RecoveryOptions) -> tuple[str, ...]:
    """Seed the partitions that the reverse flow has never copied; returns the seeds. RecoveryStopped when they cannot be written."""
    state = read_recovery(switch.flow)
    told, failed = seed_reverse(switch.active, state, current_record(switch.flow.flow, state), options.part("seed"))
    if failed:
        raise RecoveryStopped(f"{switch.active.flow.name} could not begin: {'; '.join(failed)}")
    return told


def copy_ahead(opened: OpenFlow, options: RecoveryOptions, copy: Copy, what: str) -> str:
    """Copy while producers still write, so that little is left when they stop; returns what the run did, in words."""
    flow = opened.flow
    report = copy(opened, RunRequest(flow.name, options.part(what)))
    opened.anew()
    report.raise_for_outcome()
    return f"{flow.name}: {count_of(report.records, 'record')} in {report.seconds:.1f} s"


def compare_sides(opened: OpenFlow, options: RecoveryOptions, say: Callable[[str], None]) -> str:
    """Compare both clusters in this process; returns and raises as `verified` does."""
    return verified(verify(opened, VerifyRequest(opened.flow.name, options.part("verify")), verify_inline, say))


def verified(outcome: VerifyReport) -> str:
    """What a verify found, in words. RecoveryStopped when both clusters differ or could not be compared."""
    problems = outcome.problems()
    if problems:
        told = "; ".join(problem.named for problem in problems)
        raise RecoveryStopped(f"verify did not find both clusters equal: {told}")
    return f"equal on both sides: {count_of(outcome.records, 'record')}"


def plan_switch_over(switch: SwitchOver, checked: RecoveryPlan) -> RecoveryPlan:
    """What would be written for every group, and what is not copied yet. Reads only."""
    options, watch = checked.options, Stopwatch(checked.steps)
    checked = groups_planned(switch.flow, switch.active, checked, watch, back=switch.back)
    with watch.step("what is not copied"):
        missing, problems = _missing(switch, options)
    moves = tuple(
        replace(move, obstacle=move.obstacle or _why(move.members_at_origin, switch)) if move.members_at_origin else move
        for move in checked.moves
    )
    return replace(checked, moves=moves, missing=missing, problems=(*checked.problems, *problems), steps=watch.steps)


def carry_out_switch_over(switch: SwitchOver, plan: RecoveryPlan, confirmed: Confirmation, proven: str) -> RecoveryReport:
    """Write the groups. The stage ends when all of them are written. `proven`: what verify said."""
    options, watch, flow, active = plan.options, Stopwatch(), switch.flow, switch.active
    with keep_recovery(flow) as keeper:
        if keeper.record.run_id == options.run_id and has_ended(keeper.record, switch.ends):
            return RecoveryReport(plan, keeper.record, verified=proven)
        advance(flow.flow.name, stage_of(keeper.record), switch.begins)
        with watch.step("check that nothing is left"):
            refuse_rest(active, options.run_id)
        with watch.step("say that groups move"):
            keeper.begin(switch.begins, plan, confirmed.by, partial(cut_ends, flow, switch.reverse))
        with watch.step("write groups"):
            reading = groups_to_move(switch.flow, options, back=switch.back)
            idle, busy = _without_members(reading, switch)
            outcomes = (*keeper.move(active.target, idle.positions, confirmed.back), *busy)
        left = _left_out(switch, options, keeper)
        if all(entry.done for entry in outcomes) and not (reading.unread or left):
            keeper.end(switch.ends, DONE)
        problems = (*reading.unread, *left)
        return RecoveryReport(plan, keeper.record, outcomes, verified=proven, problems=problems, steps=watch.steps)


def _left_out(switch: SwitchOver, options: RecoveryOptions, keeper: RecoveryKeeper) -> tuple[str, ...]:
    """Groups that have to move back and that --groups leaves out. The flow replicates again only after they have moved."""
    if options.only is None or not switch.back:
        return ()
    left = not_home(keeper.state, keeper.record, groups_to_move(switch.flow, replace(options, only=None), back=True).positions)
    return tuple(f"group {group}: {keeper.record.recovery} moved it, and --groups of this command leaves it out" for group in left)


def _missing(switch: SwitchOver, options: RecoveryOptions) -> tuple[tuple[NotCopied, ...], tuple[str, ...]]:
    active = switch.active
    if options.writes:  # time has passed since it was read
        active.anew()
    try:
        planned = plan_run(active, RunRequest(active.flow.name, options.run_id))
    except FerryError as problem:
        if options.writes:
            raise
        return (), (f"{active.flow.name}: {problem.named}",)
    starts: Mapping[TopicPartition, int] = {}
    if switch.back and not options.writes:  # otherwise they are seeds by now
        state = read_recovery(switch.flow)
        starts = start_positions(active, state, current_record(switch.flow.flow, state))
    rest = [_begun_at(one, starts.get(TopicPartition(one.topic, one.partition))) for one in not_copied(planned, active.flow)]
    return tuple(entry for entry in rest if entry.offsets or entry.reason), tuple(str(failure) for failure in planned.failed)


def _begun_at(entry: NotCopied, start: int | None) -> NotCopied:
    if start is None or entry.end is None:
        return entry
    return replace(entry, start=start, offsets=max(0, entry.end - start))


def _without_members(reading: GroupReading, switch: SwitchOver) -> tuple[GroupReading, tuple[GroupOutcome, ...]]:
    """Groups that can be moved, and the outcomes of those that cannot: their consumers still read on the cluster that they leave."""
    members, unknown = members_of(switch.active.source, reading.positions)
    busy = unknown | {group: _why(count, switch) for group, count in members.items() if count}
    positions = {group: found for group, found in reading.positions.items() if group not in busy}
    return replace(reading, positions=positions), tuple(
        GroupOutcome(GroupMove(group, why, (), members.get(group, 0)), done=False, problems=(why,)) for group, why in sorted(busy.items())
    )


def _why(members: int, switch: SwitchOver) -> str:
    return f"it has {count_of(members, 'member')} on {switch.active.source.alias}: stop them first"


def tail(opened: OpenFlow, options: RecoveryOptions) -> Iterable[NotCopied]:
    """The records of the source that were never copied to the target before the failover."""
    return not_copied(plan_run(opened, RunRequest(opened.flow.name, options.run_id)), opened.flow)
