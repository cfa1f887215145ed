"""The runs topic: what each run started from and how each of its tries ended.

`opened` holds where the ledger ended when the run began, so that a report finds the run's receipts by reading the ledger from there. Every
try adds a `result`, every sync its outcome; the last ones count. These records inform people, no decision about data is made by them, so
they are written without a transaction and also by a run that was superseded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.policy.naming import runs_topic
from ferry.reporting.run_report import PartitionFailure, Skipped

if TYPE_CHECKING:
    from ferry.config import Flow

RECORD_VERSION = 1


@dataclass(frozen=True)
class RunOpened:
    """A run began: ledger end offset per ledger partition, ISO start time, end bound in words."""

    run_id: str
    started: str
    bound: str
    ledger_ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RunResult:
    """How a try ended. `superseded` is the reason, if it was."""

    run_id: str
    finished: str
    seconds: float
    cpu_seconds: float
    failed: tuple[PartitionFailure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    superseded: str | None = None


@dataclass(frozen=True)
class RunSync:
    """How a sync of the run ended: the document of a SyncOutcome."""

    run_id: str
    sync: str
    outcome: Mapping[str, Any]


@dataclass(frozen=True)
class RunRecords:
    """What the runs topic says about one run; `opened` is its first try's, `syncs` the last outcome of each."""

    opened: RunOpened | None = None
    result: RunResult | None = None
    cpu_seconds: float = 0.0
    syncs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_KINDS = {RunOpened: "opened", RunResult: "result", RunSync: "sync"}


def write_run_record(flow: Flow, record: RunOpened | RunResult | RunSync) -> None:
    """Append to the runs topic; returns when it is acknowledged by all replicas."""
    kind = _KINDS[type(record)]
    value = json.dumps({"version": RECORD_VERSION, "kind": kind, **asdict(record)}, separators=(",", ":"))
    append_records(flow.target, runs_topic(flow.source.alias), [(record.run_id.encode(), value.encode())])


def read_run_records(flow: Flow, run_id: str) -> RunRecords:
    """Everything that the runs topic says about `run_id`."""
    found = RunRecords()
    with InternalTopicReader(flow.target) as reader:
        for record in reader.read(runs_topic(flow.source.alias)):
            if record.key == run_id.encode() and record.value is not None:
                found = _fold(found, json.loads(record.value))
    return found


def _fold(found: RunRecords, document: dict[str, Any]) -> RunRecords:
    fields = {name: value for name, value in document.items() if name not in {"version", "kind"}}
    if document["kind"] == "opened":
        fields["ledger_ends"] = {int(partition): offset for partition, offset in fields["ledger_ends"].items()}
        return found if found.opened else replace(found, opened=RunOpened(**fields))
    if document["kind"] == "sync":
        return replace(found, syncs={**found.syncs, fields["sync"]: fields["outcome"]})
    fields["failed"] = tuple(PartitionFailure(**failure) for failure in fields["failed"])
    fields["skipped"] = tuple(Skipped(**skipped) for skipped in fields["skipped"])
    result = RunResult(**fields)
    return replace(found, result=result, cpu_seconds=found.cpu_seconds + result.cpu_seconds)
