"""Airflow connections as cluster settings.

Each process that runs a flow resolves the connection itself, so no password is in arguments, Spark properties or the environment of other
processes. A Spark driver can do so if Airflow is installed there and it can see the connections (environment variables, secret backends).
"""

import importlib.util
import os

from ferry.config import ConnectionFields
from ferry.config.connections import Lookup


def connection_fields(name: str) -> ConnectionFields:
    """The Airflow connection with this id. For tasks, not for parsing DAG files."""
    from airflow.sdk import Connection  # noqa: PLC0415 - costs seconds, and a Spark job that uses no connection does without

    found = Connection.get(name)
    return ConnectionFields(found.host, found.port, found.login, found.password, found.extra_dejson)


def connection_lookup() -> Lookup | None:
    """How a Spark driver finds a connection by its id; None: Airflow is not installed.

    Airflow hides its database from a task and from what the task starts. There Airflow can be imported only as a library, which prepares
    no database.
    """
    os.environ.setdefault("_AIRFLOW__AS_LIBRARY", "1")
    return None if importlib.util.find_spec("airflow") is None else connection_fields


def placeholder(name: str) -> ConnectionFields:
    """Stands for a connection while Airflow parses DAG files: no look-up, no network."""
    return ConnectionFields(host=f"airflow-connection-{name}", port=9092)
