"""The flows of `FERRY_CONFIG` in the api-server: facts for every answer, and whole flows, connections resolved, for reads.

Facts need no connection and no network, so that a page shows its flows even where a secret backend is down. Airflow's connections are
looked up as the server's own processes do it (environment, secret backends, metadata database): the task SDK's way needs a supervisor.
"""

from __future__ import annotations

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

# A changed file is seen after so long; a changed connection or secret too.
FACTS_SECONDS = 10.0
FLOWS_SECONDS = 30.0


def server_connection(name: str) -> ConnectionFields:
    """The connection with this id, in an api-server."""
    found = Connection.get_connection_from_secrets(name)
    return ConnectionFields(found.host, found.port, found.login, found.password, found.extra_dejson)


@dataclass(frozen=True)
class Known:
    """The flows of the file, in its order. `problem`: why the file cannot be read now; the flows are those of the last time then."""

    flows: tuple[PageFlow, ...] = ()
    problem: Problem | None = None

    def flow(self, name: str) -> PageFlow | None:
        """One of them."""
        return next((facts for facts in self.flows if facts.flow == name), None)


class ServerFlows:
    """Reads the file again when it is asked after a while. For many threads."""

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
