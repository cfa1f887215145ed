"""Who may see what of the Ferry page: Airflow's own login and its auth manager, asked for each flow's DAG.

Every route demands a login first, whatever else is wrong with the request. A user sees the flows whose DAG he may read; runs as Airflow
knows them need the right to read the DAG's runs; `may_trigger` is the right to create a run of it. The page has no route that writes:
what is triggered is triggered by the browser at Airflow's own API, which asks for rights of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.models.dag import DagModel

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser


def may_read(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may see the DAG; asks the metadata database for its team where Airflow has teams."""
    return _allowed(user, dag_id, "GET", None)


def may_read_runs(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may see runs of the DAG."""
    return _allowed(user, dag_id, "GET", DagAccessEntity.RUN)


def may_trigger(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may create a run or a backfill of the DAG."""
    return _allowed(user, dag_id, "POST", DagAccessEntity.RUN)


def may_read_errors(user: BaseUser) -> bool:
    """Whether the user may see why files make no DAGs, which is what a config that cannot be read is."""
    return get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user)


def _allowed(user: BaseUser, dag_id: str, method: ResourceMethod, entity: DagAccessEntity | None) -> bool:
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)
