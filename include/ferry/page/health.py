"""How a flow is, in one word and the reasons for it (pure).

The worst that holds names the flow: unreachable (it cannot be known), then loss, failing, lagging, healthy. Every reason is told, the worst
first, so that none hides behind another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ferry.page.overview import Overview, TopicRow
from ferry.page.problem import Problem

# A flow that is behind by more than this many intervals of its schedule missed at least one run.
INTERVALS_BEHIND = 2
# Reasons are read by people: the first of many name the rest by number.
NAMED = 3


class Health(StrEnum):
    """In order: the first that holds counts."""

    UNREACHABLE = "unreachable"
    LOSS = "loss"
    FAILING = "failing"
    LAGGING = "lagging"
    HEALTHY = "healthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Limits:
    """What the config allows of each topic; None: no limit."""

    lag_records: int | None = None
    lag_seconds: float | None = None
    headroom_seconds: float | None = None


@dataclass(frozen=True)
class Signs:
    """What is known of a flow.

    `problem`: why the last read failed. `last_run`: as of runs.RunRow.document; `last_verify`: newest report. `interval_seconds` of the
    schedule. `records_per_second`: how fast the last runs copied.
    """

    landscape: Overview | None = None
    problem: Problem | None = None
    last_run: Mapping[str, Any] | None = None
    last_verify: Mapping[str, Any] | None = None
    limits: Limits = Limits()
    interval_seconds: float | None = None
    records_per_second: float | None = None


def health_of(signs: Signs) -> tuple[Health, tuple[str, ...]]:
    """The word and the reasons."""
    found = [
        *((Health.UNREACHABLE, reason) for reason in _unreachable(signs)),
        *((Health.LOSS, reason) for reason in _losses(signs)),
        *((Health.FAILING, reason) for reason in _failing(signs)),
        *((Health.LAGGING, reason) for reason in _lagging(signs)),
    ]
    if found:
        return found[0][0], tuple(reason for _, reason in found)
    if signs.landscape is None:
        return Health.UNKNOWN, ("nothing was read yet",)
    return Health.HEALTHY, ()


def _unreachable(signs: Signs) -> Iterator[str]:
    if signs.problem is not None and signs.problem.unreachable:
        yield f"{signs.problem.error}: {signs.problem.message}"


def _losses(signs: Signs) -> Iterator[str]:
    if signs.landscape is None or not signs.landscape.losses_open:
        return
    total = signs.landscape.losses_open
    lost = [loss for loss in signs.landscape.losses if not loss["acknowledged"]]
    where = [f"{loss['topic']}-{loss['partition']} [{loss['upstream_start']}, {loss['upstream_end']})" for loss in lost]
    yield f"{_count(total, 'range')} lost and not acknowledged: {_named(where, total)}"


def _failing(signs: Signs) -> Iterator[str]:
    if signs.problem is not None and not signs.problem.unreachable:
        yield f"{signs.problem.error}: {signs.problem.message}"
    run = signs.last_run
    if run is not None and run["state"] in {"failed", "partly failed"}:
        named = [f"{entry['topic'] or 'the run'}: {entry['error']}" for entry in run["failed"]]
        named += [f"sync {name}" for name, counts in run["syncs"].items() if counts["failed"]]
        yield f"run {run['run_id']} {run['state']}" + (f": {_named(named, len(named))}" if named else "")
    landscape = signs.landscape
    if landscape is not None and landscape.stopped_total:
        stopped = [f"{_place(entry)}: {entry['error']}" for entry in landscape.stopped]
        total = landscape.stopped_total
        yield f"{_count(total, 'partition')} stopped: {_named(stopped, total)}"
    if landscape is not None and landscape.overdue:
        held = [f"{entry['held_topic']}-{entry['partition']} on {entry['cluster']}" for entry in landscape.overdue]
        yield f"{_count(len(held), 'transaction')} open for too long: {_named(held, len(held))}"
    if signs.last_verify is not None and signs.last_verify["differences_total"]:
        yield f"the last verify found {_count(signs.last_verify['differences_total'], 'difference')}"


def _lagging(signs: Signs) -> Iterator[str]:
    if signs.landscape is None:
        return
    yield from _beyond_limits(signs.landscape.judged, signs.limits)
    totals, interval = signs.landscape.totals, signs.interval_seconds
    if interval is not None and totals.lag_seconds > INTERVALS_BEHIND * interval:
        yield f"behind by {duration(totals.lag_seconds)}, more than {INTERVALS_BEHIND} intervals of its schedule ({duration(interval)})"
    if totals.headroom_seconds is None:
        return
    # The next run begins up to an interval from now.
    needs = (interval or 0.0) + (totals.lag_records / signs.records_per_second if signs.records_per_second else 0.0)
    if totals.headroom_seconds <= 0:
        yield "the oldest records that are not copied are due to be dropped by the source"
    elif needs and totals.headroom_seconds < needs:
        yield f"the source drops uncopied records in {duration(totals.headroom_seconds)}; copying them takes about {duration(needs)}"


def _beyond_limits(topics: Iterable[TopicRow], limits: Limits) -> Iterator[str]:
    rows = list(topics)
    most, old, least = limits.lag_records, limits.lag_seconds, limits.headroom_seconds
    beyond = {
        f"ferry.alert.lag.records={most}": [row.topic for row in rows if most is not None and row.lag_records > most],
        f"ferry.alert.lag.seconds={old}": [row.topic for row in rows if old is not None and row.lag_seconds > old],
        f"ferry.alert.headroom.seconds={least}": [
            row.topic for row in rows if least is not None and row.headroom_seconds is not None and row.headroom_seconds < least
        ],
    }
    for limit, names in beyond.items():
        if names:
            yield f"{_count(len(names), 'topic')} beyond {limit}: {_named(names, len(names))}"


def duration(seconds: float) -> str:
    """For people: 45 s, 12 min, 5 h, 3 d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _place(entry: Mapping[str, Any]) -> str:
    """A partition, or the topic where all of them are meant."""
    return str(entry["topic"]) if entry["partition"] < 0 else f"{entry['topic']}-{entry['partition']}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _named(names: list[str], total: int) -> str:
    more = total - min(len(names), NAMED)
    return "; ".join(names[:NAMED]) + (f"; and {more:,} more" if more else "")
