"""`ferry run`, `ferry backfill`, `ferry plan`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.completing import flow_names, topic_names
from ferry.cli.output import complain, document, notice, show
from ferry.copying.request import RunRequest, parse_time
from ferry.errors import ArgumentError, ExitCode, FerryError, worst_exit_code
from ferry.pipeline.tables import plan_parts, report_parts

if TYPE_CHECKING:
    from ferry.config import FerryConfig, Flow
    from ferry.ledger.run_report import RunReport
    from ferry.monitoring.limits import BrokenLimit
    from ferry.pipeline.run import Run
    from ferry.syncs.topics import TopicChanges

# Copies in this process: for small jobs, for which the start of Spark would take longer than the copy.
INLINE = "inline"
# A run names so many topics with too few replicas; ferry plan names all.
FEW_NAMED = 5

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="An mm2.properties file.")]
FlowName = Annotated[str, typer.Option("--flow", "-f", help="The flow, as in the config: 'A->B'.", autocompletion=flow_names)]
AnyFlow = Annotated[str | None, typer.Option("--flow", "-f", help="Only this flow; default: all.", autocompletion=flow_names)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
OneTopic = Annotated[str | None, typer.Option("--topic", "-t", help="Only this source topic.", autocompletion=topic_names)]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", "-t", help="Only this source topic; may be repeated.", autocompletion=topic_names)
]
Master = Annotated[str | None, typer.Option(help="Spark master: local[N], spark://host:port, or 'inline' for this process.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Also write the run's JSON document to this file.")]


def run(
    config: Config,
    flow: FlowName,
    until: Annotated[
        str, typer.Option(help="'latest' (the last stable offset now), or an ISO time: copy the records before it.")
    ] = "latest",
    topic: Topics = None,
    master: Master = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """One whole run: plan, prepare topics, copy up to a bound, then the enabled syncs that are due."""
    bound = None if until == "latest" else moment("--until", until)
    request = RunRequest(flow, run_id("manual"), until=bound, topics=tuple(topic or ()))
    carry_out(config, request, master, report, as_json=as_json, syncs=True)


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
    carry_out(config, request, master, report, as_json=as_json)


def plan(
    config: Config,
    flow: FlowName,
    until: Annotated[str, typer.Option(help="'latest', or an ISO time: plan for the records before it.")] = "latest",
    topic: Topics = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run would do. Writes nothing."""
    from ferry.pipeline.plan import plan_run  # noqa: PLC0415 - keeps `ferry --help` quick

    bound = None if until == "latest" else moment("--until", until)
    planned = plan_run(load_flow(config, flow), RunRequest(flow, run_id("plan"), until=bound, topics=tuple(topic or ())))
    if as_json:
        document(planned.document())
    else:
        show(plan_parts(planned))
    raise typer.Exit(ExitCode.PARTLY_FAILED if planned.failed else ExitCode.DONE)


def carry_out(
    config: Path, request: RunRequest, master: str | None, report_file: Path | None, *, as_json: bool, syncs: bool = False
) -> None:
    """One run of a flow of the file, with its report on stdout. Always raises typer.Exit with the exit code."""
    from ferry.pipeline.run import Run  # noqa: PLC0415 - see plan

    flow = load_flow(config, request.flow)
    if report_file is not None:
        check_report_file(report_file)
    codes: list[ExitCode] = []
    with Run(flow, request) as run:
        master = master or f"local[{'*' if flow.tasks_max is None else flow.tasks_max}]"
        if run.plan.needs_copy and master != INLINE:
            from ferry.spark.submit import check_master  # noqa: PLC0415 - only runs that copy need Spark

            check_master(master)  # before anything is created
        _warn(run)
        run.move_records(lambda: codes.append(_copy(config, run, master)), _show_changes)
        if syncs and not {ExitCode.SUPERSEDED, ExitCode.UNREACHABLE} & set(codes):  # else a newer run does the syncs, or a cluster is away
            _sync(run)
        outcome = run.report()
        codes.append(outcome.exit_code)
        codes.append(_look_back(run, outcome, judge=syncs and ExitCode.SUPERSEDED not in codes))
    if as_json:
        document(outcome.document())
    else:
        show(report_parts(outcome))
        for problem in outcome.problems():
            complain(f"{type(problem).__name__}: {problem}")
    write_report_file(report_file, outcome.document())
    raise typer.Exit(worst_exit_code(codes))


def copied(config: Path, flow: Flow, request: RunRequest, master: str) -> RunReport:
    """The report of one copy without syncs."""
    from ferry.pipeline.run import copied  # noqa: PLC0415 - see plan

    return copied(flow, request, lambda run: _copy(config, run, master), _show_changes)


