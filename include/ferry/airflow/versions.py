"""What differs between the releases of Airflow that Ferry runs on (3.0 to 3.3).

Other modules import these names from here, also the modules of the page and of the plugin. So nothing here may need a provider. Ferry does
without the features that a release lacks: docs/airflow.md has the list for users.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

try:  # since 3.2
    from airflow.sdk import AssetOrTimeSchedule, CronDataIntervalTimetable
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )
    from airflow.sdk.observability.stats import Stats
except ImportError:
    from airflow.exceptions import (  # type: ignore[attr-defined, no-redef]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )
    from airflow.stats import Stats
    from airflow.timetables.assets import AssetOrTimeSchedule  # type: ignore[assignment]
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails

__all__ = [  # names that other modules import from here, beside those defined below
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
    "AssetOrTimeSchedule",
    "CronDataIntervalTimetable",
    "DownstreamTasksSkipped",
    "Stats",
]


def is_there(module: str) -> bool:
    """Whether the module is installed. Imports the packages that hold it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # these are not there either
        return False


AIRFLOW = tuple(map(int, version("apache-airflow-core").split(".")[:2]))
FIRST_WITH_DEADLINES = (3, 2)  # 3.1 has some, but calls no synchronous callback
# Of a DagBag. Since 3.3 it has no examples.
WITHOUT_EXAMPLES: dict[str, Any] = {"include_examples": False} if AIRFLOW < (3, 3) else {}
SPARK_PROVIDER = "apache-airflow-providers-apache-spark"
# A person can confirm a task since 3.1, with a standard provider that has the operator.
HAS_APPROVALS = AIRFLOW >= (3, 1) and is_there("airflow.providers.standard.operators.hitl")


def extra_of_event(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an event of an alias can hold: Airflow 3.0 fails the task if a value is a list (TaskInstance.register_asset_changes_in_db)."""
    return {name: value for name, value in facts.items() if AIRFLOW >= (3, 1) or not isinstance(value, list)}


def dag_details(dag_id: str) -> DagDetails:
    """The DAG for a question about rights, in an api-server. Airflow has teams since 3.1."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails  # noqa: PLC0415 - tasks load this module too
    from airflow.models.dag import DagModel  # noqa: PLC0415 - likewise

    if AIRFLOW < (3, 1):
        return DagDetails(id=dag_id)
    return DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
