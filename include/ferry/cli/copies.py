"""`ferry run`, `ferry backfill`, `ferry plan` and `ferry sync`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from pathlib import Path
from time import time, time_ns
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.bar import drawn, is_watched
from ferry.cli.options import INLINE, AsJson, Config, FlowName, Follow, Master, ReportFile, Topics, follow_until, load_flow, moment, run_id
from ferry.cli.output import Aside, Part, answer, check_report_file, complaint, notice
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FerryError, error_named, worst_exit_code
from ferry.pipeline.tables import plan_parts, report_parts, sync_line, sync_parts
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY, SyncName, not_enabled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ferry.config import Flow
    from ferry.ledger.run_report import RunReport
    from ferry.ledger.sync_outcome import Measurement, SyncOutcome
    from ferry.pipeline.run import Run
    from ferry.pipeline.run_plan import RunPlan
    from ferry.syncs.topics import TopicChanges

# A run shows at most this many notices of its plan; ferry plan shows all.
NOTICES_SHOWN = 5
# An enum cannot extend another enum.
Wanted = StrEnum("Wanted", [*((name.name, name.value) for name in SyncName), ("ALL", "all")])  # type: ignore[misc]


def run(
    config: Config,
    flow: FlowName,
    until: Annotated[
        str, typer.Option(help="'latest': up to the last stable offset now. Or an ISO time: up to the first record at or after it.")
    ] = "latest",
    topic: Topics = None,
    follow: Follow = None,
    master: Master = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Do one whole run: plan, prepare topics, copy up to a bound, and do the enabled syncs that are due."""
    bound = moment("--until", None if until == "latest" else until)
    # A run with an end of its own does not follow because the property says so.
    settings = load_flow(config, flow)
    until_then = None if bound is not None and follow is None else follow_until(settings, follow)
    request = RunRequest(flow, run_id("manual"), until=bound, topics=tuple(topic or ()), follow_until=until_then)
    carry_out(config, settings, request, master, report, as_json=as_json, syncs=True)


