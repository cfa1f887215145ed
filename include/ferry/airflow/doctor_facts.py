"""What `ferry doctor --airflow` asks Airflow, in a process of its own. The last line on stdout is the answer as JSON. Reads only.

DAG files that name Ferry are parsed here, as Airflow's DAG processor does it: so an error and the Spark connection are known before Airflow
looks at the file. Airflow's database knows the rest.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from airflow.api.common.airflow_health import HEALTHY, get_airflow_health
from airflow.configuration import AIRFLOW_HOME, ensure_secrets_loaded
from airflow.dag_processing.bundles.local import LocalDagBundle
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.models import DagBag
from airflow.models.errors import ParseImportError
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from ferry.airflow.flows import settings_of
from ferry.airflow.page_dags import dag_runs, ferry_dags, is_paused
from ferry.airflow.page_flows import copying_dags
from ferry.airflow.versions import WITHOUT_EXAMPLES, AirflowNotFoundException
from ferry.doctor.airflow_facts import AirflowFacts, DagFacts
from ferry.errors import SparkMissing, error_named
from ferry.monitoring.runs import COPY_TASK

NAMES_FERRY = "ferry.airflow"
# The newest runs may be dry ones, which copy nothing.
NEWEST_RUNS = 20
PLACES = {"EnvironmentVariablesBackend": "the environment of this shell", "MetastoreBackend": "Airflow's database"}


def airflow_facts() -> AirflowFacts:
    bundles = DagBundlesManager().get_all_dag_bundles()  # type: ignore[no-untyped-call]  # it has no annotations
    folders = {bundle.name: Path(bundle.path) for bundle in bundles if isinstance(bundle, LocalDagBundle)}
    files = _files_of_ferry(folders)
    facts = AirflowFacts(home=AIRFLOW_HOME, folder=str(next(iter(folders.values()), "")), files=files)
    try:
        seen = copying_dags(ferry_dags())
        bags = [DagBag(file, **WITHOUT_EXAMPLES) for file in files]
        made = {dag.dag_id: _made(dag) for bag in bags for dag in bag.dags.values() if COPY_TASK in dag.task_dict}
        health = get_airflow_health()
        with create_session(scoped=False) as session:
            stored = session.execute(select(ParseImportError.bundle_name, ParseImportError.filename, ParseImportError.stacktrace)).all()
        import_errors = {str(folders.get(str(name), Path()) / str(file)): told(trace) for name, file, trace in stored}
        return replace(
            facts,
            errors={file: told(trace) for bag in bags for file, trace in bag.import_errors.items()},
            import_errors={file: problem for file, problem in import_errors.items() if file in files},
            silent=tuple(name for name in ("scheduler", "dag_processor") if health[name]["status"] != HEALTHY),
            dags=tuple(_with_runs(made.get(name, DagFacts(name)), seen=name in seen) for name in sorted({*made, *seen})),
        )
    except SQLAlchemyError as problem:
        return replace(facts, problem=f"the database does not answer: {str(getattr(problem, 'orig', problem)).splitlines()[0]}")


def _files_of_ferry(folders: Mapping[str, Path]) -> dict[str, str]:
    """The files that name Ferry, each with the name of its bundle. `folders`: of bundles, by name."""
    return {str(file): name for name, folder in folders.items() for file in sorted(folder.rglob("*.py")) if names_ferry(file)}


def names_ferry(file: Path) -> bool:
    """Whether the file names Ferry. False for anything unreadable: a directory, a link to nothing, a file of another user."""
    try:
        return NAMES_FERRY in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def told(trace: str | None) -> str:
    """The exception of a traceback, without the place where it was raised."""
    lines = (trace or "").strip().splitlines()
    return " ".join(lines[1 + max((number for number, line in enumerate(lines) if line.startswith(" ")), default=-1) :])


def _made(dag: Any) -> DagFacts:
    """The DAG by its file, and its Spark connection. A flow that copies no records needs none."""
    task, places = dag.task_dict[COPY_TASK], list[str]()

    def find(name: str) -> Any:
        for backend in ensure_secrets_loaded():
            if (connection := backend.get_connection(name)) is not None:
                places.append(PLACES.get(type(backend).__name__, type(backend).__name__))
                return connection
        raise AirflowNotFoundException(name)

    made = DagFacts(dag.dag_id, config=str(task.flow.config))
    if not settings_of(task.flow).copies:
        return made
    master = unusable = ""
    try:
        master = task.master(find)
    except SparkMissing as problem:
        unusable = str(problem)
    return replace(made, connection=task.spark_connection, master=master, unusable=unusable, found_in="".join(places))


def _with_runs(dag: DagFacts, *, seen: bool) -> DagFacts:
    """The DAG with its state and its runs, by the database."""
    dag = replace(dag, seen=seen, paused=not seen or is_paused(dag.dag_id))
    run = next((run for run in dag_runs(dag.dag_id, NEWEST_RUNS) if not run.dry), None)
    if run is None:
        return dag
    reason, error = run.reason
    log = f"open {run.url} in Airflow, and read the log of {', '.join(run.failed_tasks) or 'the first task that failed'}"
    step = error_named(error).next_step if error else log
    return replace(dag, run=run.run_id, state=run.state, reason=reason or "Ferry left no reason", next_step=step)


if __name__ == "__main__":
    print(json.dumps(asdict(airflow_facts())))  # noqa: T201 - stdout is the answer
