"""`ferry failover`, `ferry failback` and `ferry cutover`: consumer groups move to the other cluster, after a person has confirmed it."""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ferry.cli.copies import copy_records, show_changes
from ferry.cli.options import INLINE, AsJson, Config, FlowName, load, run_id
from ferry.cli.output import Aside, Part, answer, check_report_file, complaint, notice, show
from ferry.errors import ArgumentError, ExitCode, RecoveryStopped, count_of, offsets_of
from ferry.recovery.options import QUIET_SECONDS, Tail, check_quiet
from ferry.recovery.stages import Stage, stages

if TYPE_CHECKING:
    from ferry.copying.request import RunRequest
    from ferry.ledger.open_flow import OpenFlow
    from ferry.ledger.run_report import RunReport
    from ferry.recovery.options import RecoveryOptions
    from ferry.recovery.recovery_report import Confirmation, RecoveryPlan, RecoveryReport
    from ferry.recovery.switch_over import SwitchOver

ROWS_SHOWN = 200

Compare = Annotated[bool, typer.Option("--verify/--no-verify", help="Compare both sides record by record before Ferry moves groups.")]
Quiet = Annotated[
    float, typer.Option("--quiet-seconds", min=0, help="Ferry treats producers as stopped if no record arrives for this time.")
]
# Options that all three commands have.
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Do every read and check, also of rights, and print how long each took; change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm the plan without a question.")]
Groups = Annotated[str | None, typer.Option(help="Only groups whose whole name this regular expression matches.")]
Backwards = Annotated[
    bool, typer.Option("--backwards", help="Also move groups back whose offset on the other cluster is higher than the translated one.")
]
Abandon = Annotated[bool, typer.Option("--abandon", help="Give up the move: groups stay where they are. Writes no group.")]
Master = Annotated[str, typer.Option(help="Spark master of copies: local[N], spark://host:port, or 'inline' for this process.")]
Report = Annotated[Path | None, typer.Option(help="Also write the JSON document to this file.")]


@dataclass(frozen=True)
class Call:
    """A command, with the options that all three commands have."""

    command: str
    config: Path
    flow: str
    dry_run: bool
    rehearse: bool
    yes: bool
    groups: str | None
    backwards: bool
    abandon: bool
    master: str
    report: Path | None
    as_json: bool

    @contextmanager
    def begin(self) -> Iterator[tuple[RecoveryOptions, OpenFlow, OpenFlow | None]]:
        """Check the options, and open the flow and the one in the other direction. ArgumentError. With --abandon the command ends here."""
        from ferry.ledger.open_flow import open_flow
        from ferry.recovery.options import Mode, RecoveryOptions
        from ferry.recovery.reverse import find_reverse

        if self.dry_run and self.rehearse:
            raise ArgumentError("--dry-run and --rehearse exclude each other")
        mode = Mode.DRY_RUN if self.dry_run else Mode.REHEARSAL if self.rehearse else Mode.REAL
        options = RecoveryOptions(self.command, run_id(self.command), mode, self.groups, self.backwards)
        if options.writes and not self.yes and not self.abandon and not sys.stdin.isatty():
            raise ArgumentError("stdin is no terminal, so nobody can confirm: give --yes, or --dry-run to see the plan")
        check_report_file(self.report)
        loaded = load(self.config)
        flow = loaded.flow(self.flow)
        with open_flow(flow) as opened:
            if self.abandon:
                _give_up(opened, options)
            reverse = find_reverse(loaded, flow)
            yield options, opened, opened.back(reverse) if reverse else None

    def copy(self, opened: OpenFlow, request: RunRequest) -> RunReport:
        """The report of one copy without the syncs after it."""
        from ferry.pipeline.run import copied

        return copied(opened, request, lambda run: copy_records(self.config, run, self.master, as_json=self.as_json), show_changes)

    def carry_out(
        self,
        order: tuple[Stage, ...],
        options: RecoveryOptions,
        does: Callable[[Stage, RecoveryPlan], RecoveryPlan],
        write: Callable[[RecoveryPlan, Confirmation], RecoveryReport],
    ) -> NoReturn:
        """Carry the stages out in this order. `does`: what a stage makes of the plan so far. A dry run or rehearsal ends with the plan."""
        from ferry.recovery.recovery_report import Confirmation, RecoveryPlan

        plan, confirmed = RecoveryPlan(options, self.flow), Confirmation("")
        for stage in order:
            if stage is Stage.CONFIRM:
                confirmed = self.confirm(plan, order)
            elif stage is not Stage.WRITE and (stage.in_dry_run or options.writes):
                plan = does(stage, plan)
        self.end(write(plan, confirmed))

    def confirm(self, plan: RecoveryPlan, order: tuple[Stage, ...]) -> Confirmation:
        """Show the plan and ask for confirmation. RecoveryStopped when the person says no. A dry run or rehearsal ends here."""
        from ferry.recovery.recovery_report import Confirmation

        if not plan.options.writes:
            from ferry.recovery.failover import exit_code_of, rehearsed

            code = exit_code_of(plan)
            content = {**plan.document(), "exit_code": int(code)}
            told = [f"a real {self.command} does this: {'; '.join(order)}", "Ferry changed nothing"]
            answer(content, chain(_plan(plan), rehearsed(plan), told), as_json=self.as_json, report=self.report)
            raise typer.Exit(code)
        show(_plan(plan, aside=self.as_json))
        if plan.nothing_left:
            return Confirmation("")
        by = ask(f"{plan.flow}: write these groups?", yes=self.yes)
        return Confirmation(by, plan.ahead if self.backwards else ())

    def end_if_done(self, switch: SwitchOver, options: RecoveryOptions) -> None:
        """The command ends here if an earlier try did everything, and was killed before it could say so."""
        from ferry.recovery.switch_over import report_of_ended

        if (outcome := report_of_ended(switch, options)) is not None:
            self.end(outcome)

    def end(self, outcome: RecoveryReport) -> NoReturn:
        from ferry.recovery.recovery_report import outcome_lines

        again = "not done: run the same command again when these groups have no members; groups that are done stay as they are"
        parts = [*outcome_lines(outcome), *([again] if outcome.undone else [])]
        answer(outcome.document(), parts, as_json=self.as_json, report=self.report)
        show(map(complaint, (*outcome.undone, *outcome.problems)))
        raise typer.Exit(outcome.exit_code)


