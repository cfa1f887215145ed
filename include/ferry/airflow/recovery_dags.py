"""The DAGs of failover, failback and cut-over of one flow. A person confirms each in Airflow, so they need approvals (versions.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, dag, task

from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference
from ferry.airflow.recovering import Movement, RecoveryCopyOperator, RecoveryVerifyOperator
from ferry.airflow.recovery_params import CUTOVER, FAILBACK, FAILOVER, recovery_dag_id, recovery_params, recovery_runbook
from ferry.config import Flow

PLAN = "{{ ti.xcom_pull(task_ids='plan_groups')['body'] }}"
RETRY_SECONDS = 10
# Airflow 3.3 starts a new process when a person has answered. If its scheduler sees only then that the process that asked has ended, it
# takes the task for killed (SchedulerJobRunner.process_executor_events), and asks again.
ASKING: dict[str, Any] = {"retries": 10, "max_retry_delay": timedelta(seconds=RETRY_SECONDS)}


def recovery_dags(flow: Flow, reference: FlowReference, options: DagOptions) -> Iterator[DAG]:
    yield _failover(flow, reference, options)
    for command in (FAILBACK, CUTOVER):
        yield _planned_move(flow, reference, options, command)


def _settings(flow: Flow, reference: FlowReference, options: DagOptions, command: str) -> dict[str, Any]:
    """What the three DAGs have in common."""
    return {
        "dag_id": recovery_dag_id(flow, command),
        "description": f"{command.capitalize()} of {flow.name}, confirmed by a person",
        "params": recovery_params(command),
        "doc_md": recovery_runbook(flow, command),
        **options.of_dag_for_people(flow, reference, RETRY_SECONDS, command),
    }


def _groups_moved(movement: Movement, checked: Any, before: Any, trigger_rule: str) -> None:
    """The second half of each: the table, the person, the groups, the report. `before`: the task that it waits for."""
    planned = task(trigger_rule=trigger_rule)(movement.plan_groups)(checked)
    confirm = ApprovalOperator(task_id="confirm", subject=f"{movement}: write these groups?", body=PLAN, **ASKING)
    before >> planned >> confirm
    written = task(movement.write_groups)(checked, planned, confirm.output)
    task(retries=0)(movement.report_outcome)(written)


def _failover(flow: Flow, reference: FlowReference, options: DagOptions) -> DAG:
    """The DAG that moves groups to the target, also when the source is gone."""

    @dag(schedule=None, **_settings(flow, reference, options, FAILOVER))
    def fail_over() -> None:
        movement = Movement(reference, FAILOVER)
        checked = task(movement.check_clusters)()
        planned = task(retries=0)(movement.plan_copy)("copy", checked)
        # One try: a failover does not wait for it.
        copied = RecoveryCopyOperator(
            task_id="copy_once_more",
            command=FAILOVER,
            what="copy",
            planned=planned,
            retries=0,
            **options.of_spark_task(flow, reference),
        )
        planned >> copied
        _groups_moved(movement, checked, copied, "all_done")

    return fail_over()


def _planned_move(flow: Flow, reference: FlowReference, options: DagOptions, command: str) -> DAG:
    """The DAG of a failback or a cut-over: both sides answer."""
    copies = ("tail", "back") if command == FAILBACK else ("ahead",)

    @dag(schedule=None, **_settings(flow, reference, options, command))
    def move() -> None:
        movement = Movement(reference, command)
        checked = task.short_circuit(movement.check_clusters)()
        last: Any = checked
        spark = options.of_spark_task(flow, reference)
        for what in copies:
            planned = task(task_id=f"plan_copy_{what}", trigger_rule="none_failed")(movement.plan_copy)(what, checked)
            copied = RecoveryCopyOperator(task_id=f"copy_{what}", command=command, what=what, planned=planned, **spark)
            last >> planned >> copied
            last = copied
        origin = flow.target.alias if command == FAILBACK else flow.source.alias
        confirm_stopped = ApprovalOperator(
            task_id="confirm_stopped",
            subject=f"{movement}: have all producers on {origin}, and all consumers of the groups there, been stopped?",
            # A person who rejects ends the run: otherwise plan_groups would go on after skipped tasks, by its trigger rule.
            ignore_downstream_trigger_rules=True,
            **ASKING,
        )
        compared = RecoveryVerifyOperator(task_id="compare_sides", command=command, **spark)
        begun = task(trigger_rule="none_failed")(movement.begin_to_stop)()
        last >> begun >> confirm_stopped >> task(movement.drain)() >> compared
        _groups_moved(movement, checked, compared, "none_failed")

    return move()
