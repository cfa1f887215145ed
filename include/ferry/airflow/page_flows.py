"""The flows of `FERRY_CONFIG` in the api-server: as PageFlow for answers, and with resolved connections for reads.

The page reads only files that the api-server's own environment names. A file may refer to secrets of the process that reads it, and name
the servers that get them: so a DAG file must not decide what the api-server reads.

A PageFlow needs no connection and no network, so the page shows its flows even while a secret backend is down.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry.airflow.connections import connection_fields, placeholder
from ferry.airflow.flows import TAG, FlowReference, dag_id, refuse_same_ids, verify_dag_id
from ferry.airflow.recovery_params import COMMANDS
from ferry.airflow.versions import SPARK_PROVIDER, is_there
from ferry.config import FerryConfig, Flow, load_config
from ferry.config.flow import CONFIG_VARIABLE, named_configs
from ferry.config.in_force import InForce
from ferry.errors import ArgumentError, ConfigError, FerryError, some_of
from ferry.page.documents import PageFlow, page_flow
from ferry.page.problem import Problem, problem_of

# After this time the page uses a changed file, connection or secret.
FACTS_SECONDS = 10.0
FLOWS_SECONDS = 30.0


@dataclass(frozen=True)
class Known:
    """The flows of the files, in their order. `problem`: what is wrong with the files. `complete`: Ferry could read every named file.

    For a file that it could not read, the flows are those of the last good read.
    """

    flows: tuple[PageFlow, ...] = ()
    problem: Problem | None = None
    complete: bool = True


class ServerFlows:
    """Reads the files again when their data is old. Safe for threads."""

    def __init__(self) -> None:
        self._known = Known()
        self._read: dict[Path, FerryConfig] = {}
        self._read_at: float | None = None
        self._flows: dict[str, Flow] = {}
        self._unreadable: FerryError | None = None
        self._resolved_at: float | None = None
        self._lock = threading.Lock()
        self._resolving = threading.Lock()

    def known(self) -> Known:
        """The flows and whether all files are readable."""
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at > FACTS_SECONDS:
                self._known = self._look()
                self._read_at = time.monotonic()
            return self._known

    def in_force(self, name: str) -> tuple[InForce, ...]:
        """The properties of a flow of `known`, by the last good read of its file."""
        with self._lock:
            return next(config.in_force[name] for config in self._read.values() if name in config.in_force)

    def resolve(self, name: str) -> Flow:
        """The flow with its connections. ConfigError, ArgumentError."""
        with self._resolving:
            if self._resolved_at is None or time.monotonic() - self._resolved_at > FLOWS_SECONDS:
                flows, unreadable = dict[str, Flow](), None
                for path in named_configs():  # a bad file stops no flow of another file
                    try:
                        flows = {flow.name: flow for flow in load_config(path, connections=connection_fields).flows} | flows
                    except FerryError as problem:
                        unreadable = unreadable or problem
                self._flows, self._unreadable, self._resolved_at = flows, unreadable, time.monotonic()
            if name in self._flows:
                return self._flows[name]
            unknown = f"no file that {CONFIG_VARIABLE} names for the api-server has an enabled flow {name}"
            raise self._unreadable or ArgumentError(unknown)  # the flow may be in a file that cannot be read now

    def _look(self) -> Known:
        paths, problem = named_configs(), None
        for path in paths:
            try:
                self._read[path] = load_config(path, connections=placeholder)
            except FerryError as unreadable:
                problem = problem or unreadable
            except OSError as unreadable:
                problem = problem or ConfigError(f"the config file cannot be read: {unreadable.strerror}")
        complete = problem is None
        found = [(FlowReference(path, flow.name), flow) for path in paths if path in self._read for flow in self._read[path].flows]
        try:
            refuse_same_ids(found)
        except ConfigError as doubled:
            problem = problem or doubled
        if not paths:
            problem = ConfigError(f"{CONFIG_VARIABLE} is not set for the api-server: it names the mm2.properties whose flows are shown")
        facts = {dag_id(flow): page_flow(flow, dag_id(flow), verify_dag_id(flow)) for _, flow in found}
        return Known(tuple(facts.values()), None if problem is None else problem_of(problem), complete=complete)


def copying_dags(dags: Iterable[str]) -> set[str]:
    """Those of Ferry's DAGs that copy a flow."""
    names, kinds = set(dags), {"verify", *COMMANDS}
    split = {name: name.rpartition(".") for name in names if name.startswith(f"{TAG}.")}
    return {name for name, (parent, _, kind) in split.items() if not (kind in kinds and parent in names)}


def unnamed_dags(known: Known, dags: Mapping[str, str]) -> dict[str, str]:
    """DAGs that copy a flow of a file that nobody named here. `dags`: all of Ferry's DAGs that Airflow knows, with their descriptions."""
    if not known.complete:  # the DAGs may be of the file that cannot be read
        return {}
    return {name: dags[name] for name in sorted(copying_dags(dags) - {flow.dag_id for flow in known.flows})}


def tell_unnamed(dags: Mapping[str, str]) -> Problem | None:
    """The problem that a user reads about `unnamed_dags`; None: there are none."""
    if not dags:
        return None
    told = some_of([f"{name} ({description})" for name, description in dags.items()], between="; ")
    what = f"Airflow has DAGs of flows that are in no file that {CONFIG_VARIABLE} names for the api-server: {told}"
    step = f"let {CONFIG_VARIABLE} of the api-server name these files too, with {os.pathsep} between two"
    return Problem(ConfigError.__name__, what, step)


def tell_no_dags(flows: Iterable[PageFlow], dags: Mapping[str, str]) -> Problem | None:
    """The problem that a user reads about flows without a DAG, if no Spark provider is installed. `dags`: as for `unnamed_dags`."""
    without = [facts.flow for facts in flows if facts.dag_id not in dags]
    if not without or is_there("airflow.providers.apache.spark"):
        return None
    what = f"Airflow has no DAG of {some_of(without)}, and no Spark provider is installed here: DAGs need it, this page does not"
    return Problem(ConfigError.__name__, what, f"pip install {SPARK_PROVIDER}, in the environment of every process of Airflow")
