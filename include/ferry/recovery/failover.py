"""The stages of `ferry failover`: consumers go on at the target, even when the source is lost.

Before the confirmation, only the last copy writes anything, with the schemas that it needs. After the groups, Ferry records where the flow
in the other direction begins. A failover that was killed goes on where it stopped. While the flow is failed over, its group sync leaves
groups alone. Its runs may go on, because a copy never loses or doubles a record: late records of the source are appended on the target.
"""

from dataclasses import replace
from functools import partial

from ferry.config import Flow
from ferry.copying.fencing import RunLease
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FerryError, RecoveryStopped, count_of
from ferry.ledger.losses import open_losses
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import refuse_newer_state
from ferry.ledger.recovery_record import DONE, Event, Stage, advance, current_record, has_ended, read_recovery, stage_of
from ferry.ledger.run_report import loss_report
from ferry.pipeline.run_plan import plan_run
from ferry.recovery.keeper import RecoveryKeeper, keep_recovery
from ferry.recovery.not_copied import Copy, NotCopied, not_copied, perhaps_not_copied
from ferry.recovery.options import Mode, RecoveryOptions
from ferry.recovery.readings import groups_planned, groups_to_move, is_away
from ferry.recovery.recovery_report import Confirmation, RecoveryPlan, RecoveryReport, Stopwatch
from ferry.recovery.reverse import cut_ends, lines_to_add, refuse_other_way, seed_reverse
from ferry.verify.ids_in_copies import ids_in_copies


def check_failover(
    opened: OpenFlow, reverse: OpenFlow | None, options: RecoveryOptions, *, without_source: bool = False, copies: bool = True
) -> RecoveryPlan:
    """Whether it can begin, and whether the source answers. RecoveryStopped while another movement is not finished.

    `without_source`: do not ask the source, because one that is half broken may answer the first question and no other.
    `copies`: whether a last copy is wanted.
    """
    flow, watch = opened.flow, Stopwatch()
    with watch.step("look at both clusters"):
        # Does not wait for open transactions, which a run that was cut off may have left. keep_recovery reads the state again.
        record = current_record(flow, read_recovery(opened, stable=False))
        advance(flow.name, stage_of(record), Event.FAILOVER_BEGINS)
        away = "not asked" if without_source else is_away(opened.source)
    notices = () if away else refuse_other_way(opened, reverse)
    identity = "" if away else opened.source.admin.cluster_id()
    problems = []
    if record.source_cluster and identity and identity != record.source_cluster:
        problems.append(f"{flow.source.alias} had cluster id {record.source_cluster} and has {identity} now: it is another cluster")
    if not flow.exactly_once:
        inexact = "positions may be inexact, and the target may hold records twice"
        problems.append(f"{flow.name} copies at least once (transaction.producer=false): {inexact}")
    why_no_copy = f"{flow.source.alias} does not answer" if away else "" if copies else "not asked for"
    if not why_no_copy and not options.writes:
        why_no_copy = options.mode.value
    copy = why_no_copy and f"none: {why_no_copy}"
    return RecoveryPlan(
        options, flow.name, record.stage, away, identity, copy=copy, notices=notices, problems=tuple(problems), steps=watch.steps
    )


def last_copy(opened: OpenFlow, checked: RecoveryPlan, copy: Copy) -> RecoveryPlan:
    """Copy once more, if the source answers. A problem is reported, and does not stop the failover."""
    flow, options, watch = opened.flow, checked.options, Stopwatch(checked.steps)
    if checked.away:
        return checked
    with watch.step("last copy"):
        try:
            report = copy(opened, RunRequest(flow.name, options.part("copy")))
            told, problems = f"{count_of(report.records, 'record')} in {report.seconds:.1f} s", report.problems()
        except FerryError as problem:
            told, problems = "failed", [problem]
        opened.anew()
    failures = tuple(f"last copy: {problem.named}" for problem in problems)
    return replace(checked, copy=told, problems=(*checked.problems, *failures), steps=watch.steps)


def plan_failover(opened: OpenFlow, reverse: OpenFlow | None, checked: RecoveryPlan) -> RecoveryPlan:
    """What would be written for every group, and what is not on the target. Reads only, with one exception.

    If the source does not answer, a real failover first ends a run that was cut off, because its open transactions hold back every reader.
    """
    options, watch = checked.options, Stopwatch(checked.steps)
    away = checked.away or is_away(opened.source)
    if away and options.writes:
        with watch.step("end a run that was cut off"):
            end_cut_off_run(opened)
    checked = groups_planned(opened, opened, checked, watch, away=bool(away))
    with watch.step("what is not copied"):
        missing, known_until, problems = count_missing(opened, options, away=bool(away))
    with watch.step("look for ids of schemas"):
        problems += unreadable_copies(opened)
    if reverse is not None and options.writes:  # time has passed since it was read
        reverse.anew()
    with watch.step("losses and the way back"):
        losses = tuple(loss_report(entry).where for entry in open_losses(opened))
        way_back = _way_back(opened.flow, reverse, away)
    notices, problems = (*checked.notices, *way_back), (*checked.problems, *problems)
    return replace(
        checked, away=away, missing=missing, known_until=known_until, losses=losses, notices=notices, problems=problems, steps=watch.steps
    )


