"""Makes DAGs of the flows of a config file, by one line in a DAG file:

    from ferry.airflow.dags import flows

    flows("/etc/ferry/mm2.properties")

Airflow registers every DAG that is made while it parses a file, so nothing needs to be assigned. The process of a task parses the file too:
there Ferry makes and imports little more than the task's DAG.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ferry.config.flow import named_configs
from ferry.errors import ConfigError

try:
    import airflow.providers.apache.spark  # noqa: F401 - what Ferry uses of it loads slowly, and only some processes need it
    from airflow.sdk import DAG, get_parsing_context

    from ferry.airflow.dag_options import DagOptions
    from ferry.airflow.flows import dag_id, flows_for_parsing
    from ferry.airflow.replication_dag import replication_dag
    from ferry.airflow.versions import HAS_APPROVALS
except ImportError as missing:
    raise ConfigError(
        f"Ferry's DAGs need Airflow and its Spark provider ({missing}): pip install 'kafka-ferry[airflow]', "
        "or apache-airflow-providers-apache-spark where Airflow is there"
    ) from missing


def flows(
    config: str | Path | None = None,
    *,
    tags: Iterable[str] = (),
    pool: str | None = None,
    queue: str | None = None,
    executor_config: Mapping[str, Any] | None = None,
    default_args: Mapping[str, Any] | None = None,
    recovery: bool = True,
) -> tuple[DAG, ...]:
    """The DAGs of each enabled flow of `config`: replication, verify, failover, failback and cut-over.

    `config`: an mm2.properties; a relative path is looked up beside the DAG file that calls. Without it, the files that the environment
    variable FERRY_CONFIG names; none if it is not set.
    `pool`, `queue`, `executor_config`: of the tasks that start Spark. `default_args`: of all tasks. `tags`: in addition to Ferry's.
    `recovery`: also the DAGs of failover, failback and cut-over.

    ConfigError if a file cannot be read or is wrong: Airflow shows it as an import error.
    """
    spark_tasks = {"pool": pool, "queue": queue, "executor_config": executor_config and dict(executor_config)}
    given = {name: value for name, value in spark_tasks.items() if value is not None}
    options = DagOptions(tuple(tags), dict(default_args or {}), given)
    paths = named_configs() if config is None else (_directory_of_the_caller() / Path(config).expanduser(),)
    dags, task_of = list[DAG](), get_parsing_context().dag_id
    for reference, flow in flows_for_parsing(paths):
        name = dag_id(flow)
        if task_of in {None, name}:
            dags.append(replication_dag(flow, reference, options))
        if flow.copies and (task_of is None or task_of.startswith(f"{name}.")):
            from ferry.airflow.verify_dag import verify_dag  # noqa: PLC0415 - see the docstring of this module

            dags.append(verify_dag(flow, reference, options))
            if recovery and HAS_APPROVALS:
                from ferry.airflow.recovery_dags import recovery_dag  # noqa: PLC0415 - likewise, and needs approvals
                from ferry.airflow.recovery_params import COMMANDS  # noqa: PLC0415 - likewise

                dags += (recovery_dag(flow, reference, options, command) for command in COMMANDS)
    return tuple(dags)


def _directory_of_the_caller() -> Path:
    """The directory of the DAG file that called `flows`: Airflow's processes have working directories of their own."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return Path(frame.f_code.co_filename).absolute().parent if frame is not None else Path.cwd()
