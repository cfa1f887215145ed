"""The answers of the page, made from snapshots and from the config (pure). The table of docs/page.md is their contract.

Every answer has an envelope: `version`, `read_at` (ISO, null: never), `age_seconds`, `refreshing`, `problem` (null, or error, message and
next step). While a problem lasts, an answer keeps the data of the last good read. Before the first read its lists are empty.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from shlex import quote
from typing import Any

from ferry import __version__
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.config.flow import flow_command
from ferry.config.in_force import InForce
from ferry.copying.committed import Progress, most_left
from ferry.ledger.run_summary import RunState
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lacking import not_counted, up_to_date
from ferry.monitoring.lag import PartitionStatus, counted
from ferry.monitoring.runs import UNDER_WAY, DagRunFacts, copy_speed, history_of, joined_runs, last_ended, last_seed, newest_run
from ferry.monitoring.schedule import longest_pause, next_due, told_after, told_next
from ferry.monitoring.verdict import Step, Verdict, verdict_of
from ferry.page.overview import SHOWN, Overview, page_of_topics
from ferry.page.problem import Problem
from ferry.page.snapshots import Snapshot
from ferry.wire.strict_json import read_as

VERSION = 1
# As of airflow.page_dags.rights.
RIGHTS = ("may_trigger", "may_verify", "may_pause", "may_change_runs")
# A card names at most this many topics.
TOPICS_NAMED = 5
# The history is of all runs that were read, and of those that only Airflow knows.
HISTORY_RUNS = 5_000
# The page answers with this until Ferry has read the flow for the first time.
NOT_READ = Overview(FlowHealth("", read=False))


@dataclass(frozen=True)
class PageFlow:
    """One enabled flow as the config describes it."""

    flow: str
    source: str
    target: str
    dag_id: str
    verify_dag_id: str
    schedule: str | None  # what starts its runs, for people
    interval_seconds: float | None  # the longest time between two scheduled runs; None: no schedule
    copies: bool
    config: str  # the name of its file, as people type it: the page shows no path of the server
    exactly_once: bool = True
    cron: str | None = None  # its schedule
    on_arrival: bool = False  # runs also begin when records arrive


def page_flow(flow: Flow, dag_id: str, verify_dag_id: str) -> PageFlow:
    on_arrival = flow.copies and bool(flow.watch_seconds)
    starts = [flow.schedule, "when records arrive" if on_arrival else None]
    schedule = ", ".join(filter(None, starts)) or None
    names = (flow.name, flow.source.alias, flow.target.alias, dag_id, verify_dag_id)
    how = (flow.copies, flow.source.path.name, flow.exactly_once, flow.schedule, on_arrival)
    return PageFlow(*names, schedule, longest_pause(flow.schedule), *how)


@dataclass(frozen=True)
class FlowView:
    """Everything that is known now about one flow, for one user. `rights`: what the user may do, as in RIGHTS. `paused`: its DAG is."""

    facts: PageFlow
    overview: Snapshot[Overview]
    runs: Snapshot[Mapping[str, Any]]
    dag_runs: tuple[DagRunFacts, ...] = ()
    rights: Mapping[str, bool] = field(default_factory=dict)
    paused: bool = False


def envelope(snapshot: Snapshot[Any], now: float, data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with the time and the problem of its reading; `now` in seconds since the epoch."""
    return {"version": VERSION, **_reading(snapshot, now), "refreshing": snapshot.refreshing, **data}


def _reading(snapshot: Snapshot[Any], now: float) -> dict[str, Any]:
    age = snapshot.age(now)
    read_at = None if snapshot.read_at is None else datetime.fromtimestamp(snapshot.read_at, UTC).isoformat(timespec="seconds")
    problem = snapshot.problem and asdict(snapshot.problem)
    return {"read_at": read_at, "age_seconds": None if age is None else round(age, 1), "problem": problem}


def overview(views: Iterable[FlowView], now: float, problem: Problem | None = None) -> dict[str, Any]:
    """The map. `problem`: why the config cannot be read now; then the flows are those of the last time that it could be, or none."""
    shown = list(views)
    aliases = sorted({alias for view in shown for alias in (view.facts.source, view.facts.target)})
    flows = [_flow(view, now) for view in shown]
    refreshing = any(view.overview.refreshing or view.runs.refreshing for view in shown)
    data = {"release": __version__, "clusters": [{"alias": alias} for alias in aliases], "flows": flows}
    return envelope(Snapshot(None, now, problem, refreshing), now, data)


