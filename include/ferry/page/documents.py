"""The answers of the page, from snapshots and facts (pure). Their contract is docs/page.md's table; every one has an envelope.

Envelope: `version`, `read_at` (ISO, null: never), `age_seconds`, `refreshing`, `problem` (null, or error, message, next step). Data of the
last good read stay while a problem lasts; where nothing was read yet, lists are empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ferry.monitoring.runs import NO_NEWS, DagRunFacts, copy_speed, history_points, joined_runs
from ferry.page.flow_facts import FlowFacts
from ferry.page.health import Signs, health_of
from ferry.page.overview import SHOWN_FIELDS, Overview, page_of_topics
from ferry.page.problem import Problem
from ferry.page.snapshots import Snapshot

VERSION = 1


@dataclass(frozen=True)
class FlowView:
    """Everything that is at hand of one flow, for one user."""

    facts: FlowFacts
    landscape: Snapshot[Overview]
    runs: Snapshot[Mapping[str, Any]]
    dag_runs: tuple[DagRunFacts, ...] = ()
    may_trigger: bool = False


def envelope(snapshot: Snapshot[Any], now: float, data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with what is known of its reading; `now` in seconds since the epoch."""
    return {"version": VERSION, **_reading(snapshot, now), "refreshing": snapshot.refreshing, **data}


def _reading(snapshot: Snapshot[Any], now: float) -> dict[str, Any]:
    age = snapshot.age(now)
    read_at = None if snapshot.read_at is None else datetime.fromtimestamp(snapshot.read_at, UTC).isoformat(timespec="seconds")
    problem = None if snapshot.problem is None else snapshot.problem.document()
    return {"read_at": read_at, "age_seconds": None if age is None else round(age, 1), "problem": problem}


def overview(views: Iterable[FlowView], now: float, problem: Problem | None = None) -> dict[str, Any]:
    """The map. `problem`: the config could not be read, so that flows are those of the last time, or none."""
    shown = list(views)
    aliases = sorted({alias for view in shown for alias in (view.facts.source, view.facts.target)})
    return {
        "version": VERSION,
        "read_at": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        "age_seconds": 0.0,
        "refreshing": any(view.landscape.refreshing or view.runs.refreshing for view in shown),
        "problem": None if problem is None else problem.document(),
        "clusters": [{"alias": alias} for alias in aliases],
        "flows": [_flow(view, now) for view in shown],
    }


def _flow(view: FlowView, now: float) -> dict[str, Any]:
    facts, landscape = view.facts, view.landscape.data
    runs = _joined(view, 1_000)
    ended = next((run for run in runs if run["state"] not in NO_NEWS), None)
    kept = (view.runs.data or {}).get("runs", ())
    verifies = (view.runs.data or {}).get("verifies", ())
    signs = Signs(
        landscape=landscape,
        problem=view.landscape.problem or view.runs.problem,
        last_run=ended,
        last_verify=next(iter(verifies), None),
        limits=facts.limits,
        interval_seconds=facts.interval_seconds,
        records_per_second=copy_speed(kept),
    )
    health, reasons = health_of(signs)
    return {
        "flow": facts.flow,
        "source": facts.source,
        "target": facts.target,
        "dag_id": facts.dag_id,
        "verify_dag_id": facts.verify_dag_id,
        "schedule": facts.schedule,
        "copies": facts.copies,
        "may_trigger": view.may_trigger,
        "health": health.value,
        "reasons": list(reasons),
        "totals": None if landscape is None else landscape.totals,
        "losses": 0 if landscape is None else landscape.losses_open,
        "last_run": runs[0] if runs else None,
        "refreshing": view.landscape.refreshing,
        **_reading(view.landscape, now),
    }


def topics(snapshot: Snapshot[Overview], now: float, **page: Any) -> dict[str, Any]:
    """One page of topics; `page` as of landscape.page_of_topics."""
    return envelope(snapshot, now, page_of_topics(() if snapshot.data is None else snapshot.data.topics, **page))