def failover(
    config: Config,
    flow: FlowName,
    last_copy: Annotated[bool, typer.Option("--last-copy/--no-last-copy", help="First copy once more, if the source answers.")] = True,
    without_source: Annotated[
        bool, typer.Option("--without-source", help="Send the source no requests, as if it were lost; use checkpoints.")
    ] = False,
    dry_run: DryRun = False,
    rehearse: Rehearse = False,
    yes: Yes = False,
    groups: Groups = None,
    backwards: Backwards = False,
    abandon: Abandon = False,
    master: Master = INLINE,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Move all groups to the target. Each continues with the record that it would have read next. Works also without the source."""
    from ferry.recovery import failover as steps

    call = Call("failover", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    order = stages(call.command, without=() if last_copy and not without_source else (Stage.COPY_ONCE_MORE,))
    with call.begin() as (options, opened, reverse):

        def does(stage: Stage, plan: RecoveryPlan) -> RecoveryPlan:
            if stage is Stage.CHECK:
                return steps.check_failover(opened, reverse, options, without_source=without_source, copies=last_copy)
            if stage is Stage.COPY_ONCE_MORE:
                return steps.last_copy(opened, plan, call.copy)
            return steps.plan_failover(opened, reverse, plan)

        call.carry_out(order, options, does, partial(steps.carry_out_failover, opened, reverse))


def failback(
    config: Config,
    flow: FlowName,
    tail: Annotated[
        Tail, typer.Option(help="Records of the source that were never copied: copy them to the target, or leave them.")
    ] = Tail.COPY,
    rebuilt: Annotated[
        bool, typer.Option("--rebuilt", help="The source was rebuilt: its topics are not the ones that were copied.")
    ] = False,
    compare: Compare = True,
    quiet: Quiet = QUIET_SECONDS,
    dry_run: DryRun = False,
    rehearse: Rehearse = False,
    yes: Yes = False,
    groups: Groups = None,
    backwards: Backwards = False,
    abandon: Abandon = False,
    master: Master = INLINE,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Move back after a failover or cut-over. Ferry copies back only newer records, and each group continues where it was."""
    from ferry.recovery.switch_over import failback as way_back

    check_quiet(quiet)
    call = Call("failback", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    without = ([] if tail is Tail.COPY else [Stage.COPY_TAIL]) + ([] if compare else [Stage.COMPARE])
    with call.begin() as (options, opened, reverse):
        PlannedMove(call, options, way_back(opened, reverse), quiet, rebuilt=rebuilt, tail=tail).carry_out(stages(call.command, without))


def cutover(
    config: Config,
    flow: FlowName,
    compare: Compare = True,
    quiet: Quiet = QUIET_SECONDS,
    dry_run: DryRun = False,
    rehearse: Rehearse = False,
    yes: Yes = False,
    groups: Groups = None,
    backwards: Backwards = False,
    abandon: Abandon = False,
    master: Master = INLINE,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Move to the target as planned: producers stop, Ferry copies and compares everything, then groups continue there."""
    from ferry.recovery.switch_over import cutover as way_there

    check_quiet(quiet)
    call = Call("cutover", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    without = () if compare else (Stage.COMPARE,)
    with call.begin() as (options, opened, reverse):
        PlannedMove(call, options, way_there(opened, reverse), quiet).carry_out(stages(call.command, without))


@dataclass
class PlannedMove:
    """A failback or a cut-over. `proven`: what verify said."""

    call: Call
    options: RecoveryOptions
    switch: SwitchOver
    quiet: float
    rebuilt: bool = False
    tail: Tail = Tail.COPY
    proven: str = "not asked for"

    def carry_out(self, order: tuple[Stage, ...]) -> NoReturn:
        from ferry.recovery.switch_over import carry_out_switch_over

        self.call.carry_out(order, self.options, self._stage, lambda plan, by: carry_out_switch_over(self.switch, plan, by, self.proven))

    def _stage(self, stage: Stage, plan: RecoveryPlan) -> RecoveryPlan:
        from ferry.recovery import switch_over as steps
        from ferry.recovery.not_copied import drain, refuse_active_producers
        from ferry.recovery.recovery_report import Stopwatch

        watch, active, copy = Stopwatch(plan.steps), self.switch.active, self.call.copy
        match stage:
            case Stage.CHECK:
                return self._check()
            case Stage.COPY_TAIL:
                notice(steps.copy_ahead(self.switch.flow, self.options, copy, "tail"))
            case Stage.COPY_BACK | Stage.COPY_AHEAD:
                with watch.step("copy ahead"):
                    notice(steps.copy_ahead(active, self.options, copy, "ahead"))
            case Stage.ASK_STOPPED:
                ask(f"are all producers on {active.source.alias}, and all consumers of the groups there, stopped?", yes=self.call.yes)
            case Stage.DRAIN:
                with watch.step("measure that nothing arrives"):
                    refuse_active_producers(active, self.quiet)
                with watch.step("drain and verify"):
                    drain(active, self.options, copy, notice)
            case Stage.COMPARE:
                with watch.step("drain and verify"):
                    self.proven = steps.compare_sides(active, self.options, notice)
            case Stage.PLAN:
                if self.options.writes:
                    notice(f"verified: {self.proven}")
                return steps.plan_switch_over(self.switch, plan)
        return replace(plan, steps=watch.steps)

    def _check(self) -> RecoveryPlan:
        """The command ends here if an earlier try did everything. A failback also writes down where the flow back begins."""
        from ferry.recovery import switch_over as steps

        self.call.end_if_done(self.switch, self.options)
        checked, flow = steps.check_switch_over(self.switch, self.options, rebuilt=self.rebuilt), self.switch.flow
        if not self.switch.back:
            return checked
        what = "copied to the target first" if self.tail is Tail.COPY else "left where they are, as --tail leave says"
        never_copied = [
            f"{entry.topic}-{entry.partition} {offsets_of(entry.start, entry.end)}: records of {flow.source.alias} that were never copied: "
            f"{entry.reason or what}"
            for entry in steps.tail(flow, self.options)
        ]
        for text in steps.settle_start(self.switch, self.options) if self.options.writes else ():
            notice(text)
        return replace(checked, notices=(*checked.notices, *never_copied))


def ask(question: str, *, yes: bool) -> str:
    """Ask, and return who said yes. RecoveryStopped when the answer is no."""
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    if yes:
        return f"{who}, by --yes"
    if not typer.confirm(question, default=False, err=True):
        raise RecoveryStopped("not confirmed: no group was written")
    return who


def _give_up(flow: OpenFlow, options: RecoveryOptions) -> NoReturn:
    from ferry.ledger.recovery_record import Event
    from ferry.recovery.keeper import abandon

    if not options.writes:
        raise ArgumentError("--abandon goes with neither --dry-run nor --rehearse")
    events = {"failover": Event.FAILOVER_ABANDONED, "failback": Event.FAILBACK_ABANDONED, "cutover": Event.CUTOVER_ABANDONED}
    stage = abandon(flow, events[options.command])
    show([f"{flow.flow.name} is {stage} again; no group was written"])
    raise typer.Exit(ExitCode.DONE)


def _plan(plan: RecoveryPlan, *, aside: bool = False) -> Iterator[Part]:
    """The tables that a person confirms; with `aside` as lines on stderr, because stdout is for the document."""
    from ferry.recovery.recovery_report import group_table, missing_table, notes

    yield from map(Aside, notes(plan))
    missing, groups = missing_table(plan), group_table(plan)
    if aside:
        yield from (Aside("  ".join(map(str, row))) for row in [*(("not on the other side:", *row) for row in missing.rows), *groups.rows])
        return
    for table in (missing, groups) if missing.rows else (groups,):
        yield table._replace(rows=table.rows[:ROWS_SHOWN])
    for table in (missing, groups):
        if len(table.rows) > ROWS_SHOWN:
            yield f"… and {count_of(len(table.rows) - ROWS_SHOWN, 'more row')}: see --json or --report"
