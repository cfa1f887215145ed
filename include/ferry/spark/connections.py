"""Cluster settings from Airflow connections, where the job runs beside Airflow.

The job resolves a connection itself, so its password never travels in arguments, Spark properties or the environment of other processes. It
works where Airflow's connections are visible to the driver: environment variables and secret backends; not on a machine without Airflow.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from ferry.config import ConnectionFields


def connection_lookup() -> Callable[[str], ConnectionFields] | None:
    """A lookup by connection id; None where Airflow is not installed."""
    if importlib.util.find_spec("airflow") is None:
        return None
    return _lookup


def _lookup(name: str) -> ConnectionFields:
    from ferry.airflow.connections import connection_fields  # noqa: PLC0415 - imports Airflow, which costs seconds

    return connection_fields(name)
