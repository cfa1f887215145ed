"""The runs topic: where the ledger ended when a run began, and how each of its tries ended.

A report reads the ledger from there (`opened`) to find the run's receipts. Every try adds a `result`, and every sync its outcome; the last
ones count. These records inform people and decide nothing about data, so they are written without a transaction, also by a run that was
superseded. A reader of one run refuses records of that run in a newer version.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ferry import clock
from ferry.clusters.logs.internal_producer import append_records
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.errors import UnreadableRecord
from ferry.ledger.formats import place_of, require_version
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.ledger.run_summary import KEY_PREFIX, RunState
from ferry.wire.strict_json import parse_time, read_as, read_document

RECORD_VERSION = 1
# Every run reads this many days. A month of runs with many syncs would be too much.
RUN_DAYS = 7
VERIFY_PREFIX = b"verify:"  # keys of a verify's records begin so. They are not about runs


@dataclass(frozen=True)
class RunOpened:
    """A run began."""

    run_id: str
    started: str
    bound: str  # its end bound in words
    ledger_ends: Mapping[int, int] = field(default_factory=dict)  # by partition of the ledger: its end offset then
    follow_until: str | None = None  # if the run follows: until when, as an ISO time
    topics: tuple[str, ...] = ()  # it copies only these (empty: all of the flow)


@dataclass(frozen=True)
class RunResult:
    """How a try ended."""

    run_id: str
    finished: str
    seconds: float
    cpu_seconds: float
    failed: tuple[PartitionFailure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    superseded: str | None = None  # the reason, if the try was superseded
    taken_over: str | None = None  # if the try followed: the run that took the flow over. That is a regular end
    began: str = ""  # when the try began, by its RunOpened (empty: it left no such record)


@dataclass(frozen=True)
class RunSync:
    """How a sync of the run ended: the document of a SyncOutcome."""

    run_id: str
    sync: str
    outcome: Mapping[str, Any]


@dataclass(frozen=True)
class RunRecords:
    """What the runs topic says about one run."""

    opened: RunOpened | None = None  # of its first try
    tried: str = ""  # when the last try began
    result: RunResult | None = None
    seconds: float = 0.0  # of all tries, like `cpu_seconds`. A try that left no result took at most until the next one began
    cpu_seconds: float = 0.0
    syncs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the last outcome of each sync


_KINDS = {RunOpened: "opened", RunResult: "result", RunSync: "sync"}
_OPTIONAL = ("ledger_ends", "follow_until", "topics")  # of RunOpened


def encode_run_record(record: RunOpened | RunResult | RunSync) -> tuple[bytes, bytes]:
    value = json.dumps({"version": RECORD_VERSION, "kind": _KINDS[type(record)], **asdict(record)}, separators=(",", ":"))
    return record.run_id.encode(), value.encode()


def write_run_record(opened: OpenFlow, record: RunOpened | RunResult | RunSync, *, seconds: float | None = None) -> None:
    """Append to the runs topic; returns when all replicas have the record. `seconds`: as of append_records."""
    append_records(opened.target, {opened.flow.runs_topic: [encode_run_record(record)]}, seconds=seconds)


def read_run_records(opened: OpenFlow, run_id: str) -> RunRecords:
    """Everything that the runs topic says about `run_id`, if the run is not older than RUN_DAYS: later tries count as a new run."""
    found = RunRecords()
    for record in recent_records(opened, complete=True):
        if record.key == run_id.encode() and record.value is not None:
            found = fold_run_record(found, record.value, place_of(opened.flow.target, opened.flow.runs_topic))
    return found


def read_recent_runs(opened: OpenFlow) -> dict[str, RunRecords]:
    """Every run that is not older than RUN_DAYS, in the order in which they began. Records that cannot be read are left out."""
    found = dict[str, RunRecords]()
    for record in recent_records(opened):
        run_id = record.key.decode(errors="replace")
        with suppress(UnreadableRecord):  # also those with summaries
            if record.value is not None and not record.key.startswith(VERIFY_PREFIX):
                found[run_id] = fold_run_record(found.get(run_id, RunRecords()), record.value, "")
    return {run_id: run for run_id, run in found.items() if run.opened is not None}


def recent_records(opened: OpenFlow, days: int = RUN_DAYS, *, complete: bool = False) -> Iterator[InternalRecord]:
    """Records of the runs topic of the last `days`. `complete`: as of InternalTopicReader."""
    topic, reader = opened.flow.runs_topic, opened.target.reader()
    since = reader.offsets_at(topic, clock.time_ms() - days * 24 * 3600 * 1000)
    return reader.read(topic, since, complete=complete)


def last_end(opened: OpenFlow, days: int) -> int:
    """When the last run of these days ended, in ms; -1: none did. The clock of another machine may be ahead: then it is in the future."""
    now = clock.time() * 1000
    ends = (record.timestamp for record in recent_records(opened, days) if record.key.startswith(KEY_PREFIX))
    return max((ended for ended in ends if ended <= now), default=-1)


def since_last_run(opened: OpenFlow, topics: Iterable[str]) -> dict[str, float]:
    """By topic: how many seconds ago a run last ended that copied the topic; the seconds of RUN_DAYS if none has.

    A run that failed as a whole has copied nothing, and does not count. For a run that follows, each outcome of a sync counts as an end.
    Records that cannot be read are left out.
    """
    now, began = clock.time(), dict[bytes, RunOpened]()
    last = dict.fromkeys(topics, now - RUN_DAYS * 24 * 3600)
    for record in recent_records(opened):
        run_id = record.key.removeprefix(KEY_PREFIX)
        try:
            document = _of_run(record)
            if document.get("kind") == "opened":
                began[run_id] = read_as(RunOpened, document, optional=_OPTIONAL)
            ended = record.key.startswith(KEY_PREFIX) and document["state"] != RunState.FAILED
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # damaged, or not written by Ferry
        run = began.get(run_id)
        goes_on = document.get("kind") == "sync" and run is not None and run.follow_until is not None
        if (goes_on or ended) and record.timestamp <= now * 1000:
            last |= {topic: record.timestamp / 1000 for topic in last if run is None or topic in (run.topics or last)}
    return {topic: now - moment for topic, moment in last.items()}


def _of_run(record: InternalRecord) -> dict[str, Any]:
    """What a record says of a run; empty if it is of a verify, or of nothing any more. ValueError if it is damaged."""
    return read_document(record.value) if record.value and not record.key.startswith(VERIFY_PREFIX) else {}


def runs_after(runs: Mapping[str, RunRecords], run_id: str) -> dict[str, RunRecords]:
    """Those of `runs` that began after this one (pure). `runs`: as read_recent_runs returns them."""
    order = list(runs)
    return {run: runs[run] for run in order[order.index(run_id) + 1 :]} if run_id in runs else {}


def following(runs: Mapping[str, RunRecords], now: float) -> RunOpened | None:
    """The one of `runs` that follows at `now` (seconds since the epoch), the one with the newest last try (pure). None: none follows."""
    found = [run for run in reversed(list(runs.values())) if run.opened is not None and run.result is None and follows(run.opened, now)]
    return max(found, key=lambda run: run.tried, default=RunRecords()).opened


def follows(opened: RunOpened, now: float) -> bool:
    """Whether the run follows, and its time is not over (pure)."""
    return opened.follow_until is not None and now < parse_time(opened.follow_until).timestamp()


def fold_run_record(found: RunRecords, value: bytes, where: str) -> RunRecords:
    """`found` with one more record of the run (pure). NewerFormat or UnreadableRecord. `where`: as of formats.place_of."""
    try:
        document = read_document(value)
        require_version(document, where, RECORD_VERSION)
        kind = document["kind"]
        if kind == "opened":
            opened = read_as(RunOpened, document, optional=_OPTIONAL)
            died = found.opened is not None and found.result is None
            lasted = (parse_time(opened.started) - parse_time(found.tried)).total_seconds() if died else 0.0
            return replace(
                found, opened=found.opened or opened, tried=opened.started, result=None, seconds=found.seconds + max(0.0, lasted)
            )
        if kind == "sync":
            sync = read_as(RunSync, document)
            return replace(found, syncs={**found.syncs, sync.sync: sync.outcome})
        if kind != "result":
            raise UnreadableRecord(f"{where}: a run's record is of kind {kind!r}")
        result = read_as(RunResult, document, optional=("superseded", "taken_over", "began"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: a run's record is not readable: {problem}") from problem
    spent = found.cpu_seconds + result.cpu_seconds
    if result.began and result.began != found.tried:  # of a try that a later try of the same run has fenced
        return replace(found, cpu_seconds=spent)
    again = found.result.seconds if found.result is not None else 0.0
    return replace(found, result=result, seconds=found.seconds - again + result.seconds, cpu_seconds=spent)
