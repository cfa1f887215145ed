"""`ferry verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import (
    INLINE,
    AsJson,
    Config,
    FlowName,
    ReportFile,
    Topics,
    check_report_file,
    load_flow,
    moment,
    run_id,
    write_report_file,
)
from ferry.cli.output import complain, document, line, notice, table
from ferry.errors import ExitCode, PartitionsFailed
from ferry.verify.request import DigestKind, VerifyRequest

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.verify.report import VerifyReport

# Rows on the screen; --json and --report hold more.
ROWS_SHOWN = 50

Partitions = Annotated[list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated.")]
Since = Annotated[str | None, typer.Option("--from", help="Only records with this ISO timestamp or a later one.")]
Until = Annotated[str | None, typer.Option("--until", help="Only records with an earlier ISO timestamp.")]
Master = Annotated[str, typer.Option(help="Spark master: local[N], spark://host:port; 'inline' (default) for this process.")]
Digest = Annotated[DigestKind, typer.Option(help="What the digests cover: batches as stored, or single records (slower).")]
Again = Annotated[str | None, typer.Option("--run-id", help="Continue a verify that ended early, by its run id.")]


def verify(
    config: Config,
    flow: FlowName,
    topic: Topics = None,
    partition: Partitions = None,
    since: Since = None,
    until: Until = None,
    master: Master = INLINE,
    digest: Digest = DigestKind.STORED,
    again: Again = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare both sides record by record. The report names every difference, and everything that could not be compared."""

    settings = load_flow(config, flow)
    if report is not None:
        check_report_file(report)
    request = VerifyRequest(
        flow,
        again or run_id("verify"),
        topics=tuple(topic or ()),
        partitions=tuple(partition or ()),
        since=None if since is None else moment("--from", since),
        until=None if until is None else moment("--until", until),
        digest=digest,
    )
    outcome = _carried_out(config, settings, request, master)
    if as_json:
        document(outcome.document())
    else:
        _show(outcome)
    write_report_file(report, outcome.document())
    for problem in outcome.problems():
        complain(f"{type(problem).__name__}: {problem}")
    raise typer.Exit(outcome.exit_code)


def _carried_out(config: Path, flow: Flow, request: VerifyRequest, master: str) -> VerifyReport:
    from ferry.verify.range_runner import InlineRangeRunner  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.verify.verifying import verify as compare  # noqa: PLC0415 - see above

    if master == INLINE:
        return compare(flow, request, InlineRangeRunner(), notice)
    from ferry.spark.submit import VERIFY_JOB, submit_job  # noqa: PLC0415 - only this way needs Spark
    from ferry.verify.results_topic import read_report  # noqa: PLC0415 - see above

    code = submit_job(VERIFY_JOB, config, request, master, notice)
    if code:
        raise typer.Exit(code if code in set(ExitCode) else ExitCode.OTHER)
    found = read_report(flow, request.run_id)
    if found is None:
        raise PartitionsFailed(f"verify {request.run_id} left no report in the runs topic; continue it with --run-id {request.run_id}")
    return found


def _show(outcome: VerifyReport) -> None:
    from ferry.verify.report import said  # noqa: PLC0415 - see above

    left = [(entry.topic, entry.partition, entry.side.value, entry.start, entry.end, entry.reason) for entry in outcome.not_covered]
    if left:
        table(f"{outcome.flow}: not compared", ("topic", "partition", "side", "from", "until", "reason"), left[:ROWS_SHOWN])
    _say_more(len(left))
    for entry in outcome.differences[:ROWS_SHOWN]:
        line(said(entry))
    _say_more(outcome.differences_total)
    line(f"{outcome.records:,} records, {outcome.bytes:,} bytes compared in {outcome.ranges:,} ranges, {outcome.seconds:.1f} s")
    if outcome.exit_code is ExitCode.DONE:
        line("equal" if outcome.records else "nothing to compare")


def _say_more(count: int) -> None:
    if count > ROWS_SHOWN:
        line(f"… and {count - ROWS_SHOWN:,} more: see --json or --report")
