"""What the page asks Airflow about DAGs: what the user may do with them, and their runs. Reads only.

To start or stop a run, or to pause a DAG, the browser calls Airflow's own API, which checks its own rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun, DagRunNote
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunType
from sqlalchemy import select

from ferry.airflow.flows import TAG
from ferry.airflow.run_note import reason_in
from ferry.airflow.versions import dag_details
from ferry.monitoring.runs import DagRunFacts

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser


def may_read(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may see the DAG. Asks the metadata database for the DAG's team, if Airflow has teams."""
    return _allowed(user, dag_id, "GET", None)


def may_read_runs(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may see runs of the DAG."""
    return _allowed(user, dag_id, "GET", DagAccessEntity.RUN)


def may_trigger(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may create a run or a backfill of the DAG."""
    return _allowed(user, dag_id, "POST", DagAccessEntity.RUN)


def rights(user: BaseUser, dag_id: str, verify_dag_id: str) -> dict[str, bool]:
    """What the user may do: start runs of both DAGs; pause the first one; stop its runs, and clear their tasks so that they run again."""
    return {
        "may_trigger": may_trigger(user, dag_id),
        "may_verify": may_trigger(user, verify_dag_id),
        "may_pause": _allowed(user, dag_id, "PUT", None),
        "may_change_runs": _allowed(user, dag_id, "PUT", DagAccessEntity.RUN),
    }


def may_read_errors(user: BaseUser) -> bool:
    """Whether the user may see import errors of DAG files: an unreadable config is one of them."""
    return get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user)


def _allowed(user: BaseUser, dag_id: str, method: ResourceMethod, entity: DagAccessEntity | None) -> bool:
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=dag_details(dag_id), user=user)


def ferry_dags() -> dict[str, str]:
    """Ferry's DAGs that Airflow knows, with their descriptions, from the metadata database."""
    wanted = select(DagModel.dag_id, DagModel.description).join(DagTag, DagTag.dag_id == DagModel.dag_id)
    with create_session(scoped=False) as session:
        rows = session.execute(wanted.where(DagTag.name == TAG, DagModel.is_stale.is_(False)).order_by(DagModel.dag_id)).all()
    return {row.dag_id: row.description or "" for row in rows}


def is_paused(dag_id: str) -> bool:
    """Whether somebody has paused the DAG, or nobody has unpaused it yet, by the metadata database."""
    with create_session(scoped=False) as session:
        return bool(session.scalar(select(DagModel.is_paused).where(DagModel.dag_id == dag_id)))


def dag_runs(dag_id: str, limit: int) -> tuple[DagRunFacts, ...]:
    """The newest `limit` runs of a DAG, newest first, from the metadata database."""
    columns = (DagRun.run_id, DagRun.state, DagRun.start_date, DagRun.queued_at, DagRun.end_date, DagRun.run_type, DagRun.conf)
    noted = select(*columns, DagRunNote.content).outerjoin(DagRunNote, DagRunNote.dag_run_id == DagRun.id)
    wanted = noted.where(DagRun.dag_id == dag_id).order_by(DagRun.id.desc()).limit(limit)
    with create_session(scoped=False) as session:
        rows = session.execute(wanted).all()
        failed_runs = [row.run_id for row in rows if row.state == DagRunState.FAILED]
        tasks = select(TaskInstance.run_id, TaskInstance.task_id).where(
            TaskInstance.dag_id == dag_id, TaskInstance.run_id.in_(failed_runs), TaskInstance.state == TaskInstanceState.FAILED
        )
        failed = sorted((row.run_id, row.task_id) for row in session.execute(tasks)) if failed_runs else []
    return tuple(
        DagRunFacts(
            run_id=row.run_id,
            state=str(row.state),
            started=_iso(row.start_date or row.queued_at),
            finished=_iso(row.end_date),
            url=f"/dags/{quote(dag_id)}/runs/{quote(row.run_id, safe='')}",
            dry=bool((row.conf or {}).get("dry_run")),
            failed_tasks=tuple(task for run_id, task in failed if run_id == row.run_id),
            backfill=row.run_type == DagRunType.BACKFILL_JOB or (row.conf or {}).get("bound") == "interval",
            topics=tuple((row.conf or {}).get("topics") or ()),
            reason=reason_in(row.content or ""),
        )
        for row in rows
    )


def _iso(moment: object) -> str | None:
    return moment.isoformat(timespec="milliseconds") if hasattr(moment, "isoformat") else None
