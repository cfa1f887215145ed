"""The DAG that proves the copies of one flow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, dag, task

from ferry.airflow import flows, verifying
from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import VerifyCopiesOperator
from ferry.config import Flow

RETRY_SECONDS = 30


def verify_dag(flow: Flow, reference: FlowReference, options: DagOptions) -> DAG:
    @dag(
        dag_id=flows.verify_dag_id(flow),
        description=f"Proves that {flow.source.alias} and {flow.target.alias} hold the same records",
        schedule=None,
        params=verifying.verify_params(flow),
        doc_md=verifying.verify_runbook(flow),
        **options.of_dag_for_people(flow, reference, RETRY_SECONDS, "verify"),
    )
    def verify() -> None:
        @task(multiple_outputs=False, retries=0)
        def report_outcome() -> dict[str, Any]:
            return verifying.report(reference)

        compared = VerifyCopiesOperator(task_id="compare_copies", **options.of_spark_task(flow, reference))
        compared >> report_outcome()

    return verify()
