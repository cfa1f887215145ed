"""`ferry status`, `ferry ledger`, `ferry format` and `ferry verify`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.bar import drawn
from ferry.cli.options import INLINE, AnyFlow, AsJson, Config, FlowName, OneTopic, ReportFile, Topics, load_flow, moment, run_id
from ferry.cli.output import Prose, answer, check_report_file, complaint, notice
from ferry.errors import ArgumentError, ExitCode, FerryError, PartitionsFailed, UnreadableRecord, time_text, worst_exit_code
from ferry.pipeline.tables import Table
from ferry.verify.request import DigestKind, VerifyRequest

if TYPE_CHECKING:
    from ferry.config import Cluster, Flow
    from ferry.ledger.open_flow import OpenFlow
    from ferry.verify.verify_report import VerifyReport

Decode = Callable[[Any, Any], Any]
# Rows on the screen; --json and --report hold more.
ROWS_SHOWN = 50
# Only the target knows the rest.
_UNREAD = (
    "{} cannot be read, so nothing is known about it now: its positions and its runs are kept on cluster {}; "
    "Airflow shows how its last run ended, and the Ferry page may show how far it was"
)

Every = Annotated[bool, typer.Option("--all", help="Show every partition, not only those that are behind or in trouble.")]
Digest = Annotated[DigestKind, typer.Option(help="What the digests cover: batches as stored, or single records (slower).")]
Tombstones = Annotated[
    bool, typer.Option("--write-tombstones", help="Delete on the target the keys that it reports as undeleted. Supersedes an active run.")
]


class RecordKind(StrEnum):
    HEARTBEATS = "heartbeats"
    CHECKPOINTS = "checkpoints"
    OFFSET_SYNCS = "offset-syncs"
    LEDGER = "ledger"
    STATE = "state"


KINDS = ", ".join(RecordKind)
Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"Which internal topic: {KINDS}.", autocompletion=lambda: list(RecordKind))]


def status(config: Config, flow: AnyFlow = None, every: Every = False, as_json: AsJson = False) -> None:
    """Say of each flow whether it is healthy, how far behind it is, what is missing or lost, why, and what to do next."""
    from ferry.cli.status_text import status_document, status_parts
    from ferry.clusters.open_cluster import OpenClusters
    from ferry.config import load_config
    from ferry.ledger.open_flow import OpenFlow
    from ferry.monitoring.health import FlowHealth
    from ferry.monitoring.status import flow_status
    from ferry.monitoring.verdict import verdict_of

    loaded = load_config(config)
    found, problems, unread = list[FlowHealth](), list[FerryError](), dict[str, dict[str, str]]()
    with OpenClusters() as clusters:
        for entry in [loaded.flow(flow)] if flow else loaded.flows:
            try:
                found.append(flow_status(OpenFlow(entry, clusters)))
            except FerryError as failure:  # the other flows may have clusters that answer
                unread[entry.name] = {"error": type(failure).__name__, "problem": str(failure), "next_step": failure.next_step}
                failure.args = (str(failure) if flow else f"{entry.name}: {failure}",)
                problems.append(failure)
    parts = chain.from_iterable(status_parts(entry, every=every, now=time.time()) for entry in found)
    if found or not (problems and as_json):
        told = (Prose(_UNREAD.format(name, name.partition("->")[2])) for name in unread)
        answer({"flows": [status_document(entry, time.time()) for entry in found], "unread": unread}, chain(parts, told), as_json=as_json)
    for problem in problems[1:]:
        notice(complaint(problem.named))
    codes = [verdict_of(entry, time.time()).exit_code for entry in found]
    if problems and worst_exit_code([*codes, problems[0].exit_code]) is problems[0].exit_code:
        raise problems[0]
    if problems:
        notice(complaint(problems[0].named))
    raise typer.Exit(worst_exit_code(codes))


def ledger(config: Config, flow: FlowName, topic: OneTopic = None, as_json: AsJson = False) -> None:
    """Show which ranges of the source were copied, backfilled, lost, skipped or seeded."""
    from ferry.config.keys import nearest_name
    from ferry.ledger.open_flow import open_flow
    from ferry.ledger.reading import read_receipts
    from ferry.monitoring.ledger_ranges import covered_ranges

    with open_flow(load_flow(config, flow)) as opened:
        known = read_receipts(opened)
    receipts = [receipt for receipt in known if topic is None or receipt.topic == topic]
    if topic is not None and not receipts:
        notice(f"the ledger of {flow} has nothing about topic {topic}{nearest_name(topic, {receipt.topic for receipt in known})}")
    ranges = covered_ranges(receipts)
    moments = (time_text(entry.max_timestamp) if entry.max_timestamp >= 0 else "" for entry in ranges)
    rows = [
        (entry.topic, entry.partition, entry.kind, entry.start, entry.end, entry.records, moment, entry.reason)
        for entry, moment in zip(ranges, moments, strict=True)
    ]
    told = Table(f"{flow}: ledger", ("topic", "partition", "kind", "from", "until", "records", "newest record", "reason"), rows)
    answer({"flow": flow, "ranges": [asdict(entry) for entry in ranges]}, [told], as_json=as_json)


def format_records(config: Config, kind: Kind, flow: FlowName, as_json: AsJson = False) -> None:
    """Print an internal topic of the flow, one record on each line. Shows records in another format as unreadable."""
    if str(config) in set(RecordKind) and not config.exists():  # KIND CONFIG, as it was before
        config, kind = Path(kind), str(config)
    if kind not in set(RecordKind):
        raise ArgumentError(f"KIND must be {' or '.join(KINDS.rsplit(', ', 1))}, not {kind!r}")
    entries = list(_decoded(RecordKind(kind), load_flow(config, flow)))
    parts = (" ".join(f"{name}={value}" for name, value in entry.items()) for entry in entries)
    answer({"flow": flow, "kind": kind, "records": entries}, parts, as_json=as_json)


def _decoded(kind: RecordKind, flow: Flow) -> Iterator[dict[str, Any]]:
    from ferry.clusters.open_cluster import open_cluster
    from ferry.config.mm2_topics import checkpoints_topic, offset_syncs_topic
    from ferry.ledger.receipts import decode_receipt
    from ferry.ledger.state import decode_state
    from ferry.wire.internal_records import Checkpoint, Heartbeat, OffsetSync

    syncs = offset_syncs_topic(flow)
    kinds: dict[RecordKind, tuple[Cluster, str, Decode]] = {
        RecordKind.HEARTBEATS: (flow.target, flow.policy.heartbeats_topic(), Heartbeat.decode),
        RecordKind.CHECKPOINTS: (flow.target, checkpoints_topic(flow).name, Checkpoint.decode),
        RecordKind.OFFSET_SYNCS: (syncs.cluster, syncs.name, OffsetSync.decode),
        RecordKind.LEDGER: (flow.target, flow.ledger_topic, decode_receipt),
        RecordKind.STATE: (flow.target, flow.state_topic, decode_state),
    }
    cluster, topic, decode = kinds[kind]
    own = kind in {RecordKind.LEDGER, RecordKind.STATE}
    with open_cluster(cluster) as opened:
        reader = opened.reader()
        if not reader.partitions(topic):
            raise ArgumentError(f"cluster {cluster.alias} has no topic {topic}")
        for record in reader.read(topic, complete=False):
            at = f"{record.partition}:{record.offset}"
            if own and record.value is None:
                continue  # a removed entry
            try:
                entry = decode(record.key, record.value)
            except (ValueError, UnreadableRecord) as problem:
                yield {"record": "unreadable", "at": at, "problem": str(problem)}
            else:
                yield {"record": type(entry).__name__, "at": at, **asdict(entry)}


def verify(
    config: Config,
    flow: FlowName,
    topic: Topics = None,
    partition: Annotated[list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Only records with this ISO timestamp or a later one.")] = None,
    until: Annotated[str | None, typer.Option(help="Only records with an earlier ISO timestamp.")] = None,
    master: Annotated[str, typer.Option(help="Spark master: local[N], spark://host:port, or 'inline' for this process.")] = INLINE,
    digest: Digest = DigestKind.STORED,
    again: Annotated[str | None, typer.Option("--run-id", help="Continue a verify that ended early, by its run id.")] = None,
    report: ReportFile = None,
    tombstones: Tombstones = False,
    schemas: Annotated[bool, typer.Option("--schemas", help="Compare the schema registries, and look for ids in copied records.")] = False,
    newest: Annotated[int, typer.Option(min=0, help="With --schemas: look at this many of the newest records of a partition.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """Compare both sides record by record. The report names every difference, and everything that could not be compared."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.verify.undeleted import Written, check_tombstones, write_tombstones

    settings = load_flow(config, flow)
    check_report_file(report)
    if schemas:
        from ferry.verify.ids_in_copies import ids_in_copies
        from ferry.verify.registries import verify_schemas, with_ids

        compared = verify_schemas(settings)
        if newest:
            with contacted_flow(settings) as opened:
                compared = with_ids(compared, ids_in_copies(opened, newest, math.inf))
        answer(compared.document(), compared.lines(), as_json=as_json, report=report)
        raise typer.Exit(compared.exit_code)
    bounds = moment("--from", since), moment("--until", until)
    request = VerifyRequest(flow, again or run_id("verify"), tuple(topic or ()), tuple(partition or ()), *bounds, digest)
    if tombstones:
        check_tombstones(settings, request)
    with contacted_flow(settings) as opened:
        outcome = _carried_out(config, opened, request, master, as_json=as_json)
        written: list[Written] = []
        try:
            if tombstones:
                write_tombstones(opened, outcome, run_id("tombstones"), written.append)
        finally:  # also after an error: the differences found, and the tombstones written
            more = {"tombstones": [asdict(entry) for entry in written]} if tombstones else {}
            answer(outcome.document() | more, outcome.lines(ROWS_SHOWN), as_json=as_json, report=report)
            for entry in written:
                notice(str(entry))
    for problem in outcome.problems():
        notice(complaint(problem.named))
    raise typer.Exit(outcome.exit_code)


def _carried_out(config: Path, opened: OpenFlow, request: VerifyRequest, master: str, *, as_json: bool) -> VerifyReport:
    from ferry.verify.range_runner import verify_inline
    from ferry.verify.verifying import verify as compare

    with drawn("nothing is compared yet", as_json=as_json) as say:
        if master == INLINE:
            return compare(opened, request, verify_inline, say)
        from ferry.spark.submit import VERIFY_JOB, submit_job
        from ferry.verify.results_topic import read_report

        code = submit_job(VERIFY_JOB, config, request, master, say)
    if code:
        raise typer.Exit(ExitCode(code))
    found = read_report(opened, request.run_id)
    if found is None:
        raise PartitionsFailed(f"verify {request.run_id} left no report in the runs topic; continue it with --run-id {request.run_id}")
    return found
