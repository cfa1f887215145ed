"""What the verify DAG needs: its id, its form, its runbook, and the body of the task that reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param, get_current_context

from ferry.airflow.flows import flow_for_running
from ferry.airflow.metrics import emit
from ferry.airflow.params import checked_time, checked_topics, known_params, time_param, topics_param
from ferry.airflow.retries import EarlierTaskFailed, typed_retries
from ferry.config import Flow
from ferry.errors import ArgumentError
from ferry.monitoring.measurements import verify_measurements
from ferry.verify.digest_kind import DigestKind
from ferry.verify.report import VerifyReport, said
from ferry.verify.request import VerifyRequest
from ferry.verify.results_topic import read_report

# In the task's log and its XCom; `ferry verify --json` names more.
LISTED = 100


def verify_params() -> dict[str, Param]:
    """The form of a trigger."""
    return {
        "topics": topics_param(),
        "from": time_param("Only records from this time on (their timestamps)."),
        "until": time_param("Only records before this time."),
        "digest": Param(
            DigestKind.STORED.value,
            type="string",
            enum=[kind.value for kind in DigestKind],
            description="What the digests of the report are over: batches as stored, or single records (slower).",
        ),
    }


def verify_request_of(flow: str, context: Mapping[str, Any]) -> VerifyRequest:
    """The request of a DAG run; ArgumentError for parameters that cannot be meant."""
    given = known_params(context, verify_params())
    topics, since, until = checked_topics(given), checked_time(given, "from"), checked_time(given, "until")
    digest = given.get("digest", DigestKind.STORED.value)
    if digest not in list(DigestKind):
        raise ArgumentError(f"parameter digest of the run must be {' or '.join(DigestKind)}, not {digest!r}")
    return VerifyRequest(flow, context["dag_run"].run_id, topics, since=since, until=until, digest=DigestKind(digest))


def report(flow: str) -> dict[str, Any]:
    """The verify's outcome: differences and what was not compared in the log, the document as XCom. Fails when the sides differ."""
    with typed_retries():
        request = verify_request_of(flow, get_current_context())
        settings = flow_for_running(flow)
        outcome = read_report(settings, request.run_id)
        if outcome is None:
            raise EarlierTaskFailed("the compare task left no report: its log names the reason")
        _log(outcome)
        emit(verify_measurements(outcome, settings.source.alias, settings.target.alias))
        outcome.raise_for_outcome()
    document = outcome.document()
    return {**document, **{name: document[name][:LISTED] for name in ("verified", "differences", "not_covered")}}


def _log(outcome: VerifyReport) -> None:
    for left in outcome.not_covered[:LISTED]:
        _print(f"not compared: {left.topic}-{left.partition} {left.side.value} [{left.start}, {left.end}): {left.reason}")
    for difference in outcome.differences[:LISTED]:
        _print(said(difference))
    _print(f"{outcome.differences_total:,} differences, {len(outcome.not_covered):,} parts not compared")
    _print(f"{outcome.records:,} records, {outcome.bytes:,} bytes in {outcome.seconds:.1f} s (CPU {outcome.cpu_seconds:.1f} s)")


def verify_runbook(flow: Flow) -> str:
    """The DAG's documentation."""
    command = f"ferry {{}} $FERRY_CONFIG --flow '{flow.name}'"
    return f"""
### {flow.name}: verify

Proves that `{flow.source.alias}` and `{flow.target.alias}` hold the same records: both logs are read and compared along the ledger, record
by record. Nothing is changed on either side. It may run while the flow copies: what was committed when it began is compared.

| task | does | when it fails |
|---|---|---|
| `compare_copies` | one Spark job that compares all ranges | retried: what was compared already is not compared again |
| `report_outcome` | names every difference and what could not be compared | see below; not retried |

| report says | do |
|---|---|
| `CopiesDiffer` | the log names each record and how it differs. `extra`: who else may write to the remote topic? Else keep the report; \
`{command.format("ledger")}` says how the range was settled |
| `PartitionsFailed` | the log names partition and reason; run it again |

Parameters: `topics` narrows it to some source topics, `from` and `until` to records of that time; `digest` says what \
the report's digests are over. By hand: `{command.format("verify")}`.
"""


def _print(text: str) -> None:
    print(text)  # noqa: T201 - a task's output is its log
