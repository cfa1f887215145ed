"""The DAG that proves the copies of one flow: its form, its runbook, its two tasks."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Context, Param, dag, get_current_context, task

from ferry.airflow.dag_options import DagOptions
from ferry.airflow.flows import FlowReference, flow_for_running, verify_dag_id
from ferry.airflow.params import checked_time, checked_topics, given_params, time_param, topics_param
from ferry.airflow.spark_operators import FerrySparkOperator
from ferry.airflow.tasks import EarlierTaskFailed, emit, of_flow, say, typed_retries
from ferry.config import Flow
from ferry.ledger.open_flow import open_flow
from ferry.monitoring.measurements import verify_measurements
from ferry.spark.submit import VERIFY_JOB
from ferry.verify.request import DigestKind, VerifyRequest
from ferry.verify.results_topic import read_report

# Entries in the task's log and its XCom; `ferry verify --json` shows more.
LISTED = 100
RETRY_SECONDS = 30


def verify_dag(flow: Flow, reference: FlowReference, options: DagOptions) -> DAG:
    @dag(
        dag_id=verify_dag_id(flow),
        description=f"Proves that {flow.source.alias} and {flow.target.alias} hold the same records",
        schedule=None,
        params=verify_params(flow),
        doc_md=verify_runbook(flow),
        **options.of_dag_for_people(flow, reference, RETRY_SECONDS, "verify"),
    )
    def verify() -> None:
        reported = task(task_id="report_outcome", multiple_outputs=False, retries=0)(of_flow(report, reference))
        VerifyCopiesOperator(task_id="compare_copies", **options.of_spark_task(flow, reference)) >> reported()

    return verify()


def verify_params(flow: Flow | None = None) -> dict[str, Param]:
    """`flow`: the one whose form it is."""
    digest = "What the digests of the report cover: batches as stored, or single records (slower)."
    return {
        "topics": topics_param(flow),
        "from": time_param("Only records with this timestamp or a later one."),
        "until": time_param("Only records with an earlier timestamp."),
        "digest": Param(DigestKind.STORED.value, type="string", enum=[kind.value for kind in DigestKind], description=digest),
    }


def verify_request_of(flow: str, context: Mapping[str, Any]) -> VerifyRequest:
    """The request of a DAG run. ArgumentError for wrong parameters."""
    given = given_params(context, verify_params())
    topics, since, until = checked_topics(given), checked_time(given, "from"), checked_time(given, "until")
    return VerifyRequest(flow, context["dag_run"].run_id, topics, since=since, until=until, digest=DigestKind(given["digest"]))


class VerifyCopiesOperator(FerrySparkOperator):
    """Compares both sides. The report is in the runs topic."""

    job = VERIFY_JOB

    def request(self, context: Context) -> str:
        """The request by the params. Another try has the same run id, so it continues where the last one ended."""
        return verify_request_of(self.flow.name, context).to_json()


def report(flow: FlowReference) -> dict[str, Any]:
    """Report the verify: differences and parts that were not compared in the log, the document as XCom. Fails when the sides differ."""
    with typed_retries(flow):
        request = verify_request_of(flow.name, get_current_context())
        settings = flow_for_running(flow)
        with open_flow(settings) as opened:
            outcome = read_report(opened, request.run_id)
        if outcome is None:
            raise EarlierTaskFailed("the task compare_copies left no report: its log names the reason")
        for text in outcome.lines(LISTED):
            say(text)
        emit(verify_measurements(outcome, settings.source.alias, settings.target.alias))
        outcome.raise_for_outcome()
    document = outcome.document()
    return {**document, **{name: document[name][:LISTED] for name in ("verified", "differences", "not_covered")}}


def verify_runbook(flow: Flow) -> str:
    return f"""
### {flow.name}: verify

Checks that `{flow.source.alias}` and `{flow.target.alias}` hold the same records: Ferry reads both logs and compares them record by record,
as the ledger maps them. It changes nothing on either side. It may run while the flow copies: it compares what was committed when it began.

| task | does | when it fails |
|---|---|---|
| `compare_copies` | one Spark job that compares all ranges | retried; ranges that are done are not compared again |
| `report_outcome` | names every difference and what could not be compared | see below; not retried |

| report says | do |
|---|---|
| `CopiesDiffer` | the log names each record and how it differs. `extra`: check who else writes to the remote topic. Else keep the report; \
`{flow.command("ledger")}` shows how the range was copied |
| `PartitionsFailed` | the log names partition and reason; run it again |

Parameters: `topics` limits it to these source topics, `from` and `until` to records of that time; `digest` says what \
the report's digests cover. On the command line: `{flow.command("verify")}`.
"""