def _flow(view: FlowView, now: float) -> dict[str, Any]:
    facts, seen = view.facts, view.overview.data or Overview(FlowHealth(view.facts.flow, read=False))
    runs, read = _joined(view, 1_000), view.runs.data or {}
    ended, newest, due = last_ended(runs), newest_run(runs), next_due(facts.cron, now)
    health = replace(
        seen.health,
        config=facts.config,
        problem=view.overview.problem or view.runs.problem,
        last_run=ended,
        newest_run=newest,
        seeded=last_seed(runs),
        next_due=due,
        paused=view.paused,
        last_verify=next(iter(read.get("verifies", ())), None),
        held_groups=read.get("held"),
        interval_seconds=facts.interval_seconds,
        records_per_second=copy_speed(read.get("runs", ())),
    )
    verdict, under_way = verdict_of(health, now), _under_way(runs)
    known = ("flow", "source", "target", "dag_id", "verify_dag_id", "schedule", "copies", "exactly_once")
    return {
        **{name: getattr(facts, name) for name in known},
        **{name: view.rights.get(name, False) for name in RIGHTS},
        "paused": view.paused,
        **verdict.document(),
        "step": verdict.step,
        "command": _command(verdict, health),
        "totals": seen.totals if health.read else None,
        "not_counted": not_counted(health),
        "not_copied": verdict.not_copied,
        "word": verdict.word,
        "up_to_date": up_to_date(health),
        "uncopied_until": _uncopied_until(health, view.overview.read_at),
        "left_out": list(seen.left_out),
        "missing": list(islice(seen.missing_topics, TOPICS_NAMED)),
        "losses": health.losses_total,
        "last_run": newest,
        "next_run": "" if view.paused else told_next(due, now),
        "under_way": next(iter(under_way), None),
        "after_it": "".join(told_after(run["until"], due, now, on_arrival=facts.on_arrival) for run in under_way[:1] if run["until"]),
        "superseded": ended["superseded"] if ended else "",
        "refreshing": view.overview.refreshing,
        **_reading(view.overview, now),
    }


def _uncopied_until(health: FlowHealth, read_at: float | None) -> str | None:
    """Until when the source keeps all that is not copied (ISO), if nothing is copied after the read; None: not known, or no limit."""
    rows = health.counted
    kept = [row.headroom_seconds if row.lag_records else row.retention_seconds for row in rows]
    first = min((seconds for seconds in kept if seconds is not None), default=None)
    older = not_counted(health) or health.missing or any(row.age_unknown for row in rows)
    if read_at is None or first is None or older:
        return None
    with suppress(ValueError, OverflowError, OSError):  # a time that no calendar has: the source deletes nothing
        return datetime.fromtimestamp(read_at + first, UTC).isoformat(timespec="seconds")
    return None


def _command(verdict: Verdict, health: FlowHealth) -> str:
    """The command that does the next step in a terminal; empty: there is none."""
    if verdict.step is Step.BACKFILL:
        return verdict.next_step
    return "" if verdict.step in {None, Step.UNPAUSE} else flow_command(str(verdict.step), health.flow, health.config)


def topics(snapshot: Snapshot[Overview], now: float, **page: Any) -> dict[str, Any]:
    """One page of topics; `page`: as of overview.page_of_topics."""
    return envelope(snapshot, now, page_of_topics((snapshot.data or NOT_READ).topics, **page))


def partitions(snapshot: Snapshot[Overview], now: float, topic: str) -> dict[str, Any]:
    seen = snapshot.data or NOT_READ
    rows = [{name: getattr(row, name) for name in SHOWN} for row in seen.by_topic.get(topic, [])]
    data = {"partitions": rows, "stopped": [asdict(entry) for entry in seen.health.stopped if entry.topic == topic]}
    return envelope(snapshot, now, data)


def losses(snapshot: Snapshot[Overview], now: float, flow: PageFlow) -> dict[str, Any]:
    seen = snapshot.data or NOT_READ
    data = {
        "losses": list(seen.losses),
        "total": seen.losses_total,
        "open": seen.health.losses_total,
        "command": flow_command("ack-loss", flow.flow, flow.config),
    }
    return envelope(snapshot, now, data)


def transactions(snapshot: Snapshot[Overview], now: float) -> dict[str, Any]:
    """Open transactions behind which the flow cannot copy."""
    held = (snapshot.data or NOT_READ).health.last_stable_lags
    return envelope(snapshot, now, {"open_transactions": [entry.document() for entry in held]})


def runs(view: FlowView, now: float, limit: int) -> dict[str, Any]:
    return envelope(view.runs, now, {"runs": _joined(view, limit), "unreadable": (view.runs.data or {}).get("unreadable", 0)})


