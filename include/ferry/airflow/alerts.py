"""Alerts from Airflow: about tasks that failed for good, first tries that failed, and runs that did not end in time. If a task no longer
finds a problem that it has sent an alert about, another alert says that the problem is resolved.

The failure callback of a task runs in the task's own process after Airflow knows the task's state, so nothing here can change that state.
No alert is sent about these failures, because another alert or another try covers them: a try that will be repeated (a flow may ask for a
warning about the first one), a run that a newer run superseded, a task that failed only because an earlier one did, and a report that
repeats a failure of the copy.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ferry.airflow.flows import FlowReference, settings_of
from ferry.airflow.open_alerts import resolved, tell
from ferry.airflow.tasks import EarlierTaskFailed, JobFailed
from ferry.airflow.versions import AIRFLOW, FIRST_WITH_DEADLINES
from ferry.alerting.alert import Alert, AlertKind, Severity
from ferry.alerting.delivering import deliver
from ferry.config import Flow
from ferry.config.flow import with_commands
from ferry.config.settings import DEADLINE_SECONDS, AlertSettings
from ferry.errors import ExitCode, FerryError, LimitsBroken, PartitionsFailed, Superseded
from ferry.monitoring.limits import limit_alerts
from ferry.monitoring.runs import ANNOUNCE_TASK, COPY_TASK, REPORT_TASK, SYNC_TASKS

TASK_DIED = "TaskDied"
ENDED = frozenset({"success", "failed"})
SEE_THE_LOG = "read the log of the task"

log = logging.getLogger(__name__)

Context = Mapping[str, Any]


def _callback(act: Callable[[FlowReference, AlertSettings, Context], None]) -> Callable[[FlowReference], Callable[[Context], None]]:
    """What makes the callback for the tasks of a flow: `act` with the flow and its settings."""

    def of_flow(flow: FlowReference) -> Callable[[Context], None]:
        def ended(context: Context) -> None:
            try:
                act(flow, settings_of(flow).alerts, context)
            except Exception as problem:  # noqa: BLE001 - a task that has failed must not fail in another way
                log.warning("the alert could not be made: %s", type(problem).__name__)

        return ended

    return of_flow


@_callback
def on_failure(flow: FlowReference, settings: AlertSettings, context: Context) -> None:
    """A task of the flow failed for good."""
    found = [] if _told_elsewhere(context) else failure_alerts(flow, context)
    # A task that failed in the middle has not checked the rest. But all limits are measured at once.
    measured = bool(found) and all(alert.kind is AlertKind.LIMIT for alert in found)
    tell(settings, context["ti"], str(context["run_id"]), found, is_all=measured, part=_part(context))
    _tell_late_end(flow, settings, context)


@_callback
def on_success(flow: FlowReference, settings: AlertSettings, context: Context) -> None:
    """A task of the flow succeeded. If the report finds no problem, the copy has none either.

    A problem of any run is resolved only in a run that does everything, one of a limited run also in a run with the same limits.
    """
    task, run_id, part = context["ti"], str(context["run_id"]), _part(context)
    if task.task_id != ANNOUNCE_TASK:  # it sends its own alerts, and succeeds
        tell(settings, task, run_id, (), is_all=True, part=part)
    if task.task_id == REPORT_TASK:
        tell(settings, task, run_id, (), is_all=True, part=part, task_id=COPY_TASK)
    _tell_late_end(flow, settings, context)


def _part(context: Context) -> dict[str, Any]:
    """What limits the run: a dry run, a backfill, or only some topics, times or groups. Each of the flow's DAGs has some of these."""
    given = context.get("params") or {}
    part = {name: given[name] for name in ("dry_run", "topics", "from", "until", "groups") if given.get(name)}
    run = context.get("dag_run")  # none if the process of the task died
    if given.get("bound") == "interval" or (run is not None and run.run_type == "backfill"):
        part["interval_of"] = str(context["run_id"])  # another run copies other records
    return part


@_callback
def on_retry(flow: FlowReference, settings: AlertSettings, context: Context) -> None:
    """A task of the flow failed, and will be tried again."""
    if settings.on_first_failure and context["ti"].try_number == 1 and not _told_elsewhere(context):
        found = failure_alerts(flow, context)
        warnings = (replace(alert, severity=Severity.WARNING, message=f"{alert.message}; Airflow will try it again") for alert in found)
        tell(settings, context["ti"], str(context["run_id"]), warnings, is_all=False, part=_part(context))


def failure_alerts(reference: FlowReference, context: Context) -> list[Alert]:
    """The alerts about a task that failed for good. An alert of the report names what failed in the run, not the report itself."""
    flow = reference.name
    exception = context.get("exception")
    problem = exception if isinstance(exception, FerryError) else getattr(exception, "__cause__", None)
    task = context["ti"]
    run_id, url = str(context["run_id"]), str(task.log_url)
    if isinstance(problem, LimitsBroken):
        return limit_alerts(flow, problem.broken, run_id=run_id, url=url)
    if isinstance(problem, Superseded):  # the newer run will not report a loss that this run found
        problem = next((other for other in problem.others if other.exit_code is ExitCode.DATA_LOST), problem)
    if isinstance(problem, Superseded) or isinstance(exception, EarlierTaskFailed):
        return []
    if isinstance(exception, JobFailed) and exception.exit_code is ExitCode.SUPERSEDED:
        return []
    message, next_step, code = _said(reference, run_id, exception, problem)
    what = TASK_DIED if exception is None else type(problem if isinstance(problem, FerryError) else exception).__name__
    severity = Severity.CRITICAL if code is ExitCode.DATA_LOST else Severity.ERROR
    reported = task.task_id == REPORT_TASK and isinstance(problem, FerryError)
    text = f"{flow}: {message}" if reported else f"{flow}: task {task.task_id} failed: {message}"
    return [Alert(flow, AlertKind.FAILURE, severity, what, text, next_step, run_id=run_id, url=url)]