def carry_out_failover(opened: OpenFlow, reverse: OpenFlow | None, plan: RecoveryPlan, confirmed: Confirmation) -> RecoveryReport:
    """Write the groups, prepare the flow in the other direction, record that the flow is failed over, unless all that was done before.

    Positions are read again from where the confirmed plan had them. ClusterUnreachable when the source has stopped answering since. If the
    plan left nothing to do, nobody was asked: a group that has come since waits for the next command.
    """
    watch, read = Stopwatch(), partial(groups_to_move, opened, plan.options, away=bool(plan.away))
    with keep_recovery(opened) as keeper:
        if plan.nothing_left and stage_of(keeper.record) is not Stage.FAILED_OVER:
            raise RecoveryStopped(f"{opened.flow.name} is {keeper.record.stage} now, and nobody was asked: run this again")
        if plan.nothing_left or (has_ended(keeper.record, Event.FAILOVER_ENDS) and read().nothing_left):
            told, problems = prepare_reverse(reverse, keeper, plan)
            return RecoveryReport(plan, keeper.record, (), told, problems=problems, steps=watch.steps)
        with watch.step("say that groups move"):
            keeper.begin(Event.FAILOVER_BEGINS, plan, confirmed.by, partial(cut_ends, opened, reverse))
        with watch.step("write groups"):
            reading = read()
            outcomes = keeper.move(opened.target, reading.positions, confirmed.back)
        with watch.step("prepare the way back"):
            told, problems = prepare_reverse(reverse, keeper, plan)
        keeper.end(Event.FAILOVER_ENDS, DONE)
        return RecoveryReport(plan, keeper.record, outcomes, told, problems=(*reading.unread, *problems), steps=watch.steps)


def prepare_reverse(reverse: OpenFlow | None, keeper: RecoveryKeeper, plan: RecoveryPlan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Seed the reverse flow, if the source answers; returns what was done, and what went wrong. Otherwise a failback does it."""
    if reverse is None:
        return ("there is no flow in the other direction yet",), ()
    name = reverse.flow.name
    if plan.away:
        return (f"{name} begins where {reverse.source.alias}'s topics ended now; a failback writes it down",), ()
    try:
        told, failed = seed_reverse(reverse, keeper.state, keeper.record, plan.options.part("seed"))
    except FerryError as problem:  # the groups are written; this can be done later
        return (), (f"{name}: {problem.named}",)
    return (told if told or failed else (f"{name} already has its positions",)), failed


def count_missing(opened: OpenFlow, options: RecoveryOptions, *, away: bool) -> tuple[tuple[NotCopied, ...], int | None, tuple[str, ...]]:
    """The records that the target lacks; if they cannot be counted, when (ms) one was last copied; and problems, which stop no failover."""
    if away:
        return (*perhaps_not_copied(opened), ())
    try:
        planned = plan_run(opened, RunRequest(opened.flow.name, options.run_id))
    except FerryError as problem:
        return (*perhaps_not_copied(opened), (f"what is not copied cannot be counted: {problem.named}",))
    return not_copied(planned, opened.flow), None, tuple(str(failure) for failure in planned.failed)


def unreadable_copies(opened: OpenFlow) -> tuple[str, ...]:
    """What the newest copied records need and the target's schema registry does not have. It stops no failover."""
    if not opened.flow.target.has_schema_registry:
        return ()
    try:
        found = ids_in_copies(opened)
    except FerryError as problem:
        return (f"whether consumers find the schemas of copied records is not known: {problem.named}",)
    return tuple(f"{place}: {problem}, so consumers cannot read it" for place, problem in found.unknown.items())


def _way_back(flow: Flow, reverse: OpenFlow | None, away: str) -> tuple[str, ...]:
    if reverse is None:
        return (f"there is no enabled flow {flow.reverse_name}: to come back, add {'; '.join(lines_to_add(flow))}",)
    name = reverse.flow.name
    if away:
        return (f"{name} was not looked at: {flow.source.alias} does not answer",)
    try:
        planned = plan_run(reverse, RunRequest(name, "look"))
    except FerryError as problem:
        return (f"{name}: {problem.named}",)
    return tuple(f"{name}: {failure}" for failure in planned.failed)


def exit_code_of(plan: RecoveryPlan) -> ExitCode:
    """The exit code of a dry run or rehearsal: 5 if groups cannot be written or read; as of a real one, missing records do not count."""
    return ExitCode.PARTLY_FAILED if plan.unread or any(move.obstacle for move in plan.moves) else ExitCode.DONE


def rehearsed(plan: RecoveryPlan) -> tuple[str, ...]:
    """What a rehearsal says besides the plan: how long it took, and what would be missing."""
    if plan.options.mode is not Mode.REHEARSAL:
        return ()
    took = f"this rehearsal took {sum(seconds for _, seconds in plan.steps):.1f} s"
    more = f"a real {plan.options.command} also copies, and writes {count_of(sum(move.writes for move in plan.moves), 'group')}"
    rest = "an unknown number of records" if plan.missing_offsets is None else count_of(plan.missing_offsets, "record")
    return (f"{took}; {more}", f"not on the other side now: {rest}")


def end_cut_off_run(opened: OpenFlow) -> None:
    """End the open transactions of a run that was cut off from the source. Without a state topic no run ever began.

    As at the start of a run, Ferry initialises the transactional ids of the run and of every lane ever used. That aborts open transactions
    and fences their producers. Nothing is written.
    """
    flow = opened.flow
    if flow.state_topic not in opened.target.admin.topics():
        return
    refuse_newer_state(opened)
    with RunLease(opened) as lease:
        lease.take_lanes()
    opened.anew()
