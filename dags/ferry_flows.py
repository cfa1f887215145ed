"""The DAGs of each flow of the mm2.properties that FERRY_CONFIG names: replicate (plan, topics, copy, syncs, report) and verify."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, dag, task

from ferry.airflow import alerts, assets, flows, params, steps, verifying
from ferry.airflow.spark_operators import CopyRecordsOperator, VerifyCopiesOperator
from ferry.config import Flow
from ferry.monitoring.runs import COPY_TASK


def defaults(flow: Flow) -> dict[str, Any]:
    """What all tasks have in common."""
    retries = {"retries": 3, "retry_delay": timedelta(seconds=30), "retry_exponential_backoff": True}
    return {"owner": "ferry", **retries, "on_failure_callback": alerts.on_failure(flow.name)}


def replication(flow: Flow) -> DAG:
    """The DAG of one flow."""

    @dag(
        dag_id=flows.dag_id(flow),
        description=f"Copies topics of {flow.source.alias} to {flow.target.alias}",
        schedule=flows.timetable(flow),
        start_date=flows.START_DATE,
        catchup=False,
        is_paused_upon_creation=True,
        max_active_runs=flows.runs_at_a_time(flow),
        params=params.trigger_params(),
        tags=["ferry", flow.source.alias, flow.target.alias],
        doc_md=flows.runbook(flow),
        deadline=alerts.deadlines(flow),
        default_args=defaults(flow),
    )
    def replicate() -> None:
        @task
        def plan_run() -> dict[str, Any]:
            return steps.plan(flow.name)

        @task(max_active_tis_per_dag=1)
        def prepare_topics(planned: dict[str, Any]) -> dict[str, Any]:
            return steps.prepare(flow.name, planned)

        @task(trigger_rule="all_done")
        def sync(name: str, planned: dict[str, Any]) -> dict[str, Any]:
            return steps.sync(flow.name, name, planned)

        @task(retries=0, trigger_rule="all_done", outlets=[flows.flow_asset(flow)])
        def report_outcome(planned: dict[str, Any], prepared: dict[str, Any]) -> dict[str, Any]:
            return steps.report(flow.name, planned, prepared)

        @task(trigger_rule="all_done", outlets=[assets.topics_alias(flow)])
        def announce_topics(planned: dict[str, Any]) -> dict[str, Any]:
            return assets.announce(flow.name, planned)

        @task(trigger_rule="all_done")
        def check_limits(planned: dict[str, Any]) -> dict[str, Any]:
            return steps.check_limits(flow.name, planned)

        planned = plan_run()
        prepared = prepare_topics(planned)
        copied = CopyRecordsOperator(
            task_id=COPY_TASK,
            flow=flow.name,
            planned=planned,
            conn_id=flow.spark_connection,
            max_active_tis_per_dag=flows.runs_at_a_time(flow),
        )
        synced = [sync.override(task_id=task_id)(name, planned) for task_id, name in flows.sync_tasks(flow).items()]
        reported = report_outcome(planned, prepared)
        # A flow may have no syncs: the report waits for the copy all the same.
        prepared >> copied >> [*synced, announce_topics(planned), check_limits(planned), reported]
        synced >> reported

    return replicate()


def verification(flow: Flow) -> DAG:
    """The DAG that proves one flow's copies."""

    @dag(
        dag_id=flows.verify_dag_id(flow),
        description=f"Proves that {flow.source.alias} and {flow.target.alias} hold the same records",
        schedule=None,
        start_date=flows.START_DATE,
        catchup=False,
        is_paused_upon_creation=False,
        max_active_runs=1,
        params=verifying.verify_params(),
        tags=["ferry", "verify", flow.source.alias, flow.target.alias],
        doc_md=verifying.verify_runbook(flow),
        default_args=defaults(flow),
    )
    def verify() -> None:
        @task(retries=0)
        def report_outcome() -> dict[str, Any]:
            return verifying.report(flow.name)

        compared = VerifyCopiesOperator(task_id="compare_copies", flow=flow.name, conn_id=flow.spark_connection)
        compared >> report_outcome()

    return verify()


for enabled in flows.flows_for_parsing():
    replication(enabled)
    if enabled.copies:
        verification(enabled)
