"""Airflow connections as cluster settings.

Each process that runs a flow resolves the connection itself, so no password is in arguments, Spark properties or the environment of other
processes. A Spark driver can do so if Airflow is installed there, but it cannot read Airflow's database. So no process reads connections
from the database: one that is only there is missing for tasks, drivers and the page.
"""

import importlib.util
import os

from ferry.config import ConnectionFields
from ferry.config.connections import Lookup

_ENVIRONMENT = "airflow.secrets.environment_variables.EnvironmentVariablesBackend"


def connection_fields(name: str) -> ConnectionFields:
    """The Airflow connection with this id, of the secrets backend for workers or of the environment. Not for parsing DAG files."""
    from airflow.configuration import initialize_secrets_backends  # noqa: PLC0415 - slow to load, and few flows use connections
    from airflow.sdk.log import mask_secret  # noqa: PLC0415 - likewise

    backends = initialize_secrets_backends([_ENVIRONMENT])
    found = next((found for backend in backends if (found := backend.get_connection(name)) is not None), None)
    if found is None:
        raise LookupError(name)
    for secret in filter(None, (found.password, found.extra, found.extra_dejson)):  # as Airflow does when a task asks it for a connection
        mask_secret(secret)
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
