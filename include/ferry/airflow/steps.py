"""The bodies of the tasks of a flow's DAG: the steps of a run, with Airflow's run id, interval and params."""

import contextlib
import time
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from airflow.sdk import get_current_context
from rich.console import Console

from ferry.airflow.flows import FlowReference, flow_asset, flow_for_running, settings_of, sync_tasks
from ferry.airflow.params import run_params
from ferry.airflow.run_note import LEFT_OUT, VERDICT
from ferry.airflow.tasks import NOT_PLANNED, EarlierTaskFailed, emit, first_failure, leave, leave_out, say, typed_retries
from ferry.airflow.versions import AirflowFailException, AirflowSkipException
from ferry.copying.request import RunRequest
from ferry.errors import FerryError, count_of
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import PartitionFailure, RunReport, time_now
from ferry.ledger.sync_outcome import LISTED, SyncOutcome
from ferry.monitoring.limits import limits_broken
from ferry.monitoring.measurements import run_measurements, status_measurements
from ferry.monitoring.runs import ANNOUNCE_TASK, COPY_TASK, LIMITS_TASK, PLAN_TASK, PREPARE_TASK, REPORT_TASK
from ferry.monitoring.status import status_after_run
from ferry.monitoring.verdict import verdict_of
from ferry.pipeline.drawn_tables import draw
from ferry.pipeline.report_reading import UNFINISHED, keep_lag, keep_run
from ferry.pipeline.run import Run, open_run
from ferry.pipeline.syncs import Syncs
from ferry.pipeline.tables import Table, plan_parts, report_parts, sum_line, sync_line, sync_parts
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY, SyncName

LOG_WIDTH = 160
# A sync that will be due so soon gets its task, which decides when it runs. Otherwise a run a minute would do a sync of 60 s in every other
# run: this run did it some seconds after its plan, so the next plan comes too early.
SOON_SECONDS = 60.0
TAKEN_OVER = "another run has taken the flow over, and does this"


def request_of(flow: FlowReference, context: Mapping[str, Any]) -> RunRequest:
    """The request of a DAG run. ArgumentError for wrong parameters.

    Backfills, and runs with bound=interval, copy the records of their data interval that the ledger lacks. All other runs copy up to now,
    also a run without an interval (triggered without a logical date). These follow for the time that the flow or a parameter says, counted
    from the start of the DAG run.
    """
    run = context["dag_run"]
    params = run_params(context)
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if run.run_type != "backfill" and params.bound != "interval":
        seconds = settings_of(flow).follow_seconds if params.follow_seconds is None else params.follow_seconds
        until = run.start_date + timedelta(seconds=seconds) if seconds else None
        return RunRequest(flow.name, run.run_id, topics=params.topics, follow_until=until)
    if start is None or end is None:
        raise AirflowFailException("bound=interval needs a data interval: trigger with a logical date, or choose bound=latest")
    return RunRequest(flow.name, run.run_id, since=start, until=end, backfill=True, topics=params.topics)


def plan(flow: FlowReference) -> dict[str, Any]:
    """Plan the run: the plan in the log, what later tasks need as XCom. The tasks that have nothing to do are left out."""
    context = get_current_context()
    with typed_retries(flow):
        dry_run = run_params(context).dry_run
        with open_run(flow_for_running(flow), request_of(flow, context)) as run:
            planned = run.plan
            needs_copy = planned.needs_copy and not dry_run
            # A copy may take long: at its end it is decided which syncs behind it are due.
            undue = _undue(run, BEFORE_THE_COPY if needs_copy else (*BEFORE_THE_COPY, *AFTER_THE_COPY))
    document = planned.document()
    _show(plan_parts(planned))
    topics = {(partition.facts.topic, partition.facts.remote_topic) for partition in planned.partitions if partition.segments}
    # Airflow keeps the XCom of each run, so it must be small: the partitions are in the log.
    kept = {
        "needs_copy": needs_copy,
        "needs_preparation": planned.needs_preparation and not dry_run,
        "offsets": sum(entry["offsets"] for entry in document["partitions"]),
        "topics": [list(pair) for pair in sorted(topics)[:LISTED]],
        "dry_run": dry_run,
        "again": context["ti"].try_number > 1,
        "failed": document["failed"],
        "notices": list(planned.notices[:LISTED]),
    }
    left_out = _without_work(kept) | undue
    if kept["needs_preparation"]:  # later tasks wait for the copy only, so prepare_topics leaves it out when the topics are there
        left_out.pop(COPY_TASK, None)
    leave_out(left_out, kept)
    return kept


