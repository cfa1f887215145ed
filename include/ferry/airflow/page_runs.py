"""DAG runs as Airflow's metadata database knows them, for the list of runs. Reads only."""

from __future__ import annotations

from urllib.parse import quote

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import select

from ferry.monitoring.runs import DagRunFacts


def dag_runs(dag_id: str, limit: int) -> tuple[DagRunFacts, ...]:
    """The newest runs of a DAG, newest first."""
    columns = (DagRun.run_id, DagRun.state, DagRun.start_date, DagRun.queued_at, DagRun.end_date, DagRun.conf)
    wanted = select(*columns).where(DagRun.dag_id == dag_id).order_by(DagRun.id.desc()).limit(limit)
    with create_session(scoped=False) as session:
        rows = session.execute(wanted).all()
        red = [row.run_id for row in rows if row.state == DagRunState.FAILED]
        tasks = select(TaskInstance.run_id, TaskInstance.task_id).where(
            TaskInstance.dag_id == dag_id, TaskInstance.run_id.in_(red), TaskInstance.state == TaskInstanceState.FAILED
        )
        failed = sorted((row.run_id, row.task_id) for row in session.execute(tasks)) if red else []
    return tuple(
        DagRunFacts(
            run_id=row.run_id,
            state=str(row.state),
            started=_iso(row.start_date or row.queued_at),
            finished=_iso(row.end_date),
            url=f"/dags/{quote(dag_id)}/runs/{quote(row.run_id, safe='')}",
            dry=bool((row.conf or {}).get("dry_run")),
            failed_tasks=tuple(task for run_id, task in failed if run_id == row.run_id),
        )
        for row in rows
    )


def _iso(moment: object) -> str | None:
    return moment.isoformat(timespec="milliseconds") if hasattr(moment, "isoformat") else None