def backfill(
    config: Config,
    flow: FlowName,
    since: Annotated[str, typer.Option("--from", help="Start of the interval, as an ISO time of records.")],
    until: Annotated[str, typer.Option(help="End of the interval (exclusive), as an ISO time of records.")],
    topic: Topics = None,
    master: Master = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Copy what the ledger does not cover in an interval of record time. A second backfill of the interval copies nothing."""
    start, end = moment("--from", since), moment("--until", until)
    request = RunRequest(flow, run_id("backfill"), since=start, until=end, backfill=True, topics=tuple(topic or ()))
    carry_out(config, load_flow(config, flow), request, master, report, as_json=as_json)


def plan(
    config: Config,
    flow: FlowName,
    until: Annotated[str, typer.Option(help="As for ferry run: 'latest', or an ISO time.")] = "latest",
    topic: Topics = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run would do. Writes nothing."""
    from ferry.pipeline.run import open_run

    bound = moment("--until", None if until == "latest" else until)
    with open_run(load_flow(config, flow), RunRequest(flow, run_id("plan"), until=bound, topics=tuple(topic or ()))) as run:
        # A person waits for this. A run itself has more patience with a cluster whose brokers are being restarted.
        run.opened.first_contact()
        planned = run.plan
    answer(planned.document(), chain(plan_parts(planned), _how_copied(planned)), as_json=as_json)
    raise typer.Exit(ExitCode.PARTLY_FAILED if planned.failed else ExitCode.DONE)


def sync(
    config: Config,
    flow: FlowName,
    what: Annotated[
        Wanted, typer.Argument(metavar="WHAT", help="What to sync; all: every sync that the flow has enabled, in the order of a run.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Do a sync now, even if it is not due yet: topics, configs, ACLs, groups and others. `all` does every sync that is enabled."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.pipeline.syncs import Syncs

    settings = load_flow(config, flow)
    names = list(SyncName) if what.value == "all" else [SyncName(what.value)]
    with contacted_flow(settings) as opened:
        syncs = Syncs(opened, dry_run=dry_run)
        outcomes = [syncs.carry_out(name, on_request=True, unless_disabled=what.value == "all") for name in names]
    parts: list[Part] = []
    for outcome in outcomes:
        parts += sync_parts(outcome)
        parts += (Aside(f"{outcome.sync}: {text}") for text in outcome.notices)
        parts += (complaint(failure if failure.what.startswith("sync ") else f"{outcome.sync}: {failure}") for failure in outcome.failed)
    errors = [error_named(failure.error) for outcome in outcomes for failure in outcome.failed]
    parts += (Aside(f"next: {step}") for step in dict.fromkeys(error.next_step for error in errors))
    documents = {outcome.sync: outcome.document() for outcome in outcomes}
    answer({"flow": flow, "dry_run": dry_run, "syncs": documents}, parts, as_json=as_json)
    raise typer.Exit(worst_exit_code(outcome.exit_code for outcome in outcomes))


def carry_out(
    config: Path, flow: Flow, request: RunRequest, master: str | None, report_file: Path | None, *, as_json: bool, syncs: bool = False
) -> None:
    """One run of a flow of the file, with its report on stdout. Always raises typer.Exit with the exit code."""
    from ferry.monitoring.sending import send
    from ferry.pipeline.run import open_run

    check_report_file(report_file)
    codes: list[ExitCode] = []
    began = time_ns()
    with open_run(flow, replace(request, watched=is_watched() and not as_json)) as run:
        if master is None:
            master = INLINE if run.plan.is_small else f"local[{'*' if flow.tasks_max is None else flow.tasks_max}]"
        if run.plan.needs_copy and master != INLINE:
            from ferry.spark.submit import check_master

            check_master(master)  # before anything is created
        _warn(run)
        done, stopped = _before(run, flow)
        if not stopped:
            run.move_records(lambda: codes.append(copy_records(config, run, master, as_json=as_json)), show_changes)
        # If a newer run has taken over, that run does the syncs. If a cluster is away, there are none.
        goes_on = syncs and not {ExitCode.SUPERSEDED, ExitCode.UNREACHABLE} & set(codes) and run.taken_over() is None
        if goes_on:
            done += _sync(run, AFTER_THE_COPY)
        measured = list(chain.from_iterable(map(attrgetter("measurements"), done)))
        outcome = run.report(idle=stopped)
        codes.append(outcome.exit_code)
        # If each run takes over from the one before, no other one would check the limits. After a command has taken over, nobody copies.
        judge = syncs and ExitCode.SUPERSEDED not in codes and outcome.taken_over != ""
        codes.append(_look_back(run, outcome, measured, judge=judge))
    if trouble := send(measured, began):
        notice(f"warning: {trouble}")
    complaints = (complaint(problem.named) for problem in outcome.problems())
    answer(outcome.document(), chain(report_parts(outcome), complaints), as_json=as_json, report=report_file)
    raise typer.Exit(worst_exit_code(codes))


def _how_copied(planned: RunPlan) -> Iterator[str]:
    if planned.needs_copy:
        small, limit = planned.is_small, f"{planned.spark_offsets:,} offsets (ferry.spark.offsets)"
        yield f"fewer than {limit}: ferry run copies them in its own process" if small else f"at least {limit}: Spark copies them"


def _warn(run: Run) -> None:
    flow, plan = run.flow, run.plan
    if not plan.partitions and not plan.failed:
        notice(f"warning: flow {flow.name} has nothing to copy: no topic of {flow.source.alias} that the user may see matches its topics")
    for text in plan.notices[:NOTICES_SHOWN]:
        notice(f"warning: {text}")
    if (more := len(plan.notices) - NOTICES_SHOWN) > 0:
        notice(f"warning: {more:,} more; ferry plan shows them all")


def show_changes(changes: TopicChanges) -> None:
    for name in changes.created:
        notice(f"remote topic {name}: created")
    for name in changes.grown:
        notice(f"remote topic {name}: grown")
    for skipped in changes.refused:
        notice(f"warning: without {skipped.what}: {skipped.reason}")
    for failure in changes.failed:
        notice(f"remote topic {failure.remote_topic} of {failure.topic}: {failure.problem}")


def _before(run: Run, flow: Flow) -> tuple[list[SyncOutcome], bool | None]:
    """The syncs before the copy, and True if one of them failed, so that nothing may be copied. Without any, nothing is read."""
    names = [name for name in BEFORE_THE_COPY if not not_enabled(flow, name)]
    done = _sync(run, names) if names else []
    failures = list(chain.from_iterable(outcome.failed for outcome in done))
    for failure in failures:
        notice(str(failure))
    if failures:
        notice("no record is copied: nobody could read the copies without their schemas")
        for step in dict.fromkeys(error_named(failure.error).next_step for failure in failures):
            notice(f"next: {step}")
    return done, bool(failures) or None


def _sync(run: Run, names: Sequence[SyncName]) -> list[SyncOutcome]:
    outcomes = []
    for outcome in run.sync(names):
        outcomes.append(outcome)
        done = [] if outcome.left_out else [sync_line(outcome.document())]
        for text in (*done, *(f"{outcome.sync}: {entry}" for entry in outcome.notices)):
            notice(text)
    return outcomes


def _look_back(run: Run, outcome: RunReport, measured: list[Measurement], *, judge: bool) -> ExitCode:
    """Measure the lag for the history, and add to `measured`. With `judge`, also check the limits and call the alert callbacks."""
    from ferry.alerting.delivering import deliver
    from ferry.monitoring.limits import limit_alerts, limits_broken
    from ferry.monitoring.measurements import run_measurements, status_measurements
    from ferry.monitoring.status import status_after_run
    from ferry.monitoring.verdict import verdict_of
    from ferry.pipeline.report_reading import NOT_KNOWN, keep_run

    flow = run.flow
    judge = judge and flow.alerts.has_limits
    lag, code = NOT_KNOWN, ExitCode.DONE
    aliases = flow.source.alias, flow.target.alias
    measured += run_measurements(outcome, *aliases)
    try:
        status = status_after_run(run.opened, outcome, run.plan if run.lag_is_as_planned else None)
        lag = status.lag.of_run
        measured += status_measurements(status, *aliases)
        notice(verdict_of(status, time()).after_run)
        if judge and status.broken:
            broken = limits_broken(flow.name, status.broken)
            notice(f"{broken.named}; next: {broken.next_step}")
            for trouble in deliver(flow.alerts, limit_alerts(flow.name, status.broken, run_id=outcome.run_id)):
                notice(f"warning: {trouble}")
            code = broken.exit_code
    except FerryError as problem:
        notice(f"warning: the lag of {flow.name} could not be measured: {problem}; next: {problem.next_step}")
        code = problem.exit_code if judge else code
    if trouble := keep_run(run.opened, outcome, lag):
        notice(trouble)
    return code


def copy_records(config: Path, run: Run, master: str, *, as_json: bool = False) -> ExitCode:
    with drawn("nothing is copied yet", as_json=as_json) as say:
        if master == INLINE:
            from ferry.copying.lane_runner import InlineLaneRunner

            run.copy(InlineLaneRunner(), say)
            return ExitCode.DONE
        from ferry.spark.submit import COPY_JOB, submit_job

        return ExitCode(submit_job(COPY_JOB, config, run.request, master, say))
