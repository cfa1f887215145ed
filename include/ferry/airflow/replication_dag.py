"""The DAG that replicates one flow: plan, topics, copy, syncs, report."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, dag, task

from ferry.airflow import alerts, assets, flows, params, steps
from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import CopyRecordsOperator
from ferry.config import Flow
from ferry.monitoring.runs import COPY_TASK

RETRY_SECONDS = 30


def replication_dag(flow: Flow, reference: FlowReference, options: DagOptions) -> DAG:
    @dag(
        dag_id=flows.dag_id(flow),
        description=f"Copies topics of {flow.source.alias} to {flow.target.alias}, as {reference.config} says",
        schedule=flows.timetable(flow, reference.config),
        is_paused_upon_creation=True,
        max_active_runs=flows.runs_at_a_time(flow),
        params=params.trigger_params(flow),
        doc_md=flows.runbook(flow),
        **options.of_dag(flow, reference, RETRY_SECONDS),
        **alerts.deadline_arguments(flow, reference.config),
    )
    def replicate() -> None:
        # One XCom a task: each value of a document would be another one, and Airflow 3.0 takes no null as one.
        @task(multiple_outputs=False)
        def plan_run() -> dict[str, Any]:
            return steps.plan(reference)

        @task(multiple_outputs=False, max_active_tis_per_dag=1)
        def prepare_topics(planned: dict[str, Any]) -> dict[str, Any]:
            return steps.prepare(reference, planned)

        @task(multiple_outputs=False, trigger_rule="all_done")
        def sync(name: str, planned: dict[str, Any]) -> dict[str, Any]:
            return steps.sync(reference, name, planned)

        @task(multiple_outputs=False, retries=0, trigger_rule="all_done", outlets=[flows.flow_asset(flow)])
        def report_outcome(planned: dict[str, Any], prepared: dict[str, Any]) -> dict[str, Any]:
            return steps.report(reference, planned, prepared)

        @task(multiple_outputs=False, trigger_rule="all_done", outlets=[assets.topics_alias(flow)])
        def announce_topics(planned: dict[str, Any]) -> dict[str, Any]:
            return assets.announce(reference, planned)

        @task(multiple_outputs=False, trigger_rule="all_done")
        def check_limits(planned: dict[str, Any]) -> dict[str, Any]:
            return steps.check_limits(reference, planned)

        planned = plan_run()
        prepared = prepare_topics(planned)
        copied = CopyRecordsOperator(
            task_id=COPY_TASK,
            planned=planned,
            max_active_tis_per_dag=flows.runs_at_a_time(flow),
            **options.of_spark_task(flow, reference),
        )
        synced = [sync.override(task_id=task_id)(name, planned) for task_id, name in flows.sync_tasks(flow).items()]
        reported = report_outcome(planned, prepared)
        # A flow may have no syncs: the report waits for the copy all the same.
        prepared >> copied >> [*synced, announce_topics(planned), check_limits(planned), reported]
        synced >> reported

    return replicate()
