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
    """The DAG that copies a flow."""

    dag_id: str
    config: str = ""  # by the DAG file; empty: no file that can be parsed here makes the DAG
    connection: str = ""  # the id of the Spark connection, if the flow needs one
    found_in: str = ""  # what holds the connection
    master: str = ""  # Spark's master, by the connection
    unusable: str = ""  # why there is no master
    seen: bool = False  # Airflow's database has the DAG
    paused: bool = True
    run: str = ""  # the last run that was not a dry one; `state` is its state
    state: str = ""
    reason: str = ""  # why that run failed
    next_step: str = ""


@dataclass(frozen=True)
class AirflowFacts:
    version: str = ""  # empty: Airflow is not installed
    problem: str = ""  # why Airflow or its database did not answer
    home: str = ""
    folder: str = ""  # the folder of DAG files
    files: Mapping[str, str] = field(default_factory=dict, hash=False)  # by DAG file that names Ferry: its bundle
    errors: Mapping[str, str] = field(default_factory=dict, hash=False)  # by file: why it makes no DAGs here
    import_errors: Mapping[str, str] = field(default_factory=dict, hash=False)  # by file: why it makes no DAGs, by Airflow's database
    silent: tuple[str, ...] = ()  # processes of Airflow without a heartbeat
    dags: tuple[DagFacts, ...] = ()


def read_airflow_facts() -> AirflowFacts:
    """Ask the Airflow of this Python. If that fails, the problem is a fact too."""
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
