"""The runs topic: what each run started from and how each of its tries ended.

`opened` holds where the ledger ended when the run began, so that a report finds the run's receipts by reading the ledger from there. Every
try adds a `result`, every sync its outcome; the last ones count. These records inform people, no decision about data is made by them, so
they are written without a transaction and also by a run that was superseded. Fields that a newer Ferry added are ignored; a newer version
is refused, where it is about the run that is asked for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.errors import UnreadableRecord
from ferry.ledger.formats import place_of, require_version
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.wire.documents import number, read_document, text

if TYPE_CHECKING:
    from ferry.config import Flow

T = TypeVar("T")

# What JSON may hold where a record's class says this.
_HELD_AS: Mapping[str, Any] = {"str": str, "int": int, "float": int | float, "str | None": str | None}

RECORD_VERSION = 1
# A month of runs with many syncs is much to read for every run. Receipts of a run can be told for a day, whatever stands here.
RUN_DAYS = 7


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


def write_run_record(flow: Flow, record: RunOpened | RunResult | RunSync, *, seconds: float | None = None) -> None:
    """Append to the runs topic; returns when it is acknowledged by all replicas. `seconds`: as of append_records."""
    kind = _KINDS[type(record)]
    value = json.dumps({"version": RECORD_VERSION, "kind": kind, **asdict(record)}, separators=(",", ":"))
    append_records(flow.target, flow.runs_topic, [(record.run_id.encode(), value.encode())], seconds=seconds)


def read_run_records(flow: Flow, run_id: str) -> RunRecords:
    """Everything that the runs topic says about `run_id`, if the run is not older than RUN_DAYS: later tries count as a new run."""
    topic = flow.runs_topic
    found = RunRecords()
    with InternalTopicReader(flow.target) as reader:
        since = reader.offsets_at(topic, time.time_ns() // 1_000_000 - RUN_DAYS * 24 * 3600 * 1000)
        for record in reader.read(topic, since):
            if record.key == run_id.encode() and record.value is not None:
                found = fold_run_record(found, record.value, place_of(flow.target, topic))
    return found


def fold_run_record(found: RunRecords, value: bytes, where: str) -> RunRecords:
    """`found` with one more record of the run (pure). NewerFormat or UnreadableRecord. `where`: as of formats.place_of."""
    try:
        document = read_document(value)
        require_version(document, where, RECORD_VERSION)
        kind = document["kind"]
        if kind == "opened":
            opened = _known(RunOpened, document)
            opened = replace(opened, ledger_ends={int(partition): number(offset) for partition, offset in opened.ledger_ends.items()})
            return found if found.opened else replace(found, opened=opened)
        if kind == "sync":
            return replace(found, syncs={**found.syncs, text(document["sync"]): dict(document["outcome"])})
        if kind != "result":
            raise UnreadableRecord(f"{where}: a run's record is of kind {kind!r}")
        failed = tuple(_known(PartitionFailure, failure) for failure in document["failed"])
        skipped = tuple(_known(Skipped, entry) for entry in document["skipped"])
        result = _known(RunResult, {**document, "failed": failed, "skipped": skipped})
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: a run's record is not readable: {problem}") from problem
    return replace(found, result=result, cpu_seconds=found.cpu_seconds + result.cpu_seconds)


def _known(kind: type[T], document: Mapping[str, Any]) -> T:
    """From the fields that this Ferry knows; TypeError or ValueError where one holds something else."""
    kinds = {entry.name: _HELD_AS.get(str(entry.type), object) for entry in fields(kind)}  # type: ignore[arg-type]
    known = {name: value for name, value in document.items() if name in kinds}
    for name, value in known.items():
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r:.40}")
        if isinstance(value, str):
            text(value)
    return kind(**known)
