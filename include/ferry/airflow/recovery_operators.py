"""Spark tasks of the failover, failback and cut-over DAGs: the jobs of the ordinary DAGs, with run ids of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from ferry.airflow.recovering import copied_flow, copy_run_id
from ferry.airflow.recovery_params import FAILBACK, given_params, options_of
from ferry.airflow.spark_operators import FerrySparkOperator
from ferry.airflow.steps import skip_unless_needed
from ferry.copying.request import RunRequest
from ferry.spark.submit import COPY_JOB, VERIFY_JOB
from ferry.verify.request import VerifyRequest


class RecoveryCopyOperator(FerrySparkOperator):
    """One of the copies (`what`) of a recovery; skipped when there is nothing to copy."""

    job = COPY_JOB
    template_fields: Sequence[str] = ("planned",)

    def __init__(self, *, command: str, what: str, planned: Any, **options: Any) -> None:
        super().__init__(**options)
        self.command, self.what, self.planned = command, what, planned

    def request(self, context: Context) -> str:
        """The copy's request, with a run id of its own."""
        skip_unless_needed(self.planned)
        flow = copied_flow(self.flow, self.command, self.what).name
        return RunRequest(flow, copy_run_id(context["dag_run"].run_id, self.what)).to_json()


class RecoveryVerifyOperator(FerrySparkOperator):
    """Compares both sides after the drain."""

    job = VERIFY_JOB

    def __init__(self, *, command: str, **options: Any) -> None:
        super().__init__(**options)
        self.command = command

    def request(self, context: Context) -> str:
        """The request of the verify; another try continues where the last one ended."""
        if not given_params(self.command, context)["verify"] or not options_of(self.command, context).writes:
            raise AirflowSkipException("not asked for")
        flow = copied_flow(self.flow, self.command, "back" if self.command == FAILBACK else "ahead").name
        return VerifyRequest(flow, copy_run_id(context["dag_run"].run_id, "verify")).to_json()
