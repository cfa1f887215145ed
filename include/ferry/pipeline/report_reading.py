"""A run's report, put together from the target cluster: receipts of the ledger by run id, results of the runs topic.

For the history of runs, Ferry writes a summary of the report and the lag at that time as small records of the runs topic. A run does not
fail if Ferry cannot write them: `keep_run` and `keep_lag` return the reason, and their callers show it. In Airflow two tasks end a run side
by side: `report_outcome` writes the summary, and `check_limits` writes the lag that it measured.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferry.clusters.logs.internal_producer import append_records
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import FerryError
from ferry.ledger.losses import acknowledgement
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import COPIES, Receipt, is_loss
from ferry.ledger.run_report import PartitionFailure, PartitionReport, RepeatedReport, RunReport, Skipped, loss_report, time_now
from ferry.ledger.run_summary import RunLag, encode_run_part, summary_of
from ferry.ledger.runs_topic import RunRecords, RunResult, read_run_records
from ferry.ledger.state import FlowState
from ferry.pipeline.refreshed import ask_receipts_since

NOT_KNOWN = RunLag()
UNFINISHED = PartitionFailure("", -1, "RunUnfinished", "no try of the run came to its end; run it again: nothing is copied twice")


def assemble_report(opened: OpenFlow, request: RunRequest, ledger_ends: Mapping[int, int] | None = None) -> RunReport:
    """What the run with this id did over all its tries. A run that never began is reported as unfinished.

    `ledger_ends`: where the run was opened, if the caller knows it: then the ledger is read beside the rest.
    """
    flow = opened.flow
    state = opened.ask_anew(stable=False)
    asked = None if ledger_ends is None else ask_receipts_since(opened, ledger_ends)
    records = read_run_records(opened, request.run_id)
    if records.opened is None:
        return report_without_copy(flow, request, records, failed=(UNFINISHED,))
    since = (asked or ask_receipts_since(opened, records.opened.ledger_ends)).answer()
    receipts = [receipt for receipt in since if receipt.run_id == request.run_id]
    return report_of(flow.name, request, records, receipts, state.answer().acknowledged)


def report_without_copy(
    flow: Flow, request: RunRequest, records: RunRecords, failed: tuple[PartitionFailure, ...], skipped: tuple[Skipped, ...] = ()
) -> RunReport:
    now = time_now()
    return RunReport(flow.name, request.run_id, now, now, request.bound, skipped=skipped, failed=failed, syncs=records.syncs)


def report_of(flow: str, request: RunRequest, records: RunRecords, receipts: Iterable[Receipt], state: FlowState) -> RunReport:
    """The report from records, receipts and state (pure)."""
    partitions: dict[TopicPartition, PartitionReport] = {}
    losses, repeated = [], []
    for receipt in receipts:
        repeated += [RepeatedReport(*receipt.key, receipt.remote_topic, *span) for span in receipt.repeated]
        if receipt.kind in COPIES:
            partitions[receipt.key] = _added(partitions.get(receipt.key), receipt)
        elif is_loss(receipt) and acknowledgement(receipt) not in state.acknowledged:
            losses.append(loss_report(receipt))
    opened = records.opened
    started = opened.started if opened else ""
    result = records.result or RunResult(request.run_id, finished=started, seconds=0.0, cpu_seconds=0.0, failed=(UNFINISHED,))
    return RunReport(
        flow=flow,
        run_id=request.run_id,
        started=started,
        finished=result.finished,
        bound=opened.bound if opened else request.bound,
        partitions=tuple(partitions[key] for key in sorted(partitions)),
        losses=tuple(losses),
        repeated=tuple(repeated),
        skipped=result.skipped,
        failed=result.failed,
        superseded=result.superseded,
        taken_over=result.taken_over,
        syncs=records.syncs,
        seconds=round(records.seconds, 3),
        cpu_seconds=round(records.cpu_seconds, 3),
    )


def _added(report: PartitionReport | None, receipt: Receipt) -> PartitionReport:
    if report is None:
        report = PartitionReport(receipt.topic, receipt.partition, receipt.remote_topic, receipt.upstream_start, receipt.upstream_end)
    age, latency = receipt.counters.record_age_ms, receipt.counters.replication_latency_ms
    return replace(
        report,
        upstream_start=min(report.upstream_start, receipt.upstream_start),
        upstream_end=max(report.upstream_end, receipt.upstream_end),
        counters=report.counters + receipt.counters,
        last_record_age_ms=report.last_record_age_ms if age is None else age.least,
        last_replication_latency_ms=report.last_replication_latency_ms if latency is None else latency.least,
    )


def keep_run(opened: OpenFlow, report: RunReport, lag: RunLag = NOT_KNOWN) -> str:
    """Write the run's summary. Returns why Ferry could not write it, for people; empty if it did."""
    return _kept(opened, encode_run_part(report.run_id, summary_of(report, lag)))


def keep_lag(opened: OpenFlow, run_id: str, lag: RunLag) -> str:
    """Write the lag at the run's end, where another task writes the summary. Returns the same as `keep_run`."""
    return _kept(opened, encode_run_part(run_id, lag))


def _kept(opened: OpenFlow, record: tuple[bytes, bytes]) -> str:
    topic = opened.flow.runs_topic
    try:
        # A flow that has never copied has no such topic: writing could create it with the broker's settings.
        if opened.target.reader().partitions(topic):
            append_records(opened.target, {topic: [record]})
    except FerryError as problem:
        return f"this run, or its lag, is not in the page's history, because it could not be written: {problem}"
    return ""