def check_report_file(path: Path) -> None:
    """ArgumentError when `path` cannot be written, so that the user learns it before a run. Creates no file."""
    new = not path.exists()
    with _naming(path), path.open("a", encoding="utf-8"):
        pass
    if new:
        path.unlink()


def write_report_file(path: Path | None, content: Mapping[str, Any]) -> None:
    """Write the document, if `path` is given. ArgumentError when that fails."""
    if path is not None:
        with _naming(path):
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@contextmanager
def _naming(report_file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise ArgumentError(f"--report {report_file}: cannot be written: {problem.strerror}") from problem


def _warn(run: Run) -> None:
    flow, plan = run.flow, run.plan
    if not plan.partitions and not plan.failed:
        notice(f"warning: flow {flow.name} has nothing to copy: no topic that {flow.source.alias} shows to the user matches topics")
    for few in plan.few_replicas[:FEW_NAMED]:
        notice(f"warning: {few}: ferry doctor prints the command that adds the missing ones")


def _show_changes(changes: TopicChanges) -> None:
    for name in changes.created:
        notice(f"remote topic {name}: created")
    for name in changes.grown:
        notice(f"remote topic {name}: grown")
    for failure in changes.failed:
        notice(f"remote topic {failure.remote_topic} of {failure.topic}: {failure.problem}")


def _sync(run: Run) -> None:
    from ferry.cli.syncs import summary  # noqa: PLC0415 - it builds on this module

    for outcome in run.sync():
        for text in (summary(outcome), *(f"{outcome.sync}: {entry}" for entry in outcome.notices)):
            notice(text)


def _look_back(run: Run, outcome: RunReport, *, judge: bool) -> ExitCode:
    """Measure the lag now, for the history. With `judge`, also check the config's limits, and call the alert callbacks."""
    from ferry.monitoring.status import status_after_run  # noqa: PLC0415 - see plan
    from ferry.pipeline.history import NOT_KNOWN, keep_run  # noqa: PLC0415 - see plan

    flow = run.flow
    judge = judge and flow.alerts.has_limits
    lag, code = NOT_KNOWN, ExitCode.DONE
    try:
        status = status_after_run(flow, outcome, run.plan if run.is_idle else None)
        lag = status.lag.of_run
        if judge and status.broken:
            code = _tell_limits(flow, outcome, status.broken)
    except FerryError as problem:
        notice(f"warning: the lag of {flow.name} could not be measured: {problem}; next: {problem.next_step}")
        code = problem.exit_code if judge else code
    if trouble := keep_run(flow, outcome, lag):
        notice(trouble)
    return code


def _tell_limits(flow: Flow, outcome: RunReport, broken: tuple[BrokenLimit, ...]) -> ExitCode:
    """Report broken limits on stderr and to the alert callbacks. The copied records stay."""
    from ferry.alerting.delivering import deliver  # noqa: PLC0415 - see plan
    from ferry.monitoring.limits import limit_alerts, limits_broken  # noqa: PLC0415 - see plan

    problem = limits_broken(flow.name, broken)
    notice(f"LimitsBroken: {problem}; next: {problem.next_step}")
    for trouble in deliver(flow.alerts, limit_alerts(flow.name, broken, run_id=outcome.run_id)):
        notice(f"warning: {trouble}")
    return problem.exit_code


def _copy(config: Path, run: Run, master: str) -> ExitCode:
    if master == INLINE:
        from ferry.copying.lane_runner import InlineLaneRunner  # noqa: PLC0415 - see plan

        run.copy(InlineLaneRunner(), notice)
        return ExitCode.DONE
    from ferry.spark.submit import COPY_JOB, submit_job  # noqa: PLC0415 - see carry_out

    code = submit_job(COPY_JOB, config, run.request, master, notice)
    return ExitCode(code) if code in set(ExitCode) else ExitCode.OTHER


def load(config: Path) -> FerryConfig:
    """The config of a file; its warnings go to stderr. ConfigError."""
    from ferry.config import load_config  # noqa: PLC0415 - see plan

    loaded = load_config(config)
    for warning in loaded.warnings:
        notice(f"warning: {warning}")
    return loaded


def load_flow(config: Path, name: str) -> Flow:
    """A flow of a config file. ConfigError, ArgumentError."""
    return load(config).flow(name)


def moment(option: str, text: str) -> datetime:
    """The time that an option gives. ArgumentError if it is no time."""
    try:
        return parse_time(text)
    except ValueError as problem:
        raise ArgumentError(f"{option} {text!r} is not an ISO 8601 time such as 2026-01-31T06:00:00Z") from problem


def run_id(kind: str) -> str:
    """A new run id, in the form of Airflow's."""
    return f"{kind}__{datetime.now(UTC).isoformat(timespec='seconds')}__{secrets.token_hex(4)}"
