"""The note of a DAG run: why it failed and what to do, or how far the flow is behind after it. And notes of skipped tasks: why they were.

Airflow lets no task write the note of its own run. So tasks leave their results as XComs, and a listener of Airflow's scheduler makes the
note from them when the run has ended. A note that a person wrote, or that the run got when it started, stays behind Ferry's. Ferry's note
about an earlier try of the run does not stay. No error here stops the scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from ferry.errors import is_error
from ferry.monitoring.runs import REPORT_TASK

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

# Keys of XComs. FAILURE: why a task failed (error, problem, next_step, url). VERDICT: one line about the flow after the run. LEFT_OUT: the
# later tasks that have nothing to do, and why.
FAILURE = "ferry_failure"
VERDICT = "ferry_verdict"
LEFT_OUT = "ferry_left_out"
# So Ferry's note of a skipped task begins.
SKIPPED = "Skipped by Ferry: "
# Airflow's column holds no more.
MOST_CHARACTERS = 1000
# With fewer characters of its first line, a note says too little.
LEAST_CHARACTERS = 120
# What the page writes behind the note of a run that somebody stops there (page/static/actions.js).
STOPPED = "Stopped on the Ferry page"
# Ends Ferry's part of a note.
SIGNATURE = "\n\n— Ferry"


def noted(note: str, left: Mapping[tuple[str, str], Any]) -> str:
    """The new note of a run that has ended. `note`: the note that it has. `left`: XComs by task and key, the oldest first.

    Notes of others stay whole, even if then nothing else fits.
    """
    others = note.rpartition(SIGNATURE)[2].strip()
    behind = f"{SIGNATURE}\n\n{others}".rstrip()
    failures = {task: value for (task, key), value in left.items() if key == FAILURE}
    worst = failures.get(REPORT_TASK) or next(iter(failures.values()), None)  # the report's failure is the worst of the run
    lines = []
    if worst is not None:  # the most important words first: Airflow's list of runs shows little more than the beginning
        problem = re.sub(r"^(run .+? of )?[^ ]+->[^ ]+: ", "", " ".join(str(worst["problem"]).split()))
        lines = [f"{problem} ({worst['error']})", f"next: {worst['next_step']}", f"log: {worst['url']}"]
    lines += [value for (_, key), value in left.items() if key == VERDICT]
    name = f" ({worst['error']})" if worst else ""
    while lines and (excess := sum(map(len, lines)) + 2 * len(lines) + len(behind) - MOST_CHARACTERS) > 0:
        kept = len(lines[0]) - excess - 2 - len(name)
        if kept < LEAST_CHARACTERS:
            lines.pop()
        else:
            lines[0] = f"{lines[0][:kept]} …{name}"
    return "\n\n".join(lines) + behind if lines else others  # Airflow shows Markdown


def note_skipped(tasks: Iterable[TaskInstance], left: Mapping[tuple[str, str], Any]) -> None:
    """Let tasks that were left out say why: they have no log. `left`: as of `noted`."""
    reasons = {task: f"{SKIPPED}{why}" for (_, key), out in left.items() if key == LEFT_OUT for task, why in out.items()}
    for task in tasks:
        note, why = task.note or "", reasons.get(task.task_id, "") if task.state == "skipped" else ""
        if why != note and (not note or note.startswith(SKIPPED)):  # notes of others stay
            task.note = why


def reason_in(note: str) -> tuple[str, str]:
    """Why the run failed, and the name of the error, from its note. No name if a person stopped the run, even if something failed before.

    Both are empty if Ferry left no reason: people write notes for any purpose.
    """
    if note.endswith(STOPPED):
        return "somebody stopped it on the Ferry page", ""
    found = re.fullmatch(r"(.+) \((\w+)\)", note.partition("\n")[0])
    return (found[1], found[2]) if found and is_error(found[2]) else ("", "")


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow's signature
    """Write the note, also after a failure. Called by the scheduler, in its transaction."""
    from airflow.models.xcom import XComModel  # noqa: PLC0415 - tasks load the plugin too, and may not load Airflow's models
    from sqlalchemy import select  # noqa: PLC0415 - likewise
    from sqlalchemy.orm import object_session  # noqa: PLC0415 - likewise

    session = object_session(dag_run)
    if session is None:
        return
    found = select(XComModel).where(
        XComModel.dag_id == dag_run.dag_id, XComModel.run_id == dag_run.run_id, XComModel.key.in_((FAILURE, VERDICT, LEFT_OUT))
    )
    rows = session.scalars(found.order_by(XComModel.timestamp))
    left = {(row.task_id, row.key): XComModel.deserialize_value(row) for row in rows}
    note = noted(dag_run.note or "", left)
    if note != (dag_run.note or ""):
        dag_run.note = note
    if left:  # otherwise it is no run of Ferry's
        note_skipped(dag_run.get_task_instances(session=session), left)


on_dag_run_failed = on_dag_run_success
