"""`ferry failback` and `ferry cutover`: groups move while both sides answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import INLINE, AsJson, Config, FlowName, copied
from ferry.cli.output import notice
from ferry.cli.recoveries import (
    Abandon,
    Backwards,
    DryRun,
    Groups,
    Master,
    Rehearse,
    ReportFile,
    Yes,
    ask,
    begin,
    confirm,
    end,
    end_look,
    read_options,
)

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.copying.request import RunRequest
    from ferry.ledger.run_report import RunReport
    from ferry.recovery.report import RecoveryOptions, RecoveryPlan
    from ferry.recovery.switch_over import SwitchOver


class Tail(StrEnum):
    """What to do with records of the source that were never copied."""

    COPY = "copy"
    LEAVE = "leave"


Compare = Annotated[bool, typer.Option("--verify/--no-verify", help="Compare both sides record by record before groups are moved.")]
Quiet = Annotated[float, typer.Option("--quiet-seconds", min=0, help="Producers count as stopped when nothing arrives for so long.")]


@dataclass(frozen=True)
class _Call:
    """The options that both commands have."""

    config: Path
    master: str
    yes: bool
    compare: bool
    quiet: float
    report: Path | None
    as_json: bool

    def copy(self, flow: Flow, request: RunRequest) -> RunReport:
        return copied(self.config, flow, request, self.master)


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
    quiet: Quiet = 5.0,
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
    """Move back after a failover. Only newer records are copied back, and each group continues where it was."""
    from ferry.recovery import switch_over as planned_move  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.recovery.report import check_quiet  # noqa: PLC0415 - see above
    from ferry.recovery.reverse import require_reverse  # noqa: PLC0415 - see above

    options = read_options("failback", dry_run=dry_run, rehearse=rehearse, only=groups, backwards=backwards)
    check_quiet(quiet)
    settings, reverse = begin(config, flow, options, report, yes=yes, abandon=abandon)
    switch = planned_move.failback(settings, require_reverse(settings, reverse))
    call = _Call(config, master, yes, compare, quiet, report, as_json)
    checked = planned_move.check_switch_over(switch, options, rebuilt=rebuilt)
    checked = replace(checked, notices=(*checked.notices, *_tail_notices(settings, options, tail)))
    if options.writes:
        for text in planned_move.settle_start(switch, options):
            notice(text)
        if tail is Tail.COPY:
            notice(planned_move.copy_ahead(settings, options, call.copy, "tail"))
    _move(switch, options, checked, call)


def cutover(
    config: Config,
    flow: FlowName,
    compare: Compare = True,
    quiet: Quiet = 5.0,
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
    """Move to the target as planned: producers stop, everything is copied and compared, then groups continue there."""
    from ferry.recovery import switch_over as planned_move  # noqa: PLC0415 - see failback
    from ferry.recovery.report import check_quiet  # noqa: PLC0415 - see failback

    options = read_options("cutover", dry_run=dry_run, rehearse=rehearse, only=groups, backwards=backwards)
    check_quiet(quiet)
    settings, reverse = begin(config, flow, options, report, yes=yes, abandon=abandon)
    switch = planned_move.cutover(settings, reverse)
    call = _Call(config, master, yes, compare, quiet, report, as_json)
    _move(switch, options, planned_move.check_switch_over(switch, options), call)


def _move(switch: SwitchOver, options: RecoveryOptions, checked: RecoveryPlan, call: _Call) -> None:
    from ferry.recovery import switch_over as planned_move  # noqa: PLC0415 - see failback
    from ferry.recovery.not_copied import refuse_movement  # noqa: PLC0415 - see failback
    from ferry.recovery.report import Stopwatch  # noqa: PLC0415 - see failback

    watch = Stopwatch()
    active, proven = switch.active, "not asked for"
    if options.writes:
        with watch.step("copy ahead"):
            notice(planned_move.copy_ahead(active, options, call.copy, "ahead"))
        where = active.source.alias
        ask(f"are all producers on {where}, and all consumers of the groups there, stopped?", yes=call.yes)
        with watch.step("measure that nothing arrives"):
            refuse_movement(active, call.quiet)
        with watch.step("drain and verify"):
            told, proven = planned_move.drain_and_verify(switch, options, call.copy, notice, compare=call.compare)
        notice(told)
        notice(f"verified: {proven}")
    plan = planned_move.plan_switch_over(switch, options, replace(checked, steps=(*checked.steps, *watch.steps)))
    if not options.writes:
        end_look(plan, options, call.report, as_json=call.as_json)
    confirmed = confirm(plan, options, yes=call.yes, as_json=call.as_json)
    end(planned_move.carry_out_switch_over(switch, options, plan, confirmed, proven), call.report, as_json=call.as_json)


def _tail_notices(flow: Flow, options: RecoveryOptions, tail: Tail) -> tuple[str, ...]:
    from ferry.recovery.switch_over import tail as tail_of  # noqa: PLC0415 - see failback

    what = "copied to the target first" if tail is Tail.COPY else "left where they are, as --tail leave says"
    return tuple(
        f"{entry.topic}-{entry.partition} [{entry.start}, {entry.end}): records of {flow.source.alias} that were never copied: "
        f"{entry.reason or what}"
        for entry in tail_of(flow, options)
    )
