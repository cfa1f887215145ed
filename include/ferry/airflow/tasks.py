"""Code that the bodies of all tasks share: Ferry's errors in Airflow's terms, metrics, and lines in the task's log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from ferry.airflow.page_docs import linked
from ferry.airflow.run_note import FAILURE, LEFT_OUT
from ferry.airflow.versions import AirflowException, AirflowFailException, DownstreamTasksSkipped, Stats
from ferry.config.flow import with_commands
from ferry.errors import ExitCode, FerryError, RetryRule, all_errors, error_named
from ferry.monitoring.sending import METRIC_PREFIX

if TYPE_CHECKING:
    from ferry.airflow.flows import FlowReference
    from ferry.ledger.sync_outcome import Measurement  # only named here; the scheduler reads this module often

# After these exit codes Airflow must not try again: no error with such a code goes away by itself. (A newer run does the work of a
# superseded one.)
FINAL_EXIT_CODES = frozenset(ExitCode) - {ExitCode.DONE} - {kind.exit_code for kind in all_errors() if kind.retry is RetryRule.RETRY}

# How a Spark job names its error (spark/job.py). Airflow's exception holds the end of the log.
_ERROR_OF_JOB = re.compile(r"^ferry: (\w+): (.+)$", re.MULTILINE)

NOT_PLANNED = "plan_run failed, so there is nothing to do: report_outcome names the reason"

log = logging.getLogger(__name__)


class EarlierTaskFailed(AirflowFailException):
    """A task cannot do its work, because an earlier task failed. That task has said why."""


class JobFailed(AirflowException):
    """A Spark job ended with `exit_code`."""

    exit_code = ExitCode.OTHER


class JobFailedForGood(AirflowFailException, JobFailed):
    """A Spark job ended with an `exit_code` with which every other try would end too."""


def of_flow(function: Callable[..., dict[str, Any]], flow: FlowReference) -> Callable[..., dict[str, Any]]:
    """The body of a task: `function` with the flow as its first argument. Not a partial, because Airflow 3.0 copies bodies."""

    def body(*arguments: Any) -> dict[str, Any]:
        return function(flow, *arguments)

    return body


def leave(key: str, value: Callable[[Any], object]) -> None:
    """Leave `value(task instance)` as an XCom, for the report of the run and for its note. Never raises: no task fails because of it."""
    try:
        task = get_current_context()["ti"]
        task.xcom_push(key, value(task))
    except Exception as trouble:  # noqa: BLE001 - Airflow's, of any kind; also outside of a task
        log.debug("%s could not be kept: %s", key, type(trouble).__name__)


def leave_out(tasks: Mapping[str, str], result: Any = None) -> None:
    """Have Airflow skip these later tasks (why, by task) without a process. If there are any, this ends the task. `result`: its XCom."""
    if not tasks:
        return
    for task, why in tasks.items():
        say(f"{task} is skipped: {why}")
    push = get_current_context()["ti"].xcom_push
    push(LEFT_OUT, dict(tasks))
    if result:
        push("return_value", result)  # Airflow does not do it after an exception, though this one means success
    raise DownstreamTasksSkipped(tasks=list(tasks))  # type: ignore[no-untyped-call]  # it has no annotations


def _leave_failure(flow: FlowReference, error: str, problem: str, next_step: str) -> str:
    """Leave why this task fails. Returns the next step with commands to paste, and links."""
    url = _task_url()
    step = linked(with_commands(next_step, flow.name, flow.config), url)
    leave(FAILURE, lambda task: {"task": str(task.task_id), "error": error, "problem": problem, "next_step": step, "url": url})
    return step


def _task_url() -> str:
    """Where this task's log is; empty outside of a task."""
    try:
        return str(get_current_context()["ti"].log_url)
    except Exception:  # noqa: BLE001 - Airflow's, of any kind
        return ""


def first_failure(tasks: Iterable[str]) -> Mapping[str, str] | None:
    """The error that the first failed one of these tasks has left."""
    task = get_current_context()["ti"]
    return next((found for name in tasks if isinstance(found := task.xcom_pull(task_ids=name, key=FAILURE), Mapping)), None)


@contextmanager
def typed_retries(flow: FlowReference) -> Iterator[None]:
    """Turns a FerryError into an exception after which Airflow tries again, or one after which it does not."""
    try:
        yield
    except FerryError as problem:
        step = _leave_failure(flow, type(problem).__name__, str(problem), problem.next_step)
        text = f"{problem.named} (next: {step})"
        if problem.retry is RetryRule.RETRY:
            raise AirflowException(text) from problem
        raise AirflowFailException(text) from problem


def failure_of_job(flow: FlowReference, code: int, said: str) -> JobFailed:
    """The exception for a Spark job that ended with `code` (not 0). `said`: the end of its log. Leaves the error that it names."""
    known = ExitCode(code)
    for error, problem in _ERROR_OF_JOB.findall(said)[-1:]:
        _leave_failure(flow, error, problem, error_named(error).next_step)
    text = f"the Spark job ended with exit code {code} ({known.name.lower().replace('_', ' ')}); its log above names the reason"
    failure = JobFailedForGood(text) if known in FINAL_EXIT_CODES else JobFailed(text)
    failure.exit_code = known
    return failure


def emit(found: Iterable[Measurement]) -> None:
    """Send measurements as Airflow's own metrics, over StatsD or OpenTelemetry. Never raises: a metric must not fail a task."""
    for one in found:
        try:
            if one.counter:
                Stats.incr(METRIC_PREFIX + one.name, int(one.value), tags=dict(one.tags))
            else:
                Stats.gauge(METRIC_PREFIX + one.name, one.value, tags=dict(one.tags))
        except Exception:
            log.warning("metric %s could not be sent", one.name, exc_info=True)
            return


def say(text: str) -> None:
    print(text)  # noqa: T201 - a task's output is its log
