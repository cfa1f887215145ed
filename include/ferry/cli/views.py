"""`ferry status`, `ferry ledger` and `ferry format`. They write nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.copies import AnyFlow, AsJson, Config, FlowName, OneTopic, load_flow
from ferry.cli.output import document, line, notice, table
from ferry.errors import ArgumentError, ExitCode, UnreadableRecord, next_step_of, worst_exit_code

if TYPE_CHECKING:
    from ferry.config import Cluster, Flow
    from ferry.monitoring.lag import PartitionStatus
    from ferry.monitoring.status import FlowStatus

VIEW_VERSION = 1
Decode = Callable[[Any, Any], Any]


class RecordKind(StrEnum):
    """Topics that `ferry format` reads."""

    HEARTBEATS = "heartbeats"
    CHECKPOINTS = "checkpoints"
    OFFSET_SYNCS = "offset-syncs"
    LEDGER = "ledger"
    STATE = "state"


def status(config: Config, flow: AnyFlow = None, as_json: AsJson = False) -> None:
    """Show lag, retention headroom, losses, open transactions, and partitions that the next run will not copy."""
    from ferry.config import load_config  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.monitoring.status import flow_status  # noqa: PLC0415 - see above

    loaded = load_config(config)
    found = [flow_status(entry) for entry in ([loaded.flow(flow)] if flow else loaded.flows)]
    if as_json:
        document({"version": VIEW_VERSION, "flows": [entry.document() for entry in found]})
    else:
        for entry in found:
            _show_status(entry)
    lost = [ExitCode.DATA_LOST for entry in found if entry.losses]
    held = [ExitCode.PARTLY_FAILED for entry in found if any(lag.overdue for lag in entry.last_stable_lags)]
    beyond = [ExitCode.PARTLY_FAILED for entry in found if entry.broken or entry.stopped]
    raise typer.Exit(worst_exit_code([*lost, *held, *beyond]))


def ledger(config: Config, flow: FlowName, topic: OneTopic = None, as_json: AsJson = False) -> None:
    """Show which ranges of the source were copied, backfilled, lost, skipped or seeded."""
    from ferry.config.nearest import nearest_name  # noqa: PLC0415 - see status
    from ferry.ledger.reading import read_receipts  # noqa: PLC0415 - see status
    from ferry.monitoring.ledger_ranges import covered_ranges  # noqa: PLC0415 - see status

    known = read_receipts(load_flow(config, flow))
    receipts = [receipt for receipt in known if topic is None or receipt.topic == topic]
    if topic is not None and not receipts:
        notice(f"the ledger of {flow} has nothing about topic {topic}{nearest_name(topic, {receipt.topic for receipt in known})}")
    ranges = covered_ranges(receipts)
    if as_json:
        document({"version": VIEW_VERSION, "flow": flow, "ranges": [asdict(entry) for entry in ranges]})
        return
    rows = [
        (entry.topic, entry.partition, entry.kind, entry.start, entry.end, entry.records, _moment(entry.max_timestamp), entry.reason)
        for entry in ranges
    ]
    table(f"{flow}: ledger", ("topic", "partition", "kind", "from", "until", "records", "newest record", "reason"), rows)


def format_records(
    kind: Annotated[RecordKind, typer.Argument(metavar="KIND", help="Which internal topic.")],
    config: Config,
    flow: FlowName,
    as_json: AsJson = False,
) -> None:
    """Print an internal topic of the flow, one record on each line. Foreign records are shown as unreadable."""
    entries = list(_decoded(kind, load_flow(config, flow)))
    if as_json:
        document({"version": VIEW_VERSION, "flow": flow, "kind": kind.value, "records": entries})
        return
    for entry in entries:
        line(" ".join(f"{name}={value}" for name, value in entry.items()))


def _decoded(kind: RecordKind, flow: Flow) -> Iterator[dict[str, Any]]:
    from ferry.clusters.internal_reader import InternalTopicReader  # noqa: PLC0415 - see status

    cluster, topic, decode = _decoder(kind, flow)
    own = kind in {RecordKind.LEDGER, RecordKind.STATE}
    with InternalTopicReader(cluster) as reader:
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


def _decoder(kind: RecordKind, flow: Flow) -> tuple[Cluster, str, Decode]:
    from ferry.ledger.receipts import decode_receipt  # noqa: PLC0415 - see status
    from ferry.ledger.state import decode_state  # noqa: PLC0415 - see status
    from ferry.policy.naming import ledger_topic, state_topic  # noqa: PLC0415 - see status
    from ferry.syncs.offset_syncs import offset_syncs_place  # noqa: PLC0415 - see status
    from ferry.wire.internal_records import Checkpoint, Heartbeat, OffsetSync  # noqa: PLC0415 - see status

    policy, alias = flow.policy, flow.source.alias
    decoders: dict[RecordKind, tuple[Cluster, str, Decode]] = {
        RecordKind.HEARTBEATS: (flow.target, policy.heartbeats_topic(), Heartbeat.decode),
        RecordKind.CHECKPOINTS: (flow.target, policy.checkpoints_topic(alias), Checkpoint.decode),
        RecordKind.OFFSET_SYNCS: (*offset_syncs_place(flow), OffsetSync.decode),
        RecordKind.LEDGER: (flow.target, ledger_topic(alias), decode_receipt),
        RecordKind.STATE: (flow.target, state_topic(alias), decode_state),
    }
    return decoders[kind]


def _show_status(found: FlowStatus) -> None:
    errors = {(failure.topic, failure.partition): failure.error for failure in found.stopped}
    rows = [
        (
            entry.topic,
            entry.partition,
            entry.position,
            entry.end,
            entry.lag_records,
            "" if entry.lag_bytes < 0 else entry.lag_bytes,
            "" if entry.lag_seconds < 0 else round(entry.lag_seconds, 1),
            None if entry.headroom_seconds is None else round(entry.headroom_seconds),
            _note(entry, errors),
        )
        for entry in found.partitions
    ]
    columns = ("topic", "partition", "position", "end", "lag", "lag bytes", "lag seconds", "headroom s", "note")
    table(f"{found.flow}: status", columns, rows)
    if found.stage_since:
        line(f"{found.flow} is {found.stage} since {_moment(found.stage_since)}: groups are not synced")
    for failure in found.stopped:
        line(f"STOPPED: {failure}; next: {next_step_of(failure.error)}")
    for held in found.last_stable_lags:
        line(f"{'HANGS' if held.overdue else 'open'}: {held.what}; {held.remedy}")
    for broken in found.broken:
        line(f"over a limit: {broken}")
    for lack in found.lacking:
        line(f"{lack.what}: {lack.reason}")
    for loss in found.losses:
        line(f"lost: {loss.topic}-{loss.partition} [{loss.upstream_start}, {loss.upstream_end}): {loss.reason}")


def _note(entry: PartitionStatus, errors: Mapping[tuple[str, int], str]) -> str:
    notes = [f"stopped: {errors[entry.topic, entry.partition]}"] if (entry.topic, entry.partition) in errors else []
    notes += [f"open transaction at {entry.open_transaction_at}"] if entry.open_transaction_at is not None else []
    return "; ".join(notes)


def _moment(milliseconds: int) -> str:
    return "" if milliseconds < 0 else datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
