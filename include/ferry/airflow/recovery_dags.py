"""The DAGs of failover, failback and cut-over of one flow: a task or two for each stage of recovery/stages.py, and a report.

A person confirms each in Airflow, so they need approvals (versions.py).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, dag, task

from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference, dag_id
from ferry.airflow.recovering import Movement, RecoveryCopyOperator, RecoveryVerifyOperator
from ferry.airflow.recovery_params import FAILBACK, FAILOVER, recovery_params, recovery_runbook
from ferry.config import Flow
from ferry.recovery.stages import Stage, stages

PLAN = "{{ ti.xcom_pull(task_ids='plan_groups')['body'] }}"
RETRY_SECONDS = 10
# Airflow 3.3 starts a new process when a person has answered. If its scheduler sees only then that the process that asked has ended, it
# takes the task for killed (SchedulerJobRunner.process_executor_events), and asks again.
ASKING: dict[str, Any] = {"retries": 10, "max_retry_delay": timedelta(seconds=RETRY_SECONDS)}


# By the stage that copies: what it copies, and its two tasks.
COPIES: Mapping[Stage, tuple[str, str, str]] = {
    Stage.COPY_ONCE_MORE: ("copy", "plan_copy", "copy_once_more"),
    Stage.COPY_TAIL: ("tail", "plan_copy_tail", "copy_tail"),
    Stage.COPY_BACK: ("back", "plan_copy_back", "copy_back"),
    Stage.COPY_AHEAD: ("ahead", "plan_copy_ahead", "copy_ahead"),
}


def recovery_dag(flow: Flow, reference: FlowReference, options: DagOptions, command: str) -> DAG:
    @dag(
        dag_id=f"{dag_id(flow)}.{command}",
        schedule=None,
        description=f"{command.capitalize()} of {flow.name}, confirmed by a person",
        params=recovery_params(command),
        doc_md=recovery_runbook(flow, command),
        **options.of_dag_for_people(flow, reference, RETRY_SECONDS, command),
    )
    def move() -> None:
        made = _Tasks(flow, Movement(reference, command), options.of_spark_task(flow, reference))
        for stage in stages(command):
            made.add(stage)

    return move()


class _Tasks:
    """Makes the tasks of one DAG in the order of its stages. `_last`: the task for which the next one waits."""

    def __init__(self, flow: Flow, movement: Movement, spark: dict[str, Any]) -> None:
        self._flow, self._movement, self._spark = flow, movement, spark
        self._checked: Any = None
        self._planned: Any = None
        self._last: Any = None

    def add(self, stage: Stage) -> None:
        movement, fails_over = self._movement, self._movement.command == FAILOVER
        match stage:
            case Stage.CHECK:
                self._last = self._checked = (task if fails_over else task.short_circuit)(movement.check_clusters)()
            case Stage.ASK_STOPPED:
                self._after(task(trigger_rule="none_failed")(movement.begin_to_stop)())
                origin = self._flow.target.alias if movement.command == FAILBACK else self._flow.source.alias
                question = f"{movement}: have all producers on {origin}, and all consumers of the groups there, been stopped?"
                # A person who rejects ends the run: otherwise plan_groups would go on after skipped tasks, by its trigger rule.
                ends_all = {**ASKING, "ignore_downstream_trigger_rules": True}
                self._after(ApprovalOperator(task_id="confirm_stopped", subject=question, **ends_all))
            case Stage.DRAIN:
                self._after(task(movement.drain)())
            case Stage.COMPARE:
                self._after(RecoveryVerifyOperator(task_id="compare_sides", command=movement.command, **self._spark))
            case Stage.PLAN:
                self._planned = task(trigger_rule="all_done" if fails_over else "none_failed")(movement.plan_groups)(self._checked)
                self._after(self._planned)
            case Stage.CONFIRM:
                self._after(ApprovalOperator(task_id="confirm", subject=f"{movement}: write these groups?", body=PLAN, **ASKING))
            case Stage.WRITE:
                task(retries=0)(movement.report_outcome)(task(movement.write_groups)(self._checked, self._planned, self._last.output))
            case _:
                self._copy(*COPIES[stage])

    def _after(self, made: Any) -> None:
        self._last >> made
        self._last = made

    def _copy(self, what: str, planning: str, copying: str) -> None:
        command, one_try = self._movement.command, {"retries": 0}  # a failover does not wait for its copy
        how: dict[str, Any] = one_try if command == FAILOVER else {"trigger_rule": "none_failed"}
        planned = task(task_id=planning, **how)(self._movement.plan_copy)(what, self._checked)
        self._after(planned)
        spark = {**self._spark, **(one_try if command == FAILOVER else {})}
        self._after(RecoveryCopyOperator(task_id=copying, command=command, what=what, planned=planned, **spark))
