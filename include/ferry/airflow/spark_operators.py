"""The tasks that start Spark: the provider's SparkSubmitOperator with Ferry's jobs.

If the connection is missing, the provider would use YARN. Ferry raises an error that names the connection. The exit code of the job decides
whether Airflow tries again.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection, Context

from ferry.airflow.flows import FlowReference
from ferry.airflow.steps import request_of, skip_without_work, sum_up
from ferry.airflow.tasks import JobFailed, failure_of_job, leave_out, typed_retries
from ferry.airflow.versions import AirflowException, AirflowNotFoundException, is_there
from ferry.errors import ExitCode, SparkMissing
from ferry.monitoring.runs import COPY_TASK
from ferry.spark.settings import ClassArchive, spark_conf, spark_environment
from ferry.spark.submit import COPY_JOB, job_file, spark_home

if TYPE_CHECKING:
    from ferry.airflow.lineage import Lineage  # imports the OpenLineage provider, an extra

_EXIT_CODE = re.compile(r"Error code is: (\d+)")
# Ferry's jobs do not resume: a new try fences the old one. Older providers do not know the option, and never resume.
_SUBMIT_OPTIONS: dict[str, Any] = {"durable": False} if "durable" in inspect.signature(SparkSubmitOperator.__init__).parameters else {}
# The Spark provider imports it for such a master, and does not require it.
KUBERNETES = "apache-airflow-providers-cncf-kubernetes"


class FerrySparkOperator(SparkSubmitOperator):
    """Submits one of Ferry's jobs for one flow. The request is made when the task runs."""

    job: str
    # Names of the config are no templates, so Airflow renders nothing.
    template_fields: Sequence[str] = ()

    def __init__(self, *, flow: FlowReference, conn_id: str, **options: Any) -> None:
        super().__init__(conn_id=conn_id, name=f"ferry {flow.name}", **_SUBMIT_OPTIONS, **options)
        self.flow = flow

    @abstractmethod
    def request(self, context: Context) -> str:
        """The request of the job as JSON. AirflowSkipException when there is nothing to do."""

    def execute(self, context: Context) -> None:
        with typed_retries(self.flow):
            self.application_args = [str(self.flow.config), "--request", self.request(context)]
            master = self.master(Connection.get)
            self.application = str(job_file(self.job))
            home = str(spark_home())
            self.conf = spark_conf(master, ClassArchive(Path(home)).use)
        path = os.pathsep.join([str(Path(home) / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.env_vars = {**spark_environment(home), "PATH": path}
        try:
            super().execute(context)
        except AirflowException as problem:
            code = _EXIT_CODE.search(str(problem))
            if code is None:
                raise
            raise failure_of_job(self.flow, int(code[1]), str(problem)) from problem

    @property
    def spark_connection(self) -> str:
        """The id of the connection that names Spark's master."""
        return str(self._conn_id)

    def master(self, find: Callable[[str], Any]) -> str:
        """Where Spark runs. `find`: gets the connection of an id, or raises AirflowNotFoundException. SparkMissing."""
        try:
            found = find(self._conn_id)
        except AirflowNotFoundException as problem:
            raise SparkMissing(
                f"Spark connection {self._conn_id} does not exist: create it (type spark, host local[2] or spark://host:port), "
                f"or name another one with ferry.spark.connection"
            ) from problem
        host = found.host or ""
        if not host:
            raise SparkMissing(f"Spark connection {self._conn_id} has no host: set it to local[2] or spark://host:port")
        if host.startswith("k8s:") and not is_there("airflow.providers.cncf.kubernetes"):  # the hook would end with a NameError
            raise SparkMissing(f"Spark connection {self._conn_id} names Kubernetes, which needs another provider: pip install {KUBERNETES}")
        if "://" in host or host.startswith("local"):
            return host if not found.port else f"{host}:{found.port}"
        return f"{found.conn_type}://{host}:{found.port}"


class CopyRecordsOperator(FerrySparkOperator):
    """Copies up to the run's bound."""

    job = COPY_JOB
    template_fields: Sequence[str] = ("planned",)

    def __init__(self, *, planned: Any, **options: Any) -> None:
        super().__init__(**options)
        self.planned = planned

    def request(self, context: Context) -> str:
        skip_without_work(COPY_TASK, self.planned)
        return request_of(self.flow, context).to_json()

    def execute(self, context: Context) -> None:
        """At its end, the syncs that are not due are left out."""
        try:
            super().execute(context)
        except JobFailed as failure:
            if failure.exit_code is not ExitCode.UNREACHABLE:
                sum_up(self.flow, context)
            raise
        leave_out(sum_up(self.flow, context))

    # Only the OpenLineage provider calls these two. It is an extra, which their module imports.
    def get_openlineage_facets_on_start(self) -> Lineage | None:
        from ferry.airflow import lineage  # noqa: PLC0415 - see above

        return lineage.started(self.flow, self.planned)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """Also after a failure, and when the task was skipped."""
        from ferry.airflow import lineage  # noqa: PLC0415 - see above

        return lineage.ended(self.flow, self.planned, task_instance.run_id)
