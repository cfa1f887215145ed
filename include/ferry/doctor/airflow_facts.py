"""What Airflow says about itself and about Ferry's DAGs. Another process asks it, because only `ferry.airflow` imports Airflow."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

ASKING = "ferry.airflow.doctor_facts"
# Airflow takes 20 s to load on a busy machine; a DAG file that hangs must not stop the diagnosis.
ASK_SECONDS = 300.0


@dataclass(frozen=True)
class DagFacts:
    """The DAG that copies a flow. `config`: by the DAG file; empty: no file that can be parsed here makes the DAG.

    `connection`: the id of the Spark connection, if the flow needs one; `found_in`: what holds it; `master`: Spark's, by the connection;
    `unusable`: why there is none. `seen`: Airflow's database has the DAG. `run`, `state`: of the last run that was not a dry one; `reason`,
    `next_step`: why it failed.
    """

    dag_id: str
    config: str = ""
    connection: str = ""
    found_in: str = ""
    master: str = ""
    unusable: str = ""
    seen: bool = False
    paused: bool = True
    run: str = ""
    state: str = ""
    reason: str = ""
    next_step: str = ""


@dataclass(frozen=True)
class AirflowFacts:
    """`version`: empty if Airflow is not installed. `problem`: why it or its database could not be asked. `folder`: of DAG files.

    `files`: by DAG file that names Ferry, its bundle. `errors`: by file, why it makes no DAGs here; `import_errors`: the same by Airflow's
    database. `silent`: processes of Airflow without a heartbeat.
    """

    version: str = ""
    problem: str = ""
    home: str = ""
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    errors: Mapping[str, str] = field(default_factory=dict, hash=False)
    import_errors: Mapping[str, str] = field(default_factory=dict, hash=False)
    silent: tuple[str, ...] = ()
    dags: tuple[DagFacts, ...] = ()


def read_airflow_facts() -> AirflowFacts:
    """Ask the Airflow of this Python. That it cannot be asked is a fact too."""
    try:
        version = metadata.version("apache-airflow")
        done = subprocess.run([sys.executable, "-m", ASKING], capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    except metadata.PackageNotFoundError:
        return AirflowFacts()
    except subprocess.TimeoutExpired:
        return AirflowFacts(version, f"Airflow did not answer within {ASK_SECONDS:.0f} s")
    if done.returncode:
        return AirflowFacts(version, f"Airflow does not start: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return AirflowFacts(**{**told, "version": version, "dags": tuple(DagFacts(**entry) for entry in told["dags"])})