def _without_work(planned: Mapping[str, Any]) -> dict[str, str]:
    """The tasks that have nothing to do in a run that is planned so (XCom of `plan`), and why. Syncs are not among them."""
    if planned["dry_run"]:
        tasks = dict.fromkeys((PREPARE_TASK, COPY_TASK, ANNOUNCE_TASK, LIMITS_TASK), "dry run: nothing is copied")
        return {**tasks, REPORT_TASK: "dry run: see the plan in the log of plan_run"}
    found = {} if planned.get("needs_preparation") else {PREPARE_TASK: "remote topics need no change"}
    if not planned["needs_copy"]:
        found[COPY_TASK] = "nothing to copy: Spark is not started"
        if not planned.get("again"):  # else an earlier try of the whole run may have copied
            found[ANNOUNCE_TASK] = "nothing was copied"
    return found


def skip_without_work(task: str, planned: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """AirflowSkipException if this task has nothing to do, although it has a process, for example because somebody cleared it."""
    if planned is None:
        raise AirflowSkipException(NOT_PLANNED)
    if why := _without_work(planned).get(task):
        raise AirflowSkipException(why)
    return planned


def _undue(run: Run, names: Iterable[SyncName]) -> dict[str, str]:
    """The tasks of those of these syncs that are not due, and why."""
    syncs = Syncs(run.opened)
    return {task: why for task, name in sync_tasks(run.flow, names).items() if (why := syncs.not_due(SyncName(name), SOON_SECONDS))}


def prepare(flow: FlowReference, planned: Mapping[str, Any]) -> dict[str, Any]:
    skip_without_work(PREPARE_TASK, planned)
    with typed_retries(flow), open_run(flow_for_running(flow), request_of(flow, get_current_context())) as run:
        changes = run.prepare(spark_follows=planned["needs_copy"])
    for skipped in changes.refused:
        say(f"without {skipped.what}: {skipped.reason}")
    for failure in changes.failed:
        say(f"remote topic {failure.remote_topic} of {failure.topic}: {failure.problem}")
    document, why = changes.document(), _without_work(planned).get(COPY_TASK)
    leave_out({COPY_TASK: why} if why else {}, document)
    return document


def sync(flow: FlowReference, name: str, planned: Mapping[str, Any] | None) -> dict[str, Any]:
    """One sync: its changes in the log, its document as XCom. Skipped when it is not due. Fails when it could not write something."""
    if planned is None:
        raise AirflowSkipException(NOT_PLANNED)
    with typed_retries(flow):
        with open_run(flow_for_running(flow), request_of(flow, get_current_context())) as run:
            if run.taken_over() is not None:
                raise AirflowSkipException(TAKEN_OVER)
            (outcome,) = run.sync([SyncName(name)], dry_run=planned["dry_run"])
        _show(sync_parts(outcome, LISTED))
        for line in (*outcome.notices, *(str(failure) for failure in outcome.failed)):
            say(line)
        emit(outcome.measurements)
        if outcome.left_out:
            raise AirflowSkipException(outcome.left_out)
        outcome.raise_for_failures()
    return outcome.document(LISTED)


def report(flow: FlowReference, planned: Mapping[str, Any] | None, prepared: Mapping[str, Any] | None) -> dict[str, Any]:
    """Report the run: a table in the log, the document as XCom, counts in the asset's event. Fails with the worst problem of the run."""
    if planned is None or (prepared is None and planned["needs_preparation"]):
        raise _stopped_early(flow)
    skip_without_work(REPORT_TASK, planned)
    context = get_current_context()
    with typed_retries(flow):
        settings = flow_for_running(flow)
        with open_run(settings, request_of(flow, context)) as run:
            found = run.report(idle=not (planned["needs_copy"] or planned["needs_preparation"]), notices=planned.get("notices", ()))
            if UNFINISHED in found.failed and (left := first_failure([*sync_tasks(settings, BEFORE_THE_COPY), COPY_TASK])):
                found = replace(found, failed=(_failure_of_the_run(left),))
            if found.taken_over is None:
                decided = (PLAN_TASK, COPY_TASK) if planned["needs_copy"] else (PLAN_TASK,)
                left_out = [context["ti"].xcom_pull(task_ids=task, key=LEFT_OUT) or {} for task in decided]
                found = with_absent_syncs(found, sync_tasks(settings), dict(ChainMap(*left_out)))
            _show(report_parts(found))
            done = [sync_line(outcome) for outcome in found.syncs.values() if not outcome["left_out"]]
            for text in (*done, *(problem.named for problem in found.problems())):
                say(text)
            if trouble := keep_run(run.opened, found):
                say(trouble)
        emit(run_measurements(found, settings.source.alias, settings.target.alias))
        found.raise_for_outcome()
    context["outlet_events"][flow_asset(settings)].extra = {"records": found.records, "bytes": found.bytes, "run_id": found.run_id}
    return found.document()


def sum_up(flow: FlowReference, context: Mapping[str, Any]) -> dict[str, str]:
    """Say at the end of the copy's log what was copied and, if something failed, what is left. Returns as of `_undue`."""
    try:
        settings = flow_for_running(flow)
        with open_run(settings, request_of(flow, context)) as run:
            found = run.report(idle=False)
            left = status_after_run(run.opened, found).lag.records if found.problems() else 0
            say(sum_line(found) + (f"; {count_of(left, 'record')} left" if left else ""))
            return (
                _undue(run, AFTER_THE_COPY) if found.taken_over is None else dict.fromkeys(sync_tasks(settings, AFTER_THE_COPY), TAKEN_OVER)
            )
    except FerryError as problem:
        say(f"what was copied cannot be read: {problem.named}")
    return {}


def _stopped_early(flow: FlowReference) -> EarlierTaskFailed:
    """The error of a run that planned or prepared nothing. Its reason goes into a report, which the page's history shows."""
    found = first_failure((PLAN_TASK, PREPARE_TASK))
    if found is None:
        return EarlierTaskFailed("plan_run or prepare_topics failed: its log names the reason")
    now, run_id = time_now(), str(get_current_context()["dag_run"].run_id)
    failure = _failure_of_the_run(found)
    if not (get_current_context().get("params") or {}).get("dry_run"):
        # The problem that stopped the earlier task may stop this too; the error below names it.
        with contextlib.suppress(FerryError), open_flow(flow_for_running(flow)) as opened:
            if trouble := keep_run(opened, RunReport(flow.name, run_id, now, now, "", failed=(failure,))):
                say(trouble)
    return EarlierTaskFailed(
        f"{found['task']} failed: {found['error']}: {found['problem']} (next: {found['next_step']}; log: {found['url']})"
    )


def _failure_of_the_run(left: Mapping[str, str]) -> PartitionFailure:
    """A task's error, which it has left for the report, as a failure of the report."""
    return PartitionFailure("", -1, left["error"], f"{left['task']}: {left['problem']}")


def check_limits(flow: FlowReference, planned: Mapping[str, Any] | None) -> dict[str, Any]:
    """Measure lag and headroom after the run, also after a copy that failed. LimitsBroken when they exceed the config's limits.

    Also in a run that another run has taken over: where each run takes over from the one before, none would do it. Not when a command has
    taken the flow over: then groups move, and nobody copies.
    """
    planned = skip_without_work(LIMITS_TASK, planned)
    with typed_retries(flow):
        settings = flow_for_running(flow)
        request = request_of(flow, get_current_context())
        with open_run(settings, request) as run:
            if run.taken_over() == "":
                raise AirflowSkipException("a command has taken the flow over")
            report = run.report(idle=False) if planned["needs_copy"] else None
            status = status_after_run(run.opened, report)
            if trouble := keep_lag(run.opened, request.run_id, status.lag.of_run):
                say(trouble)
        emit(status_measurements(status, settings.source.alias, settings.target.alias))
        verdict = verdict_of(status, time.time()).after_run
        leave(VERDICT, lambda _: verdict)
        say(verdict)
        if status.broken:
            failed = planned["failed"] if report is None else (*report.failed, *report.losses)
            raise limits_broken(flow.name, status.broken, copied=not failed)
    return {**status.lag.totals, "headroom_seconds": status.lag.headroom_seconds}


def with_absent_syncs(found: RunReport, tasks: Mapping[str, str], left_out: Mapping[str, str]) -> RunReport:
    """The report with an outcome for each sync (`tasks`: sync by task) whose task was left out (why, by task).

    It has a failure for each other sync without an outcome: its task died or could not write it.
    """
    absent = {task: name for task, name in tasks.items() if name not in found.syncs}
    undue = {name: SyncOutcome(sync=name, left_out=left_out[task]).document(LISTED) for task, name in absent.items() if task in left_out}
    unended = [(task, name) for task, name in absent.items() if task not in left_out]
    failures = (replace(UNFINISHED, problem=f"sync {name} did not end: see the log of task {task}") for task, name in unended)
    return replace(found, syncs={**found.syncs, **undue}, failed=(*found.failed, *failures))


def _show(parts: Iterable[str | Table]) -> None:
    for part in parts:
        if isinstance(part, str):
            say(part)
        elif not part.rows:
            say(f"{part.title}: nothing")
        else:
            draw(part, Console(width=LOG_WIDTH, no_color=True))
