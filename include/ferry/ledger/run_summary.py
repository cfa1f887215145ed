"""A run in a few hundred bytes, for the page's history: what it did, and how far behind the flow was at its end.

A summary informs people, and decides nothing. It is in the runs topic under a key of its own (`summary:<run id>`), so readers of a run's
other records do not get it. A lag that another task measured has its own key too (`lag:<run id>`). The size of a summary is bounded: it
names the biggest topics and the first losses and failures, and counts all of them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from ferry.errors import UnreadableRecord
from ferry.ledger.counters import ZERO, Counters
from ferry.ledger.formats import require_version
from ferry.ledger.run_report import RunReport, why_failed
from ferry.wire.strict_json import read_as, read_document

T = TypeVar("T")

SUMMARY_VERSION = 1
KEY_PREFIX, LAG_PREFIX = b"summary:", b"lag:"
DAYS_KEPT = 30  # the runs topic keeps its records for this many days
TOPICS_NAMED = 20
TROUBLES_NAMED = 20
HELD_NAMED = 3
CHARACTERS_NAMED = 300


class RunState(StrEnum):
    """The state of a run, in the page's words. In the runs topic it is that of a run that has ended, and `failed` in place of `refused`."""

    QUEUED = "queued"
    RUNNING = "running"
    FOLLOWING = "following"
    DRY = "dry run"
    NOTHING_NEW = "nothing new"
    DONE = "done"
    PARTLY_FAILED = "partly failed"
    DATA_LOST = "data lost"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    REFUSED = "refused"


@dataclass(frozen=True)
class RunLag:
    """How far behind a flow is. -1: not known."""

    records: int = -1  # offsets that are not copied
    seconds: float = -1.0  # age of the oldest of these records
    headroom_seconds: float | None = None  # until the first of these records expires at the source. None: never, or nothing is left to copy


@dataclass(frozen=True)
class RunSummary:
    """One run. Texts are cut after CHARACTERS_NAMED."""

    run_id: str
    started: str
    finished: str
    bound: str
    state: str
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    topics: tuple[tuple[str, int, int], ...] = ()  # (source topic, records, bytes) of the biggest
    topics_total: int = 0
    losses: tuple[Mapping[str, Any], ...] = ()  # documents of LossReport
    losses_total: int = 0
    failed: tuple[Mapping[str, Any], ...] = ()  # documents of PartitionFailure
    failed_total: int = 0
    # Counts by sync. The sync of groups also has `held`: groups whose offsets on the target stay behind.
    syncs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lag: RunLag = field(default_factory=RunLag)
    # Average age of the records when their transaction was committed. None: no record has a time, or an older release wrote the summary.
    delay_seconds: float | None = None


_KINDS: Mapping[type[Any], str] = {RunSummary: "summary", RunLag: "lag"}


def summary_of(report: RunReport, lag: RunLag) -> RunSummary:
    topics: dict[str, Counters] = {}
    for partition in report.partitions:
        topics[partition.topic] = topics.get(partition.topic, ZERO) + partition.counters
    delay = sum(topics.values(), ZERO).replication_latency_ms
    biggest = sorted(topics, key=lambda topic: (-topics[topic].bytes, -topics[topic].records, topic))[:TOPICS_NAMED]
    return RunSummary(
        run_id=report.run_id,
        started=report.started,
        finished=report.finished,
        bound=report.bound,
        state=state_of(report),
        records=report.records,
        bytes=report.bytes,
        seconds=report.seconds,
        cpu_seconds=report.cpu_seconds,
        topics=tuple((topic, topics[topic].records, topics[topic].bytes) for topic in biggest),
        topics_total=len(topics),
        losses=tuple(_cut(asdict(loss)) for loss in report.losses[:TROUBLES_NAMED]),
        losses_total=len(report.losses),
        failed=tuple(_cut(asdict(failure)) for failure in report.failed[:TROUBLES_NAMED]),
        failed_total=len(report.failed),
        syncs={name: sync_counts(outcome) for name, outcome in report.syncs.items()},
        lag=lag,
        delay_seconds=None if delay is None else round(delay.mean / 1000, 3),
    )


def state_of(report: RunReport) -> RunState:
    """The state of a run that has ended: the worst one that applies."""
    if report.superseded:
        return RunState.SUPERSEDED
    if any(not failure.topic for failure in report.failed):
        return RunState.FAILED
    if report.losses:
        return RunState.DATA_LOST
    if report.failed or any(outcome.get("failed") for outcome in report.syncs.values()):
        return RunState.PARTLY_FAILED
    return RunState.DONE if report.partitions else RunState.NOTHING_NEW


def sync_counts(outcome: Mapping[str, Any]) -> dict[str, Any]:
    counts = outcome.get("counts") or {}
    found: dict[str, Any] = {name: int(counts.get(name, len(outcome.get(name) or ()))) for name in ("changes", "skipped", "failed")}
    first: Mapping[str, str] = next(iter(outcome.get("failed") or ()), {})
    if first:
        found["why"] = {"error": first["error"], "problem": why_failed(outcome.get("sync", ""), first)[:CHARACTERS_NAMED]}
    if held := int(counts.get("held", 0)):  # the first that were skipped (syncs.group_offsets)
        named = [_cut({name: entry[name] for name in ("what", "reason")}) for entry in outcome["skipped"][: min(held, HELD_NAMED)]]
        found["held"] = {"total": held, "named": named}
    return {**found, "left_out": str(outcome.get("left_out") or "")[:CHARACTERS_NAMED]}


def encode_run_part(run_id: str, part: RunSummary | RunLag) -> tuple[bytes, bytes]:
    """Key and value of a record of the runs topic."""
    kind = _KINDS[type(part)]
    value = json.dumps({"version": SUMMARY_VERSION, "kind": kind, **asdict(part)}, separators=(",", ":"))
    return f"{kind}:{run_id}".encode(), value.encode()


def decode_run_part(kind: type[T], value: bytes, where: str) -> T:
    """The inverse of `encode_run_part`; NewerFormat or UnreadableRecord for anything else. `where`: as of formats.place_of."""
    try:
        document = read_document(value)
        require_version(document, where, SUMMARY_VERSION)
        return read_as(kind, document, optional={"delay_seconds"})
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: a run's {_KINDS[kind]} is not readable: {problem}") from problem


def _cut(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[:CHARACTERS_NAMED] if isinstance(value, str) else value for name, value in document.items()}
