"""Reads the runs topic in one pass: every run of the last days, and the last verifies.

A record that cannot be read, or of a kind that this Ferry does not know, is counted and left out, so the others are still shown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from ferry import clock
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.config import Flow
from ferry.copying.run_liveness import RunProof
from ferry.errors import FerryError, UnreadableRecord
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.run_report import RunReport
from ferry.ledger.run_summary import DAYS_KEPT, KEY_PREFIX, LAG_PREFIX, RunLag, RunState, RunSummary, decode_run_part, state_of, sync_counts
from ferry.ledger.runs_topic import RUN_DAYS, VERIFY_PREFIX, RunOpened, RunRecords, fold_run_record, following, follows, recent_records
from ferry.monitoring.runs import empty_run, held_groups, judged, newest_run
from ferry.syncs.names import SyncName, not_enabled
from ferry.verify import results_topic
from ferry.verify.verify_report import VerifyReport

RUNS_KEPT = 2_000
VERIFIES_KEPT = 20
ENTRIES_NAMED = 50
# The newest run without a result counts as running for this time after its beginning.
RUNNING_SECONDS = 24 * 3600


@dataclass(frozen=True)
class RecentRuns:
    document: dict[str, Any]  # the document of read_runs
    following: RunOpened | None = None  # the run that should follow now
    ended: int = -1  # when the newest summary was written, in ms
    copying: RunOpened | None = None  # the newest run, if it copies and does not follow

    def without_proof(self) -> "RecentRuns":
        """The runs if no run proves that it follows."""
        runs = [{**run, "state": RunState.FAILED} if run["state"] == RunState.FOLLOWING else run for run in self.document["runs"]]
        return replace(self, document={**self.document, "runs": runs})


def read_runs(flow: Flow) -> dict[str, Any]:
    """`runs` (as of runs.empty_run) and `verifies`, both newest first; `unreadable`: how many records were left out; `held`: the groups
    that the last sync could not write (as of runs.held_groups).
    """
    with open_flow(flow) as opened:
        found = read_recent(opened, DAYS_KEPT)
        if any(run["state"] == RunState.FOLLOWING for run in found.document["runs"]) and not RunProof(opened).comes():
            found = found.without_proof()
    return found.document


def read_recent(opened: OpenFlow, days: int = RUN_DAYS) -> RecentRuns:
    """Every run of the last `days`. Does not look whether a run that should follow proves it."""
    # A verify may have thousands of results of single ranges, and the page does not show them.
    records = (record for record in recent_records(opened, days) if not results_topic.is_range_result(record.value or b""))
    flow = opened.flow
    found = recent_runs(records, place_of(flow.target, flow.runs_topic), clock.time())
    held = None if not_enabled(flow, SyncName.GROUPS) else held_groups(found.document["runs"])
    return replace(found, document={**found.document, "held": held})


def recent_runs(records: Iterable[InternalRecord], where: str, now: float) -> RecentRuns:
    """What the records of the topic say (pure). `now` in seconds since the epoch."""
    read = _ByRun(where, now)
    for record in records:
        if record.value is not None:
            try:
                read.take(record, record.value)
            except (UnreadableRecord, UnicodeDecodeError):
                read.unreadable += 1
    summarised = [_summarised(replace(summary, lag=read.lags.get(run_id, summary.lag))) for run_id, summary in read.summaries.items()]
    others = [_unsummarised(run_id, run, read.open_state(run_id)) for run_id, run in read.runs.items() if run_id not in read.summaries]
    found = sorted(map(judged, summarised + others), key=lambda run: (run["started"] or "", run["run_id"]), reverse=True)
    document = {"runs": found[:RUNS_KEPT], "verifies": list(_verifies(read.verifies, where)), "unreadable": read.unreadable}
    newest = newest_run(found)
    copying = newest is not None and newest["state"] == RunState.RUNNING and read.runs[newest["run_id"]].opened
    return RecentRuns(document, following(read.runs, now), read.ended, copying or None)


class _ByRun:
    """What the records of the topic say, by run id, in the order of the log. `now` in seconds since the epoch."""

    def __init__(self, where: str, now: float) -> None:
        self._where, self._now = where, now
        self.runs: dict[str, RunRecords] = {}
        self.summaries: dict[str, RunSummary] = {}
        self.lags: dict[str, RunLag] = {}
        self.verifies: dict[str, list[bytes]] = {}
        self.unreadable = 0
        self.ended = -1  # when the newest summary was written, in ms; -1: none was
        self._begun: dict[str, int] = {}  # when the first record of each run was written, in ms

    def take(self, record: InternalRecord, value: bytes) -> None:
        """UnreadableRecord, UnicodeDecodeError."""
        if record.key.startswith(KEY_PREFIX):
            summary = decode_run_part(RunSummary, value, self._where)
            self.summaries[summary.run_id] = summary
            self.ended = max(self.ended, record.timestamp) if record.timestamp <= self._now * 1000 else self.ended
        elif record.key.startswith(LAG_PREFIX):
            self.lags[record.key.removeprefix(LAG_PREFIX).decode()] = decode_run_part(RunLag, value, self._where)
        elif record.key.startswith(VERIFY_PREFIX):
            self.verifies.setdefault(record.key.removeprefix(VERIFY_PREFIX).decode(), []).append(value)
            if len(self.verifies) > VERIFIES_KEPT:  # a report may have megabytes
                del self.verifies[next(iter(self.verifies))]
        else:
            run_id = record.key.decode()
            self.runs[run_id] = fold_run_record(self.runs.get(run_id, RunRecords()), value, self._where)
            self._begun.setdefault(run_id, record.timestamp)

    def open_state(self, run_id: str) -> RunState:
        """The state of a run that has no result."""
        opened = self.runs[run_id].opened
        newest = list(islice(reversed(self._begun), 2))  # by their place in the log: the clocks of machines may differ
        # A run that follows goes on while the next one begins.
        if run_id in newest and opened is not None and follows(opened, self._now):
            return RunState.FOLLOWING
        if run_id == newest[0] and self._now - self._begun[run_id] / 1000 < RUNNING_SECONDS:
            return RunState.RUNNING
        return RunState.FAILED


def _summarised(summary: RunSummary) -> dict[str, Any]:
    fields = asdict(summary)
    lag = fields.pop("lag")
    topics = [{"topic": topic, "records": records, "bytes": size} for topic, records, size in summary.topics]
    known = {"lag_records": lag["records"], "lag_seconds": lag["seconds"], "headroom_seconds": lag["headroom_seconds"]}
    return {**empty_run(summary.run_id), **fields, "topics": topics, **known}


def _unsummarised(run_id: str, run: RunRecords, open_state: str) -> dict[str, Any]:
    """A run that goes on, has died, or is of an older Ferry: nobody knows what it copied. `open_state`: its state without a result."""
    document = {**empty_run(run_id), "syncs": {name: sync_counts(outcome) for name, outcome in run.syncs.items()}}
    if run.opened is not None:
        document |= {"started": run.opened.started, "bound": run.opened.bound}
    result = run.result
    if result is None:
        return {**document, "state": open_state}
    state = state_of(RunReport("", run_id, "", "", "", failed=result.failed, superseded=result.superseded, syncs=run.syncs))
    failed = [asdict(failure) for failure in result.failed]
    return {
        **document,
        "state": "done" if state == "nothing new" else state,
        "finished": result.finished,
        "seconds": result.seconds,
        "cpu_seconds": round(run.cpu_seconds, 3),
        "failed": failed[:ENTRIES_NAMED],
        "failed_total": len(failed),
    }


def _verifies(verifies: Mapping[str, list[bytes]], where: str) -> Iterable[dict[str, Any]]:
    for run_id in reversed(list(verifies)):
        try:
            report = results_topic.fold_report(verifies[run_id], where)
        except FerryError:
            continue
        if report is not None:
            yield verify_document(report)


def verify_document(report: VerifyReport) -> dict[str, Any]:
    """A verify as the page shows it: its first differences, and why parts were not compared."""
    document = report.document()
    reasons = Counter(entry["reason"] for entry in document["not_covered"])
    kept = ("run_id", "started", "finished", "ranges", "records", "bytes", "seconds", "counts", "differences_total")
    return {
        **{name: document[name] for name in kept},
        "verdict": "differs" if report.differences_total else "incomplete" if report.failed else "equal",
        "differences": document["differences"][:ENTRIES_NAMED],
        "failed": document["failed"][:ENTRIES_NAMED],
        "unproven": [{"reason": reason, "parts": count} for reason, count in reasons.most_common(ENTRIES_NAMED)],
        "unproven_total": len(document["not_covered"]),
    }
