"""What `ferry status` says about a flow, as text and as JSON: the verdict, then what is behind or in trouble (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import compress
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from ferry.cli.output import Part, Prose
from ferry.errors import count_of, offsets_of, some_of, span, time_text
from ferry.monitoring.runs import told_gone
from ferry.monitoring.schedule import minute, told_after
from ferry.monitoring.verdict import Step, verdict_of
from ferry.pipeline.tables import Table, left_out_lines
from ferry.wire.strict_json import parse_time

if TYPE_CHECKING:
    from ferry.monitoring.health import FlowHealth
    from ferry.monitoring.lag import PartitionStatus
    from ferry.monitoring.missing import Missing

STATUS_VERSION = 1
# In the JSON document as they are.
AS_KNOWN = ("losses", "expired", "missing", "stopped", "last_run", "held_groups", "flow", "partitions")


def status_document(found: FlowHealth, now: float) -> dict[str, Any]:
    """The flow in the document of `ferry status --json`. docs/cli.md names every field."""
    known = asdict(found)
    return {
        "version": STATUS_VERSION,
        **{name: known[name] for name in AS_KNOWN},
        "lacking": [{"what": lack.what, "reason": lack.reason} for lack in found.lacking],
        **{name: known[name] for name in ("stage", "stage_since", "following", "gone")},
        "left_out": list(left_out_lines(found.left_out)),
        "left_out_records": found.left_out_records,
        "open_transactions": [entry.document() for entry in found.last_stable_lags],
        "limits_broken": known["broken"],
        "totals": found.lag.totals,
        **verdict_of(found, now).document(),
    }


def status_parts(found: FlowHealth, *, every: bool, now: float) -> Iterator[Part]:
    """Lines and tables for people. `every`: with all partitions, not only those that are behind or in trouble."""
    verdict = verdict_of(found, now)
    yield Prose(verdict)
    for reason in verdict.reasons[1:]:
        yield Prose(f"also: {reason.text}")
    for step, kind in dict.fromkeys((reason.next_step, reason.step) for reason in verdict.reasons):
        yield f"next: {'if that was a mistake: ' if kind is Step.BACKFILL else ''}{step}"
    yield from map(Prose, _notes(found, "" if every else "; ".join(reason.text for reason in verdict.reasons), now, every=every))
    errors = {(failure.topic, failure.partition): failure.error for failure in found.stopped}
    # Heartbeats are always behind a little.
    rows = [entry for entry in found.partitions if every or (entry.lag_records and not entry.heartbeats) or _note(entry, errors)]
    if rows:
        yield _table(rows, errors, every=every)
    if any(entry.lag_records for entry in rows):
        yield Prose("headroom: until the source deletes the oldest record that is not copied")


def _table(rows: Iterable[PartitionStatus], errors: Mapping[tuple[str, int], str], *, every: bool) -> Table:
    """The table of partitions. `every`: with positions.

    It must fit 60 characters. So there is no column for the end of a partition: that is its position plus the records behind it. A column
    of sizes or notes is left out if it would be empty: sizes are not known before the flow has copied something, and notes are rare.
    """
    rows = list(rows)
    columns = ("partition", "position", "behind", "size", "oldest", "headroom", "note")
    cells = [(f"{entry.topic}-{entry.partition}", entry.position, *_cells(entry, errors)) for entry in rows]
    sizes, notes = any(entry.lag_bytes >= 0 for entry in rows), any(row[-1] for row in cells)
    told = (True, every, True, sizes, True, True, notes)
    return Table("", tuple(compress(columns, told)), [tuple(compress(row, told)) for row in cells])


def _cells(entry: PartitionStatus, errors: Mapping[tuple[str, int], str]) -> tuple[object, ...]:
    size = "unknown" if entry.lag_bytes < 0 else decimal(entry.lag_bytes).replace("bytes", "B")
    oldest = "none" if not entry.lag_records else "unknown" if entry.age_unknown else span(entry.lag_seconds)
    return (entry.lag_records, size, oldest, _headroom(entry), _note(entry, errors))


def _headroom(entry: PartitionStatus) -> str:
    """The headroom in words, or why there is none."""
    if not entry.lag_records:
        return "no need"
    if entry.headroom_seconds is None:
        return "no limit" if entry.retention_seconds is None else "unknown"
    return span(entry.headroom_seconds) if entry.headroom_seconds > 0 else "none left"


def _note(entry: PartitionStatus, errors: Mapping[tuple[str, int], str]) -> str:
    error = errors.get((entry.topic, entry.partition)) or errors.get((entry.topic, -1))
    notes = [f"stopped: {error}"] if error else []
    notes += [f"more behind an open transaction at {entry.open_transaction_at}"] if entry.open_transaction_at is not None else []
    return "; ".join(notes)


def _stopped(found: FlowHealth, told: str) -> Iterator[str]:
    """What `told` does not say about the stopped partitions, once for all of which it is true. If it says nothing: a line for each."""
    if not told:
        yield from (f"STOPPED: {failure.where}: {failure.error}: {failure.problem}" for failure in found.stopped)
        return
    left = defaultdict[tuple[str, str], list[str]](list)
    for failure in found.stopped:
        parts = (
            part
            for part in failure.problem.split("; ")
            if part not in told and " is gone" not in part and "=restart copies again" not in part
        )
        left[failure.error, "; ".join(parts)].append(failure.where)
    yield from (f"STOPPED: {some_of(places)}: {error}: {problem}" for (error, problem), places in left.items() if problem)


def _notes(found: FlowHealth, told: str, now: float, *, every: bool) -> Iterator[str]:
    """`told`: what the verdict says."""
    if found.following is not None:
        since, until = found.following["since"], found.following["until"]
        when = f"since {minute(parse_time(since))} until {minute(parse_time(until))} (ferry.follow.seconds, or as it was started)"
        yield f"{found.flow} follows {when}; {told_after(until, found.next_due, now, on_arrival=found.on_arrival)}"
    if found.gone is not None:
        yield told_gone(found.gone)
    if found.stage_since:
        yield f"{found.flow} is {found.stage} since {time_text(found.stage_since)}: groups are not synced"
    yield from left_out_lines(entry for entry in found.left_out if every or not entry.expected)  # the verdict names those
    if every:
        yield from map(_told, found.missing)
        yield from (f"over a limit: {broken}" for broken in found.broken)
    yield from _stopped(found, told)
    yield from (f"{'HANGS' if held.overdue else 'open'}: {held.what}; {held.remedy}" for held in found.last_stable_lags)
    yield from (f"{lack.what}: {lack.reason}" for lack in found.lacking)
    yield from (f"lost: {loss.where}: {loss.reason}" for loss in (*found.losses, *found.expired))


def _told(missing: Missing) -> str:
    where = f"{missing.topic}-{missing.partition} {offsets_of(missing.start, missing.end)}"
    return f"missing: {where}, {count_of(missing.records, 'record')}{'; ' if missing.obstacle else ''}{missing.obstacle}"
