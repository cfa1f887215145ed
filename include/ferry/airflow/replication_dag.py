"""The DAG that replicates one flow: plan, topics, schemas, copy, syncs, report.

A task's process costs more than what most tasks do. So the plan names the tasks that have nothing to do, and Airflow skips these without a
process. After a copy, its task does so for the syncs that are not due. A task that has a process, also a cleared one, decides again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, BaseOperator, dag, get_parsing_context, task

from ferry.airflow import alerts, assets, flows, params, steps
from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference
from ferry.airflow.tasks import of_flow
from ferry.airflow.versions import AssetOrTimeSchedule, CronDataIntervalTimetable
from ferry.config import Flow
from ferry.monitoring.runs import ANNOUNCE_TASK, COPY_TASK, LIMITS_TASK, PLAN_TASK, PREPARE_TASK, REPORT_TASK
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY

RETRY_SECONDS = 30


def replication_dag(flow: Flow, reference: FlowReference, options: DagOptions) -> DAG:
    active = 2 if flow.follow_seconds else 1  # a run that follows ends when the next one takes the flow over

    @dag(
        dag_id=flows.dag_id(flow),
        description=f"Copies topics of {flow.source.alias} to {flow.target.alias}, as {reference.config} says",
        schedule=timetable(flow, reference.config),
        is_paused_upon_creation=True,
        max_active_runs=active,
        params=params.trigger_params(flow),
        doc_md=flows.runbook(flow),
        **options.of_dag(flow, reference, RETRY_SECONDS),
        **alerts.deadline_arguments(flow, reference.config),
    )
    def replicate() -> None:
        def body(function: Callable[..., dict[str, Any]], task_id: str, **options: Any) -> Any:
            # One XCom a task: each value of a document would be another one, and Airflow 3.0 takes no null as one.
            return task(task_id=task_id, multiple_outputs=False, **options)(of_flow(function, reference))

        before, after = flows.sync_tasks(flow, BEFORE_THE_COPY), flows.sync_tasks(flow, AFTER_THE_COPY)
        late = {"trigger_rule": "all_done"}
        planned = body(steps.plan, PLAN_TASK)()
        prepared = body(steps.prepare, PREPARE_TASK, max_active_tis_per_dag=1)(planned)
        spark = {"max_active_tis_per_dag": active, **options.of_spark_task(flow, reference)}
        if get_parsing_context().task_id in {None, COPY_TASK}:
            from ferry.airflow.spark_operators import CopyRecordsOperator  # noqa: PLC0415 - loads slowly, and other tasks do not need it

            # Not all_success: topics that need no change are skipped.
            copied: BaseOperator = CopyRecordsOperator(task_id=COPY_TASK, planned=planned, trigger_rule="none_failed", **spark)
        else:
            copied = BaseOperator(task_id=COPY_TASK)
        # A sync before the copy that fails stops it; the topics that need no change are skipped.
        first = [body(steps.sync, task_id, trigger_rule="none_failed")(name, planned) for task_id, name in before.items()]
        synced = [body(steps.sync, task_id, **late)(name, planned) for task_id, name in after.items()]
        announced = body(assets.announce, ANNOUNCE_TASK, outlets=[assets.topics_alias(flow)], **late)(planned)
        limits = body(steps.check_limits, LIMITS_TASK, **late)(planned)
        reported = body(steps.report, REPORT_TASK, outlets=[flows.flow_asset(flow)], retries=0, **late)(planned, prepared)
        # A flow may have no syncs: the report waits for the copy all the same.
        prepared >> [*first, copied]
        first >> copied
        copied >> [*synced, announced, limits, reported]
        [*first, *synced] >> reported

    return replicate()


def timetable(flow: Flow, config: Path) -> CronDataIntervalTimetable | AssetOrTimeSchedule | list[Asset] | None:
    """When runs start: by the flow's cron expression, by records that arrive at the source, or by both."""
    # With a plain cron string the data intervals would have no length.
    cron = CronDataIntervalTimetable(flow.schedule, timezone="UTC") if flow.schedule else None
    if not (flow.watch_seconds and flow.copies):
        return cron
    from ferry.airflow.arrivals import RecordsArrived  # noqa: PLC0415 - slow to load, and few flows need it

    name, uri = flows.dag_id(flow), f"ferry://{flow.source.alias}/{flow.target.alias}/arrivals"
    # Airflow's triggerer updates the asset when the source has records for a run to copy.
    trigger = RecordsArrived(config=str(config), flow=flow.name, dag_id=name, seconds=flow.watch_seconds)
    watcher = AssetWatcher(name=f"{name}.watch", trigger=trigger)
    arrived = [Asset(name=f"{name}.arrivals", uri=uri, group="ferry", watchers=[watcher])]
    return AssetOrTimeSchedule(timetable=cron, assets=arrived) if cron else arrived