def _said(reference: FlowReference, run_id: str, exception: BaseException | None, problem: object) -> tuple[str, str, ExitCode]:
    """What an alert says of an exception, what a person should do, and the exit code. `problem`: Ferry's error behind it, if it is one."""
    if isinstance(exception, JobFailed):
        return str(exception), SEE_THE_LOG, exception.exit_code
    if isinstance(problem, FerryError):
        said = str(problem).removeprefix(f"run {run_id} of {reference.name}: ")  # an alert names both anyway
        message = "; ".join([said, *getattr(problem, "__notes__", ())])
        return message, with_commands(problem.next_step, reference.name, reference.config), problem.exit_code
    if exception is None:  # Airflow's scheduler found the process dead: there is no exception
        return "its process died or was killed", SEE_THE_LOG, ExitCode.OTHER
    # The text of a foreign exception may hold anything, even a password.
    return "its log says why", SEE_THE_LOG, ExitCode.OTHER


def _told_elsewhere(context: Context) -> bool:
    """Whether another task alerts: a report repeats a failure of the copy, and a failed sync is in the report unless the copy failed."""
    task, exception = context["ti"], context.get("exception")
    name = str(task.task_id)
    if not isinstance(getattr(exception, "__cause__", None), PartitionsFailed) or not name.startswith((REPORT_TASK, SYNC_TASKS)):
        return False
    # Both run after the copy, so its state is final.
    states = task.get_task_states(dag_id=task.dag_id, task_ids=[COPY_TASK], run_ids=[context["run_id"]])
    copy_failed = not {"failed", "upstream_failed"}.isdisjoint(str(state) for state in states.get(context["run_id"], {}).values())
    return copy_failed if name == REPORT_TASK else not copy_failed


def deadline_arguments(flow: Flow, config: Path) -> dict[str, Any]:
    """Arguments of the DAG for the deadline of the flow's runs, from the time when a run is queued. Airflow's scheduler watches it."""
    seconds = flow.alerts.deadline_seconds
    if seconds is None or AIRFLOW < FIRST_WITH_DEADLINES:
        return {}
    from airflow.sdk.definitions.callback import SyncCallback  # noqa: PLC0415 - no such module before 3.2
    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference  # noqa: PLC0415 - likewise

    named = {"name": f"{flow.name} ended"} if AIRFLOW >= (3, 3) else {}
    call = SyncCallback("ferry.airflow.alerts.deadline_missed", kwargs={"config": str(config), "flow": flow.name})
    return {"deadline": [DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(seconds=seconds), call, **named)]}


def deadline_missed(config: str, flow: str, context: Context) -> None:
    """Airflow calls this on an executor when a run has not ended in time."""
    from airflow.sdk.configuration import conf  # noqa: PLC0415 - only this needs it, and Airflow 3.1 lacks it as it lacks deadlines

    settings = settings_of(FlowReference(Path(config), flow)).alerts
    run = context.get("dag_run") or {}
    if run.get("state") in ENDED:  # Airflow keeps the deadline of a failed run
        return
    run_id, dag = str(run.get("dag_run_id", "")), str(run.get("dag_id", ""))
    url = f"{conf.get('api', 'base_url', fallback='').rstrip('/')}/dags/{dag}/runs/{quote(run_id, safe='')}"
    deliver(settings, [_late(flow, settings, run_id, url)])


def _late(flow: str, settings: AlertSettings, run_id: str, url: str) -> Alert:
    return Alert(
        flow=flow,
        kind=AlertKind.DEADLINE,
        severity=Severity.ERROR,
        what=DEADLINE_SECONDS,
        message=f"{flow}: run {run_id} has not ended {settings.deadline_seconds} s after it was queued",
        next_step="look at the run in Airflow: is a task running, waiting for a slot, or being tried again? ferry status shows the lag",
        limit=settings.deadline_seconds,
        run_id=run_id,
        url=url,
    )


def _tell_late_end(flow: FlowReference, settings: AlertSettings, context: Context) -> None:
    """Say that an alert about the deadline is over: the report is the end of a run. deadline_missed sends the alert if a run ends late.

    A task does not learn when its run was queued. A run that a person triggers is queued at that time. Airflow usually starts all other
    runs at once, also those that a person has cleared.
    """
    task, run, run_id = context["ti"], context["dag_run"], str(context["run_id"])
    if task.task_id != REPORT_TASK or settings.deadline_seconds is None or AIRFLOW < FIRST_WITH_DEADLINES:
        return
    queued = run.run_after if run.run_type == "manual" and not run.clear_number else run.start_date
    if datetime.now(UTC) - queued > timedelta(seconds=settings.deadline_seconds):
        url = str(task.log_url)
        deliver(settings, [resolved(_late(flow.name, settings, run_id, url), run_id, url)])
