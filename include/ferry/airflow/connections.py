"""Airflow connections as cluster settings."""

from __future__ import annotations

from airflow.sdk import Connection

from ferry.config import ConnectionFields


def connection_fields(name: str) -> ConnectionFields:
    """The connection with this id, read from Airflow: inside tasks, not while DAG files are parsed."""
    found = Connection.get(name)
    return ConnectionFields(found.host, found.port, found.login, found.password, found.extra_dejson)


def placeholder(name: str) -> ConnectionFields:
    """Stands for a connection while DAG files are parsed: no look-up, no network."""
    return ConnectionFields(host=f"airflow-connection-{name}", port=9092)
