"""`ferry failover`, `ferry failback` and `ferry cutover`: consumer groups move to the other cluster, after a person has confirmed it."""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Signature, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ferry.cli.copies import copy_records, show_changes
from ferry.cli.options import INLINE, AsJson, Config, FlowName, load, run_id
from ferry.cli.output import Aside, Part, answer, check_report_file, complaint, notice, show
from ferry.errors import ArgumentError, ExitCode, RecoveryStopped, count_of, offsets_of
from ferry.recovery.options import QUIET_SECONDS, Tail, check_quiet

if TYPE_CHECKING:
    from ferry.config import Flow
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


@dataclass(frozen=True)
class Call:
    """A command, with the options that all three commands have."""

    command: str
    config: Config
    flow: FlowName
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Do every read and check, also of rights, and print how long each took; change nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the plan without a question.")] = False
    groups: Annotated[str | None, typer.Option(help="Only groups whose whole name this regular expression matches.")] = None
    backwards: Annotated[
        bool, typer.Option("--backwards", help="Also move groups back whose offset on the other cluster is higher than the translated one.")
    ] = False
    abandon: Annotated[bool, typer.Option("--abandon", help="Give up the move: groups stay where they are. Writes no group.")] = False
    master: Annotated[str, typer.Option(help="Spark master of copies: local[N], spark://host:port, or 'inline' for this process.")] = INLINE
    report: Annotated[Path | None, typer.Option(help="Also write the JSON document to this file.")] = None
    as_json: AsJson = False

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

    def copy(self, flow: Flow, request: RunRequest) -> RunReport:
        """The report of one copy without syncs."""
        from ferry.pipeline.run import copied

        return copied(flow, request, lambda run: copy_records(self.config, run, self.master, as_json=self.as_json), show_changes)

    def confirm(self, plan: RecoveryPlan) -> Confirmation:
        """Show the plan and ask for confirmation. RecoveryStopped when the person says no. A dry run or rehearsal ends here."""
        from ferry.recovery.recovery_report import Confirmation

        if self.dry_run or self.rehearse:
            from ferry.recovery.failover import exit_code_of, rehearsed

            code = exit_code_of(plan)
            content = {**plan.document(), "exit_code": int(code)}
            answer(content, chain(_plan(plan), rehearsed(plan), ["Ferry changed nothing"]), as_json=self.as_json, report=self.report)
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


def with_options_of_call(function: Callable[..., None]) -> Callable[..., None]:
    """The command of a function that takes a Call: it has CONFIG and --flow, the function's own options, then the others of Call."""
    _, *shared = signature(Call, eval_str=True).parameters.values()
    _, *own = signature(function, eval_str=True).parameters.values()
    options = [*shared[:2], *own, *shared[2:]]

    @wraps(function)
    def command(**given: Any) -> None:
        function(Call(function.__name__, **{option.name: given.pop(option.name) for option in shared}), **given)

    # Typer reads both.
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]  # mypy does not know it
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


@with_options_of_call
def failover(
    call: Call,
    last_copy: Annotated[bool, typer.Option("--last-copy/--no-last-copy", help="First copy once more, if the source answers.")] = True,
    without_source: Annotated[
        bool, typer.Option("--without-source", help="Send the source no requests, as if it were lost; use checkpoints.")
    ] = False,
) -> None:
    """Move all groups to the target. Each continues with the record that it would have read next. Works also without the source."""
    from ferry.recovery import failover as steps

    with call.begin() as (options, flow, reverse):
        checked = steps.check_failover(flow, reverse, options, without_source=without_source)
        plan = steps.plan_failover(flow, reverse, steps.last_copy(flow, checked, call.copy if last_copy else None))
        confirmed = call.confirm(plan)
        call.end(steps.carry_out_failover(flow, reverse, plan, confirmed))


@with_options_of_call
def failback(
    call: Call,
    tail: Annotated[
        Tail, typer.Option(help="Records of the source that were never copied: copy them to the target, or leave them.")
    ] = Tail.COPY,
    rebuilt: Annotated[
        bool, typer.Option("--rebuilt", help="The source was rebuilt: its topics are not the ones that were copied.")
    ] = False,
    compare: Compare = True,
    quiet: Quiet = QUIET_SECONDS,
) -> None:
    """Move back after a failover or cut-over. Ferry copies back only newer records, and each group continues where it was."""
    from ferry.recovery import switch_over as planned_move

    check_quiet(quiet)
    with call.begin() as (options, flow, reverse):
        switch = planned_move.failback(flow, reverse)
        call.end_if_done(switch, options)
        checked = planned_move.check_switch_over(switch, options, rebuilt=rebuilt)
        what = "copied to the target first" if tail is Tail.COPY else "left where they are, as --tail leave says"
        never_copied = [
            f"{entry.topic}-{entry.partition} {offsets_of(entry.start, entry.end)}: records of {flow.source.alias} that were never copied: "
            f"{entry.reason or what}"
            for entry in planned_move.tail(flow, options)
        ]
        checked = replace(checked, notices=(*checked.notices, *never_copied))
        if options.writes:
            for text in planned_move.settle_start(switch, options):
                notice(text)
            if tail is Tail.COPY:
                notice(planned_move.copy_ahead(flow, options, call.copy, "tail"))
        _move(switch, options, checked, call, quiet, compare=compare)


@with_options_of_call
def cutover(call: Call, compare: Compare = True, quiet: Quiet = QUIET_SECONDS) -> None:
    """Move to the target as planned: producers stop, Ferry copies and compares everything, then groups continue there."""
    from ferry.recovery import switch_over as planned_move

    check_quiet(quiet)
    with call.begin() as (options, flow, reverse):
        switch = planned_move.cutover(flow, reverse)
        call.end_if_done(switch, options)
        _move(switch, options, planned_move.check_switch_over(switch, options), call, quiet, compare=compare)


def _move(switch: SwitchOver, options: RecoveryOptions, checked: RecoveryPlan, call: Call, quiet: float, *, compare: bool) -> None:
    from ferry.recovery import switch_over as planned_move
    from ferry.recovery.not_copied import refuse_active_producers
    from ferry.recovery.recovery_report import Stopwatch

    watch = Stopwatch(checked.steps)
    active, proven = switch.active, "not asked for"
    if options.writes:
        with watch.step("copy ahead"):
            notice(planned_move.copy_ahead(active, options, call.copy, "ahead"))
        where = active.source.alias
        ask(f"are all producers on {where}, and all consumers of the groups there, stopped?", yes=call.yes)
        with watch.step("measure that nothing arrives"):
            refuse_active_producers(active, quiet)
        with watch.step("drain and verify"):
            proven = planned_move.drain_and_verify(switch, options, call.copy, notice, compare=compare)
        notice(f"verified: {proven}")
    plan = planned_move.plan_switch_over(switch, replace(checked, steps=watch.steps))
    confirmed = call.confirm(plan)
    call.end(planned_move.carry_out_switch_over(switch, plan, confirmed, proven))


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
