"""`ferry failover`, and the questions and output that it shares with `ferry failback` and `ferry cutover`."""

from __future__ import annotations

import getpass
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ferry.cli.copies import INLINE, AsJson, Config, FlowName, check_report_file, copied, load, run_id, write_report_file
from ferry.cli.output import complain, document, line, notice, table
from ferry.errors import ArgumentError, ExitCode, RecoveryStopped

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.copying.request import RunRequest
    from ferry.ledger.run_report import RunReport
    from ferry.recovery.report import Confirmation, RecoveryOptions, RecoveryPlan, RecoveryReport

ROWS_SHOWN = 200

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Do every read and check, also of rights, and print how long each took; change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm the plan without a question.")]
Groups = Annotated[str | None, typer.Option("--groups", help="Only groups whose whole name this regular expression matches.")]
Backwards = Annotated[
    bool, typer.Option("--backwards", help="Also move back groups that are further ahead on the other side, as the plan shows.")
]
Abandon = Annotated[bool, typer.Option("--abandon", help="Give up the move: groups stay where they are; writes no group.")]
Master = Annotated[str, typer.Option(help="Spark master of copies: local[N], spark://host:port; 'inline' (default) for this process.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Also write the JSON document to this file.")]


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

    def begin(self) -> tuple[RecoveryOptions, Flow, Flow | None]:
        """Check the options, and load the flow and the one in the other direction. ArgumentError. With --abandon the command ends here."""
        from ferry.recovery.report import Mode, RecoveryOptions  # noqa: PLC0415 - see failover
        from ferry.recovery.reverse import find_reverse  # noqa: PLC0415 - see failover

        if self.dry_run and self.rehearse:
            raise ArgumentError("--dry-run and --rehearse exclude each other")
        mode = Mode.DRY_RUN if self.dry_run else Mode.REHEARSAL if self.rehearse else Mode.REAL
        options = RecoveryOptions(self.command, run_id(self.command), mode, self.groups, self.backwards)
        if options.writes and not self.yes and not self.abandon and not sys.stdin.isatty():
            raise ArgumentError("stdin is no terminal, so nobody can confirm: give --yes, or --dry-run to see the plan")
        if self.report is not None:
            check_report_file(self.report)
        loaded = load(self.config)
        flow = loaded.flow(self.flow)
        if self.abandon:
            _give_up(flow, options)
        return options, flow, find_reverse(loaded, flow)

    def copy(self, flow: Flow, request: RunRequest) -> RunReport:
        return copied(self.config, flow, request, self.master)

    def confirm(self, plan: RecoveryPlan) -> Confirmation:
        """Show the plan and ask for confirmation. RecoveryStopped when the person says no. A dry run or rehearsal ends here."""
        from ferry.recovery.report import Confirmation  # noqa: PLC0415 - see failover

        if self.dry_run or self.rehearse:
            self._end_look(plan)
        _show_plan(plan, aside=self.as_json)
        by = ask(f"{plan.flow}: write these groups?", yes=self.yes)
        return Confirmation(by, plan.ahead if self.backwards else ())

    def _end_look(self, plan: RecoveryPlan) -> NoReturn:
        from ferry.recovery.failover import exit_code_of, rehearsed  # noqa: PLC0415 - see failover

        code = exit_code_of(plan)
        content = {**plan.document(), "exit_code": int(code)}
        if self.as_json:
            document(content)
        else:
            _show_plan(plan)
            for text in rehearsed(plan):
                line(text)
            line("nothing was touched")
        write_report_file(self.report, content)
        raise typer.Exit(code)

    def end(self, outcome: RecoveryReport) -> NoReturn:
        """Show what was done, and end the command."""
        if self.as_json:
            document(outcome.document())
        else:
            _show_outcome(outcome)
        write_report_file(self.report, outcome.document())
        for problem in (*outcome.undone, *outcome.problems):
            complain(problem)
        raise typer.Exit(outcome.exit_code)


def failover(
    config: Config,
    flow: FlowName,
    last_copy: Annotated[bool, typer.Option("--last-copy/--no-last-copy", help="Copy once more first, if the source answers.")] = True,
    without_source: Annotated[
        bool, typer.Option("--without-source", help="Do not ask the source, because it is unreliable; use checkpoints.")
    ] = False,
    dry_run: DryRun = False,
    rehearse: Rehearse = False,
    yes: Yes = False,
    groups: Groups = None,
    backwards: Backwards = False,
    abandon: Abandon = False,
    master: Master = INLINE,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Move all groups to the target, to exactly the records that they would have read next. Also works when the source is gone."""
    from ferry.recovery import failover as steps  # noqa: PLC0415 - keeps `ferry --help` quick

    call = Call("failover", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    options, settings, reverse = call.begin()
    checked = steps.check_failover(settings, options, without_source=without_source)
    plan = steps.plan_failover(settings, reverse, steps.last_copy(settings, checked, call.copy if last_copy else None))
    confirmed = call.confirm(plan)
    call.end(steps.carry_out_failover(settings, reverse, plan, confirmed))


def ask(question: str, *, yes: bool) -> str:
    """Ask, and return who said yes. RecoveryStopped when the answer is no."""
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    if yes:
        return f"{who}, by --yes"
    if not typer.confirm(question, default=False, err=True):
        raise RecoveryStopped("not confirmed: no group was written")
    return who


def _give_up(flow: Flow, options: RecoveryOptions) -> NoReturn:
    from ferry.ledger.stages import Event  # noqa: PLC0415 - see failover
    from ferry.recovery.keeper import abandon  # noqa: PLC0415 - see failover

    if not options.writes:
        raise ArgumentError("--abandon goes with neither --dry-run nor --rehearse")
    events = {"failover": Event.FAILOVER_ABANDONED, "failback": Event.FAILBACK_ABANDONED, "cutover": Event.CUTOVER_ABANDONED}
    stage = abandon(flow, events[options.command])
    line(f"{flow.name} is {stage} again; no group was written")
    raise typer.Exit(ExitCode.DONE)


def _show_plan(plan: RecoveryPlan, *, aside: bool = False) -> None:
    """The tables that a person confirms; with `aside` on stderr."""
    from ferry.recovery.report import GROUP_COLUMNS, MISSING_COLUMNS, group_rows, missing_rows, notes  # noqa: PLC0415 - see failover

    for text in notes(plan):
        notice(text)
    rows = group_rows(plan.moves, backwards=plan.options.backwards)
    missing = missing_rows(plan.missing, plan.known_until)
    if aside:  # stdout is for the document
        for row in [("not on the other side:", *row) for row in missing] + rows:
            notice("  ".join(row))
        return
    if missing:
        table(f"{plan.flow}: not on the other side", MISSING_COLUMNS, missing[:ROWS_SHOWN])
    table(f"{plan.flow}: groups", GROUP_COLUMNS, rows[:ROWS_SHOWN])
    for count in (len(missing), len(rows)):
        if count > ROWS_SHOWN:
            line(f"… and {count - ROWS_SHOWN:,} more rows: see --json or --report")


def _show_outcome(outcome: RecoveryReport) -> None:
    written = sum(entry.written for entry in outcome.groups)
    done = sum(entry.done for entry in outcome.groups)
    line(f"{outcome.plan.flow} is {outcome.record.stage}: {done} of {len(outcome.groups)} groups done, {written} offsets written")
    for text in (*outcome.reverse, *((f"verified: {outcome.verified}",) if outcome.verified else ())):
        line(text)
    if outcome.undone:
        line("not done: run the same command again when these groups have no members; groups that are done stay as they are")
