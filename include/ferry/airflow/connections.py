"""Airflow connections as cluster settings.

Whoever runs a flow resolves a connection itself, so its password never travels in arguments, Spark properties or the environment of other
processes. A Spark driver can do so where it sees Airflow's connections (environment variables, secret backends) and Airflow is installed.
"""

from __future__ import annotations

import importlib.util

from ferry.config import ConnectionFields
from ferry.config.connections import Lookup


def connection_fields(name: str) -> ConnectionFields:
    """The connection with this id, read from Airflow: inside tasks, not while DAG files are parsed."""
    from airflow.sdk import Connection  # noqa: PLC0415 - costs seconds, and a Spark job that uses no connection does without

    found = Connection.get(name)
    return ConnectionFields(found.host, found.port, found.login, found.password, found.extra_dejson)


def connection_lookup() -> Lookup | None:
    """How a Spark driver finds a connection by its id; None where Airflow is not installed."""
    return None if importlib.util.find_spec("airflow") is None else connection_fields


def placeholder(name: str) -> ConnectionFields:
    """Stands for a connection while DAG files are parsed: no look-up, no network."""
    return ConnectionFields(host=f"airflow-connection-{name}", port=9092)
