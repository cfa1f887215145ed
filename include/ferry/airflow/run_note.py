"""The note of a DAG run: why it failed and what to do, or how far the flow is behind after it.

Airflow lets no task write the note of its own run. So tasks leave what they know as XComs, and a listener of Airflow's scheduler makes the
note from them when the run has ended. A note that somebody else wrote stays. The scheduler goes on whatever happens here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from ferry.errors import is_error
from ferry.monitoring.runs import REPORT_TASK

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

# Keys of XComs. FAILURE: why a task failed (error, problem, next_step, url). VERDICT: one line about the flow after the run.
FAILURE = "ferry_failure"
VERDICT = "ferry_verdict"
# Airflow's column holds no more.
MOST_CHARACTERS = 1000


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow's signature
    """Called by the scheduler, in its transaction."""
    _write(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow's signature
    """Called by the scheduler, in its transaction."""
    _write(dag_run)


def note_of(left: Mapping[tuple[str, str], Any]) -> str:
    """The note, from XComs by task and key, the oldest first; empty if there is none. The report's failure is the worst of the run."""
    failures = {task: value for (task, key), value in left.items() if key == FAILURE}
    worst = failures.get(REPORT_TASK) or next(iter(failures.values()), None)
    lines = [] if worst is None else [_why(worst), f"next: {worst['next_step']}", f"log: {worst['url']}"]
    lines += [value for (_, key), value in left.items() if key == VERDICT]
    spare = max(0, sum(map(len, lines)) + 2 * len(lines) - MOST_CHARACTERS)
    if spare:
        lines[0] = f"{lines[0][: -spare - 2]} …"
    return "\n\n".join(lines)  # Airflow shows Markdown


def _why(failure: Mapping[str, str]) -> str:
    """Airflow shows little more than the beginning in its list of runs, beside the run and the DAG."""
    return f"{re.sub(r'^(run .+? of )?[^ ]+->[^ ]+: ', '', failure['problem'])} ({failure['error']})"


def reason_in(note: str) -> tuple[str, str]:
    """Why the run failed and the name of the error, from its note. Of a note that somebody else wrote: the first line, and no error."""
    first = note.partition("\n")[0]
    found = re.fullmatch(r"(.+) \((\w+)\)", first)
    return (found[1], found[2]) if found and is_error(found[2]) else (first, "")


def _write(dag_run: DagRun) -> None:
    from airflow.models.xcom import XComModel  # noqa: PLC0415 - tasks load the plugin too, and may not load Airflow's models
    from sqlalchemy import select  # noqa: PLC0415 - likewise
    from sqlalchemy.orm import object_session  # noqa: PLC0415 - likewise

    session = object_session(dag_run)
    if session is None or dag_run.note:
        return
    found = select(XComModel).where(
        XComModel.dag_id == dag_run.dag_id, XComModel.run_id == dag_run.run_id, XComModel.key.in_((FAILURE, VERDICT))
    )
    rows = session.scalars(found.order_by(XComModel.timestamp))
    if note := note_of({(row.task_id, row.key): XComModel.deserialize_value(row) for row in rows}):
        dag_run.note = note
