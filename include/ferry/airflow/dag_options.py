"""What a user's DAG file may change of Ferry's DAGs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ferry.airflow.alerts import on_failure, on_retry
from ferry.airflow.flows import TAG, FlowReference
from ferry.config import Flow

ALERTS = {"on_failure_callback": on_failure, "on_retry_callback": on_retry}


@dataclass(frozen=True)
class DagOptions:
    """`tags`: further tags. `default_args`: of all tasks, over Ferry's own. `spark_tasks`: arguments of the tasks that start Spark."""

    tags: tuple[str, ...] = ()
    default_args: Mapping[str, Any] = field(default_factory=dict)
    spark_tasks: Mapping[str, Any] = field(default_factory=dict)

    def tags_of(self, flow: Flow, *kinds: str) -> list[str]:
        return list(dict.fromkeys((TAG, *kinds, flow.source.alias, flow.target.alias, *self.tags)))

    def default_args_of(self, flow: FlowReference, retry_seconds: int) -> dict[str, Any]:
        """What all tasks of a DAG have in common. Alerts stay: their place is the config."""
        retries = {"retries": 3, "retry_delay": timedelta(seconds=retry_seconds), "retry_exponential_backoff": True}
        callbacks = {name: [alert(flow), *_listed(self.default_args.get(name))] for name, alert in ALERTS.items()}
        return {"owner": "ferry", **retries, **self.default_args, **callbacks}


def _listed(callbacks: Any) -> list[Any]:
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
