"""Failover, failback and cut-over of each flow of the mm2.properties that FERRY_CONFIG names; a person confirms each in Airflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, dag, task

from ferry.airflow import alerts, flows, recovering
from ferry.airflow.recovering import RecoveryCopyOperator, RecoveryVerifyOperator
from ferry.airflow.recovery_params import CUTOVER, FAILBACK, FAILOVER, recovery_dag_id, recovery_params, recovery_runbook
from ferry.config import Flow

PLAN = "{{ ti.xcom_pull(task_ids='plan_groups')['body'] }}"


def settings(flow: Flow, command: str) -> dict[str, Any]:
    """What the three DAGs have in common."""
    retries = {"retries": 3, "retry_delay": timedelta(seconds=10), "retry_exponential_backoff": True}
    return {
        "dag_id": recovery_dag_id(flow, command),
        "description": f"{command.capitalize()} of {flow.name}, confirmed by a person",
        "start_date": flows.START_DATE,
        "catchup": False,
        "is_paused_upon_creation": False,
        "max_active_runs": 1,
        "params": recovery_params(command),
        "tags": ["ferry", command, flow.source.alias, flow.target.alias],
        "doc_md": recovery_runbook(flow, command),
        "default_args": {"owner": "ferry", **retries, "on_failure_callback": alerts.on_failure(flow.name)},
    }


def groups_moved(flow: Flow, command: str, checked: Any, before: Any, trigger_rule: str) -> None:
    """The second half of each: the table, the person, the groups, the report. `before`: the task that it waits for."""

    @task(trigger_rule=trigger_rule)
    def plan_groups(checked: dict[str, Any]) -> dict[str, Any]:
        return recovering.plan_groups(flow.name, command, checked)

    @task
    def write_groups(checked: dict[str, Any], planned: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        return recovering.write_groups(flow.name, command, checked, planned, answer)

    @task(retries=0)
    def report_outcome(written: dict[str, Any]) -> dict[str, Any]:
        return recovering.report_outcome(flow.name, written)

    planned = plan_groups(checked)
    confirm = ApprovalOperator(task_id="confirm", subject=f"{flow.name}: {command}: write these groups?", body=PLAN)
    before >> planned >> confirm
    report_outcome(write_groups(checked, planned, confirm.output))


def failover(flow: Flow) -> DAG:
    """The DAG that moves groups to the target, also when the source is gone."""

    @dag(schedule=None, **settings(flow, FAILOVER))
    def fail_over() -> None:
        @task
        def check_clusters() -> dict[str, Any]:
            return recovering.check_clusters(flow.name, FAILOVER)

        @task(retries=0)
        def plan_copy(checked: dict[str, Any]) -> dict[str, Any]:
            return recovering.plan_copy(flow.name, FAILOVER, "copy", checked)

        checked = check_clusters()
        planned = plan_copy(checked)
        # One try: a failover does not wait for it.
        copied = RecoveryCopyOperator(
            task_id="copy_once_more",
            flow=flow.name,
            command=FAILOVER,
            what="copy",
            planned=planned,
            conn_id=flow.spark_connection,
            retries=0,
        )
        planned >> copied
        groups_moved(flow, FAILOVER, checked, copied, "all_done")

    return fail_over()


def planned_move(flow: Flow, command: str) -> DAG:
    """The DAG of a failback or a cut-over: both sides answer."""
    copies = ("tail", "back") if command == FAILBACK else ("ahead",)

    @dag(schedule=None, **settings(flow, command))
    def move() -> None:
        @task
        def check_clusters() -> dict[str, Any]:
            return recovering.check_clusters(flow.name, command)

        @task(trigger_rule="none_failed")
        def plan_copy(what: str, checked: dict[str, Any]) -> dict[str, Any]:
            return recovering.plan_copy(flow.name, command, what, checked)

        @task(trigger_rule="none_failed")
        def begin_to_stop() -> None:
            recovering.refuse_dry_run(flow.name, command)

        @task
        def drain() -> dict[str, Any]:
            return recovering.drain_rest(flow.name, command)

        checked = check_clusters()
        last: Any = checked
        for what in copies:
            planned = plan_copy.override(task_id=f"plan_copy_{what}")(what, checked)
            copied = RecoveryCopyOperator(
                task_id=f"copy_{what}", flow=flow.name, command=command, what=what, planned=planned, conn_id=flow.spark_connection
            )
            last >> planned >> copied
            last = copied
        origin = flow.target.alias if command == FAILBACK else flow.source.alias
        confirm_stopped = ApprovalOperator(
            task_id="confirm_stopped",
            subject=f"{flow.name}: {command}: have all producers on {origin}, and all consumers of the groups there, been stopped?",
            # Whoever rejects ends it: by its trigger rule plan_groups would go on behind tasks that were skipped.
            ignore_downstream_trigger_rules=True,
        )
        compared = RecoveryVerifyOperator(task_id="compare_sides", flow=flow.name, command=command, conn_id=flow.spark_connection)
        last >> begin_to_stop() >> confirm_stopped >> drain() >> compared
        groups_moved(flow, command, checked, compared, "none_failed")

    return move()


for enabled in flows.flows_told_elsewhere():
    if enabled.copies:
        failover(enabled)
        for command in (FAILBACK, CUTOVER):
            planned_move(enabled, command)
