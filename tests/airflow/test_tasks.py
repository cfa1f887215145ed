"""What Airflow does with each error and exit code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ferry.airflow import assets, recovering, steps, tasks, verify_dag
from ferry.airflow.flows import FlowReference
from ferry.airflow.recovering import Movement, RecoveryCopyOperator, RecoveryVerifyOperator
from ferry.airflow.recovery_params import FAILBACK, FAILOVER
from ferry.airflow.run_note import FAILURE
from ferry.airflow.spark_operators import CopyRecordsOperator
from ferry.airflow.tasks import failure_of_job, typed_retries
from ferry.airflow.verify_dag import VerifyCopiesOperator
from ferry.errors import ClusterUnreachable, ConfigError, ExitCode, FerryError, SourceDataLost, Superseded

pytestmark = pytest.mark.airflow

REFERENCE = FlowReference(Path("/etc/ferry/mm2.properties"), "A->B")


@pytest.mark.parametrize(
    ("code", "final"),
    [
        (ExitCode.OTHER, False),
        (ExitCode.BAD_INPUT, True),
        (ExitCode.UNREACHABLE, False),
        (ExitCode.DATA_LOST, True),
        (ExitCode.PARTLY_FAILED, False),
        (ExitCode.SUPERSEDED, True),
        (137, False),
    ],
)
def test_exit_codes(code: int, final: bool) -> None:
    failure = failure_of_job(REFERENCE, code, "")
    assert isinstance(failure, AirflowFailException) is final
    assert str(int(code)) in str(failure)


@pytest.mark.parametrize(("error", "final"), [(ConfigError, True), (Superseded, True), (SourceDataLost, True), (ClusterUnreachable, False)])
def test_errors(error: type[FerryError], final: bool) -> None:
    with pytest.raises(AirflowException) as caught, typed_retries(REFERENCE):
        raise error("what and where")
    assert isinstance(caught.value, AirflowFailException) is final
    assert "what and where" in str(caught.value)


def test_the_next_step_has_commands_to_paste() -> None:
    told = "then end this warning: ferry ack-loss /etc/ferry/mm2.properties --flow 'A->B'"
    with pytest.raises(AirflowFailException, match=re.escape(told)), typed_retries(REFERENCE):
        raise SourceDataLost("t-0 offset 4")


PLANNED = {"needs_copy": True, "needs_preparation": True, "dry_run": False, "failed": []}
CHECKED = {"away": "", "source_cluster": "", "notices": [], "problems": []}
WRITTEN = {"undone": ["g"], "problems": [], "stage": "begun", "confirmed_by": "admin", "exit_code": 5}
SPARK = {"flow": REFERENCE, "conn_id": "spark_default", "task_id": "task"}
BODIES: dict[str, Callable[[Any], object]] = {
    "plan_run": lambda _: steps.plan(REFERENCE),
    "prepare_topics": lambda _: steps.prepare(REFERENCE, PLANNED),
    "copy_records": lambda context: CopyRecordsOperator(planned=PLANNED, **SPARK).execute(context),
    "sync_groups": lambda _: steps.sync(REFERENCE, "groups", PLANNED),
    "announce_topics": lambda _: assets.announce(REFERENCE, PLANNED),
    "check_limits": lambda _: steps.check_limits(REFERENCE, PLANNED),
    "report_outcome": lambda _: steps.report(REFERENCE, PLANNED, {}),
    "compare_copies": lambda context: VerifyCopiesOperator(**SPARK).execute(context),
    "report_outcome of verify": lambda _: verify_dag.report(REFERENCE),
    "check_clusters": lambda _: Movement(REFERENCE, FAILOVER).check_clusters(),
    "plan_copy": lambda _: Movement(REFERENCE, FAILOVER).plan_copy("copy", CHECKED),
    "copy_back": lambda context: RecoveryCopyOperator(command=FAILBACK, what="back", planned=PLANNED, **SPARK).execute(context),
    "begin_to_stop": lambda _: Movement(REFERENCE, FAILBACK).begin_to_stop(),
    "drain": lambda _: Movement(REFERENCE, FAILBACK).drain(),
    "compare_sides": lambda context: RecoveryVerifyOperator(command=FAILBACK, **SPARK).execute(context),
    "plan_groups": lambda _: Movement(REFERENCE, FAILOVER).plan_groups(CHECKED),
    "write_groups": lambda _: Movement(REFERENCE, FAILOVER).write_groups(CHECKED, {"ahead": (), "away": ""}, {}),
    "report_outcome of a failover": lambda _: Movement(REFERENCE, FAILOVER).report_outcome(WRITTEN),
}


# These two read no config.
WRONG = [(task, wrong) for task in BODIES for wrong in ("config", "parameters")
         if wrong == "parameters" or task not in {"begin_to_stop", "compare_copies"}]  # fmt: skip


@pytest.mark.parametrize(("task", "wrong"), WRONG)
def test_no_error_of_ferry_leaves_a_task_as_it_is(monkeypatch: pytest.MonkeyPatch, task: str, wrong: str) -> None:
    """Airflow would try again whatever it is, and neither the note nor the report could name it."""
    left: dict[str, Any] = {}
    ti = SimpleNamespace(task_id=task, log_url="", try_number=1, xcom_push=left.__setitem__, xcom_pull=lambda **_: None)
    run = SimpleNamespace(run_id="manual__1", run_type="manual", start_date=None)
    context = {"ti": ti, "dag_run": run, "params": {"topics": "no list", "groups": "(", "dry_run": False} if wrong == "parameters" else {}}
    for module in (assets, recovering, steps, tasks, verify_dag):
        monkeypatch.setattr(module, "get_current_context", lambda: context)
    with pytest.raises(AirflowException):
        BODIES[task](context)
    assert left.keys() == {FAILURE}
