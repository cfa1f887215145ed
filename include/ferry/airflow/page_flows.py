"""The flows of `FERRY_CONFIG` in the api-server: as PageFlow for answers, and with resolved connections for reads.

A PageFlow needs no connection and no network, so the page shows its flows even while a secret backend is down. Connections are looked up
as the server's own processes do it (environment, secret backends, metadata database), because the task SDK's way needs a supervisor.
"""

import threading
import time
from dataclasses import dataclass

from airflow.models.connection import Connection

from ferry.airflow.connections import placeholder
from ferry.airflow.flows import config_path, dag_id, verify_dag_id
from ferry.config import ConnectionFields, FerryConfig, Flow, load_config
from ferry.errors import ConfigError, FerryError
from ferry.page.documents import PageFlow, page_flow
from ferry.page.problem import Problem, problem_of

# Time after which a changed file, connection or secret is seen.
FACTS_SECONDS = 10.0
FLOWS_SECONDS = 30.0


def server_connection(name: str) -> ConnectionFields:
    """The connection with this id, in an api-server."""
    found = Connection.get_connection_from_secrets(name)
    return ConnectionFields(found.host, found.port, found.login, found.password, found.extra_dejson)


@dataclass(frozen=True)
class Known:
    """The flows of the file, in its order. `problem`: why the file cannot be read now; then the flows are those of the last good read."""

    flows: tuple[PageFlow, ...] = ()
    problem: Problem | None = None


class ServerFlows:
    """Reads the file again when its data is old. Safe for threads."""

    def __init__(self) -> None:
        self._known = Known()
        self._read_at: float | None = None
        self._config: FerryConfig | None = None
        self._resolved_at = 0.0
        self._lock = threading.Lock()
        self._resolving = threading.Lock()

    def known(self) -> Known:
        """The flows and whether the file is readable."""
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at > FACTS_SECONDS:
                self._known = self._look()
                self._read_at = time.monotonic()
            return self._known

    def resolve(self, name: str) -> Flow:
        """The flow with its connections. ConfigError, ArgumentError."""
        with self._resolving:
            if self._config is None or time.monotonic() - self._resolved_at > FLOWS_SECONDS:
                self._config = load_config(config_path(), connections=server_connection)
                self._resolved_at = time.monotonic()
            return self._config.flow(name)

    def _look(self) -> Known:
        try:
            flows = load_config(config_path(), connections=placeholder).flows
            facts = tuple(page_flow(flow, dag_id(flow), verify_dag_id(flow)) for flow in flows)
        except FerryError as problem:
            return Known(self._known.flows, problem_of(problem))
        except OSError as problem:
            return Known(self._known.flows, problem_of(ConfigError(f"the config file cannot be read: {problem.strerror}")))
        return Known(facts)