def progress(view: FlowView, snapshot: Snapshot[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """A run under way: its `run_id` (null: none is), whether it `follows`, how far it is in words (`text`), its `share`, from 0 to 1, and
    how many records of the whole flow are `left` (null: not known). A try that has ended may be followed by another one.
    """
    joined, data, told, share, left = _joined(view, HISTORY_RUNS), snapshot.data or {}, "", None, None
    under_way = _under_way(joined)
    run = next((run for run in under_way if run["run_id"] == data.get("run_id")), None)
    if run is not None:
        found = _progress(data, (view.overview.data or NOT_READ).health.partitions)
        # Before the second commit, the runs before this one say how long it takes.
        found = replace(found, rate=found.rate if found.rate is not None or found.follows else copy_speed(joined))
        told, share, left = found.text, found.share, None if data["topics"] else found.left
        if data["over"]:
            text = replace(found, rate=None, bytes_rate=None, since=None).text
            told = "this try has ended" if found.follows else f"this try has ended; {text}"
    elif under_way and snapshot.data is not None:
        told = "nothing is copied yet"
    run = run or next(iter(under_way), {"run_id": None, "follows": False})
    return envelope(snapshot, now, {"run_id": run["run_id"], "follows": run["follows"], "text": told, "share": share, "left": left})


def _under_way(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those of `runs` that go on, in their order. A run that waits in Airflow does not. `until`: when it ends, if it follows."""
    return [
        {
            "run_id": run["run_id"],
            "started": run["started"],
            "follows": (follows := run["state"] == RunState.FOLLOWING),
            "until": (follows and (run["bound"] or "").partition("following until ")[2]) or None,
        }
        for run in runs
        if run["state"] in UNDER_WAY
    ]


def _progress(data: Mapping[str, Any], partitions: Iterable[PartitionStatus]) -> Progress:
    """The progress with the records left, by the last read of all partitions. Not known for a run with another end than the source's."""
    found = read_as(Progress, data["progress"])
    reached = {(topic, partition): end for topic, partition, end in data["reached"]}
    left = {
        TopicPartition(row.topic, row.partition): max(0, min(row.lag_records, row.end - reached.get((row.topic, row.partition), 0)))
        for row in counted(partitions)
        if not data["topics"] or row.topic in data["topics"]
    }
    return replace(found, **most_left(left)) if data["whole"] and left else found


def history(view: FlowView, now: float, days: int) -> dict[str, Any]:
    """The history of the last `days` days, in the form of history_of."""
    since = (datetime.fromtimestamp(now, UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
    return envelope(view.runs, now, history_of(_joined(view, HISTORY_RUNS), since))


def verify(snapshot: Snapshot[Mapping[str, Any]], now: float) -> dict[str, Any]:
    return envelope(snapshot, now, {"reports": list((snapshot.data or {}).get("verifies", ()))})


def coverage(view: FlowView, snapshot: Snapshot[Mapping[str, Any]], now: float, topic: str) -> dict[str, Any]:
    """`filling`: the runs that copy what is missing, and have not ended."""
    nothing: Mapping[str, Any] = {"remote_topic": "", "partitions": [], "missing": [], "note": ""}
    filling = [
        {"run_id": run.run_id, "state": run.state, "started": run.started, "url": run.url} for run in view.dag_runs if run.is_filling(topic)
    ]
    facts = {"dag_id": view.facts.dag_id, "may_trigger": view.rights.get("may_trigger", False), "filling": filling}
    return envelope(snapshot, now, {**(snapshot.data or nothing), **facts})


def groups(snapshot: Snapshot[Mapping[str, Any]], now: float, *, search: str, offset: int, limit: int) -> dict[str, Any]:
    data = snapshot.data or {"groups": [], "off": ""}
    wanted = search.casefold()
    found = [row for row in data["groups"] if wanted in row["group"].casefold()]
    return envelope(snapshot, now, {"total": len(found), "groups": found[offset : offset + limit], "off": data["off"]})


def group(snapshot: Snapshot[Mapping[str, Any]], now: float, flow: PageFlow, name: str) -> dict[str, Any]:
    """Why one group is or is not synced; `source` null where nothing was read. `command`: says the same in a terminal."""
    nothing: Mapping[str, Any] = {"group": name, "source": None, "target": None, "obstacles": [], "partitions": []}
    command = f"{flow_command('explain', flow.flow, flow.config)} --group {quote(name)}"
    return envelope(snapshot, now, {**(snapshot.data or nothing), "command": command})


def drift(snapshot: Snapshot[Mapping[str, Any]], now: float) -> dict[str, Any]:
    lists = ("topics", "schemas", "configs", "acls", "left_alone", "failed", "notices")
    nothing: Mapping[str, Any] = {**{name: [] for name in lists}, "totals": {}, "off": {}, "left_alone_total": 0, "failed_total": 0}
    return envelope(snapshot, now, snapshot.data or nothing)


def config(facts: PageFlow, properties: Iterable[InForce], now: float) -> dict[str, Any]:
    shown = [{**vars(entry), "value": entry.value.reveal()} for entry in properties]
    return envelope(Snapshot(None, now), now, {"file": facts.config, "properties": shown})


def recovery(
    facts: PageFlow, dags: Mapping[str, str], runs: Mapping[str, Sequence[DagRunFacts]], startable: Collection[str], now: float
) -> dict[str, Any]:
    """`dags`: ids by kind. `runs`: of those that Airflow has and the user may see, newest first. `startable`: those that may be started."""
    found = [
        {
            "kind": kind,
            "dag_id": dag,
            "there": dag in runs,
            "may_trigger": dag in startable,
            "runs": [asdict(run) for run in runs.get(dag, ())],
            "command": flow_command(kind, facts.flow, facts.config),
        }
        for kind, dag in dags.items()
    ]
    return envelope(Snapshot(None, now), now, {"recoveries": found})


def _joined(view: FlowView, limit: int) -> list[dict[str, Any]]:
    return joined_runs((view.runs.data or {}).get("runs", ()), view.dag_runs, limit)