def partitions(snapshot: Snapshot[Overview], now: float, topic: str) -> dict[str, Any]:
    """All partitions of one topic."""
    rows = [] if snapshot.data is None else snapshot.data.by_topic.get(topic, [])
    stopped = () if snapshot.data is None else snapshot.data.stopped
    data = {
        "partitions": [{name: getattr(row, name) for name in SHOWN_FIELDS} for row in rows],
        "stopped": [entry for entry in stopped if entry["topic"] == topic],
    }
    return envelope(snapshot, now, data)


def losses(snapshot: Snapshot[Overview], now: float, flow: str) -> dict[str, Any]:
    """Losses, those that nobody acknowledged first."""
    landscape = snapshot.data
    data = {
        "losses": [] if landscape is None else list(landscape.losses),
        "total": 0 if landscape is None else landscape.losses_total,
        "open": 0 if landscape is None else landscape.losses_open,
        "command": f"ferry ack-loss $FERRY_CONFIG --flow '{flow}'",
    }
    return envelope(snapshot, now, data)


def transactions(snapshot: Snapshot[Overview], now: float) -> dict[str, Any]:
    """Open transactions that hold the flow back."""
    return envelope(snapshot, now, {"open_transactions": [] if snapshot.data is None else list(snapshot.data.open_transactions)})


def runs(view: FlowView, now: float, limit: int) -> dict[str, Any]:
    """Runs, newest first."""
    return envelope(view.runs, now, {"runs": _joined(view, limit), "unreadable": (view.runs.data or {}).get("unreadable", 0)})


def history(snapshot: Snapshot[Mapping[str, Any]], now: float, days: int) -> dict[str, Any]:
    """Points over time."""
    since = (datetime.fromtimestamp(now, UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
    return envelope(snapshot, now, {"points": history_points((snapshot.data or {}).get("runs", ()), since)})


def verify(snapshot: Snapshot[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """Verify reports, newest first."""
    return envelope(snapshot, now, {"reports": list((snapshot.data or {}).get("verifies", ()))})


def coverage(snapshot: Snapshot[Mapping[str, Any]], now: float, facts: FlowFacts, *, may_trigger: bool) -> dict[str, Any]:
    """The timeline of one topic."""
    nothing: Mapping[str, Any] = {"remote_topic": "", "partitions": [], "missing": [], "note": ""}
    return envelope(snapshot, now, {**(snapshot.data or nothing), "dag_id": facts.dag_id, "may_trigger": may_trigger})


def groups(snapshot: Snapshot[Mapping[str, Any]], now: float, *, search: str, offset: int, limit: int) -> dict[str, Any]:
    """One page of groups, by name."""
    data = snapshot.data or {"groups": [], "off": ""}
    wanted = search.casefold()
    found = [row for row in data["groups"] if wanted in row["group"].casefold()]
    return envelope(snapshot, now, {"total": len(found), "groups": found[offset : offset + limit], "off": data["off"]})


def group(snapshot: Snapshot[Mapping[str, Any]], now: float, name: str) -> dict[str, Any]:
    """Why one group is or is not synced; `source` null where nothing was read."""
    nothing: Mapping[str, Any] = {"group": name, "source": None, "target": None, "obstacles": [], "partitions": []}
    return envelope(snapshot, now, snapshot.data or nothing)


def drift(snapshot: Snapshot[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """Configs, ACLs and topics that differ."""
    lists = ("topics", "configs", "acls", "left_alone", "failed", "notices")
    nothing: Mapping[str, Any] = {**{name: [] for name in lists}, "totals": {}, "off": {}, "left_alone_total": 0, "failed_total": 0}
    return envelope(snapshot, now, snapshot.data or nothing)


def _joined(view: FlowView, limit: int) -> list[dict[str, Any]]:
    return joined_runs((view.runs.data or {}).get("runs", ()), view.dag_runs, limit)
