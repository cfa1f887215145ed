"""What a user's DAG file may change of Ferry's DAGs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ferry.airflow.alerts import on_failure, on_retry, on_success
from ferry.airflow.flows import START_DATE, TAG, FlowReference
from ferry.config import Flow

ALERTS = {"on_failure_callback": on_failure, "on_retry_callback": on_retry, "on_success_callback": on_success}


@dataclass(frozen=True)
class DagOptions:
    tags: tuple[str, ...] = ()  # in addition to Ferry's
    default_args: Mapping[str, Any] = field(default_factory=dict)  # of all tasks; they win over Ferry's own
    spark_tasks: Mapping[str, Any] = field(default_factory=dict)  # arguments of the tasks that start Spark

    def of_dag(self, flow: Flow, reference: FlowReference, retry_seconds: int, *kinds: str) -> dict[str, Any]:
        """What all DAGs of a flow have in common. A DAG file cannot replace Ferry's alerts: the config sets them."""
        retries = {"retries": 3, "retry_delay": timedelta(seconds=retry_seconds), "retry_exponential_backoff": True}
        callbacks = {name: [alert(reference), *_listed(self.default_args.get(name))] for name, alert in ALERTS.items()}
        default_args = {"owner": "ferry", **retries, **self.default_args, **callbacks}
        tags = list(dict.fromkeys((TAG, *kinds, flow.source.alias, flow.target.alias, *self.tags)))
        return {"start_date": START_DATE, "catchup": False, "tags": tags, "default_args": default_args}

    def of_dag_for_people(self, flow: Flow, reference: FlowReference, retry_seconds: int, kind: str) -> dict[str, Any]:
        """The same for a DAG that only people start."""
        return {"is_paused_upon_creation": False, "max_active_runs": 1, **self.of_dag(flow, reference, retry_seconds, kind)}

    def of_spark_task(self, flow: Flow, reference: FlowReference) -> dict[str, Any]:
        return {"flow": reference, "conn_id": flow.spark_connection, **self.spark_tasks}


def _listed(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
