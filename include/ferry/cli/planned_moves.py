"""`ferry failback` and `ferry cutover`: groups move while both sides answer."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import INLINE, AsJson, Config, FlowName
from ferry.cli.output import notice
from ferry.cli.recoveries import Abandon, Backwards, Call, DryRun, Groups, Master, Rehearse, ReportFile, Yes, ask

if TYPE_CHECKING:
    from ferry.recovery.report import RecoveryOptions, RecoveryPlan
    from ferry.recovery.switch_over import SwitchOver


class Tail(StrEnum):
    """What to do with records of the source that were never copied."""

    COPY = "copy"
    LEAVE = "leave"


Compare = Annotated[bool, typer.Option("--verify/--no-verify", help="Compare both sides record by record before groups are moved.")]
Quiet = Annotated[float, typer.Option("--quiet-seconds", min=0, help="Producers count as stopped when nothing arrives for so long.")]


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

    check_quiet(quiet)
    call = Call("failback", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    options, settings, reverse = call.begin()
    switch = planned_move.failback(settings, require_reverse(settings, reverse))
    checked = planned_move.check_switch_over(switch, options, rebuilt=rebuilt)
    what = "copied to the target first" if tail is Tail.COPY else "left where they are, as --tail leave says"
    never_copied = [
        f"{entry.topic}-{entry.partition} [{entry.start}, {entry.end}): records of {settings.source.alias} that were never copied: "
        f"{entry.reason or what}"
        for entry in planned_move.tail(settings, options)
    ]
    checked = replace(checked, notices=(*checked.notices, *never_copied))
    if options.writes:
        for text in planned_move.settle_start(switch, options):
            notice(text)
        if tail is Tail.COPY:
            notice(planned_move.copy_ahead(settings, options, call.copy, "tail"))
    _move(switch, options, checked, call, quiet, compare=compare)


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

    check_quiet(quiet)
    call = Call("cutover", config, flow, dry_run, rehearse, yes, groups, backwards, abandon, master, report, as_json)
    options, settings, reverse = call.begin()
    switch = planned_move.cutover(settings, reverse)
    _move(switch, options, planned_move.check_switch_over(switch, options), call, quiet, compare=compare)


def _move(switch: SwitchOver, options: RecoveryOptions, checked: RecoveryPlan, call: Call, quiet: float, *, compare: bool) -> None:
    from ferry.recovery import switch_over as planned_move  # noqa: PLC0415 - see failback
    from ferry.recovery.not_copied import refuse_movement  # noqa: PLC0415 - see failback
    from ferry.recovery.report import Stopwatch  # noqa: PLC0415 - see failback

    watch = Stopwatch(checked.steps)
    active, proven = switch.active, "not asked for"
    if options.writes:
        with watch.step("copy ahead"):
            notice(planned_move.copy_ahead(active, options, call.copy, "ahead"))
        where = active.source.alias
        ask(f"are all producers on {where}, and all consumers of the groups there, stopped?", yes=call.yes)
        with watch.step("measure that nothing arrives"):
            refuse_movement(active, quiet)
        with watch.step("drain and verify"):
            told, proven = planned_move.drain_and_verify(switch, options, call.copy, notice, compare=compare)
        notice(told)
        notice(f"verified: {proven}")
    plan = planned_move.plan_switch_over(switch, replace(checked, steps=watch.steps))
    confirmed = call.confirm(plan)
    call.end(planned_move.carry_out_switch_over(switch, plan, confirmed, proven))
