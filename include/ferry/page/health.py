"""The health of a flow: one word, and the reasons for it (pure).

The word is the worst that applies: unreachable (nothing is known), then loss, failing, lagging, healthy. The page shows every reason, the
worst first, so that no reason hides another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

from ferry.errors import span
from ferry.ledger.run_summary import RunState
from ferry.page.overview import Overview
from ferry.page.problem import Problem

# The lag of a flow that runs on time stays below this many intervals of its schedule.
INTERVALS_BEHIND = 2
# So many names stand in a reason; a number stands for the rest.
NAMED = 3


class Health(StrEnum):
    UNREACHABLE = "unreachable"
    LOSS = "loss"
    FAILING = "failing"
    LAGGING = "lagging"
    HEALTHY = "healthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Signs:
    """What is known about a flow.

    `problem`: why the last read failed. `last_run`: as of runs.joined_runs; `last_verify`: the newest report. `interval_seconds` of the
    schedule. `records_per_second`: how fast the last runs copied.
    """

    overview: Overview | None = None
    problem: Problem | None = None
    last_run: Mapping[str, Any] | None = None
    last_verify: Mapping[str, Any] | None = None
    interval_seconds: float | None = None
    records_per_second: float | None = None


def health_of(signs: Signs) -> tuple[Health, tuple[str, ...]]:
    found = [
        *((Health.UNREACHABLE, reason) for reason in _unreachable(signs)),
        *((Health.LOSS, reason) for reason in _losses(signs)),
        *((Health.FAILING, reason) for reason in _failing(signs)),
        *((Health.LAGGING, reason) for reason in _lagging(signs)),
    ]
    if found:
        return found[0][0], tuple(reason for _, reason in found)
    if signs.overview is None:
        return Health.UNKNOWN, ("nothing was read yet",)
    return Health.HEALTHY, ()


def _unreachable(signs: Signs) -> Iterator[str]:
    if signs.problem is not None and signs.problem.unreachable:
        yield f"{signs.problem.error}: {signs.problem.message}"


def _losses(signs: Signs) -> Iterator[str]:
    if signs.overview is None or not signs.overview.losses_open:
        return
    total = signs.overview.losses_open
    lost = [loss for loss in signs.overview.losses if not loss["acknowledged"]]
    where = [f"{loss['topic']}-{loss['partition']} [{loss['upstream_start']}, {loss['upstream_end']})" for loss in lost]
    yield f"{_count(total, 'range')} lost and not acknowledged: {_named(where, total)}"


def _failing(signs: Signs) -> Iterator[str]:
    if signs.problem is not None and not signs.problem.unreachable:
        yield f"{signs.problem.error}: {signs.problem.message}"
    run = signs.last_run
    if run is not None and run["state"] in {RunState.FAILED, RunState.PARTLY_FAILED}:
        named = [f"{entry['topic'] or 'the run'}: {entry['error']}" for entry in run["failed"]]
        named += [f"sync {name}" for name, counts in run["syncs"].items() if counts["failed"]]
        yield f"run {run['run_id']} {run['state']}" + (f": {_named(named, len(named))}" if named else "")
    seen = signs.overview
    if seen is not None and seen.stopped_total:
        stopped = [f"{_place(entry)}: {entry['error']}" for entry in seen.stopped]
        total = seen.stopped_total
        yield f"{_count(total, 'partition')} stopped: {_named(stopped, total)}"
    if seen is not None and seen.overdue:
        held = [f"{entry['held_topic']}-{entry['partition']} on {entry['cluster']}" for entry in seen.overdue]
        yield f"{_count(len(held), 'transaction')} open for too long: {_named(held, len(held))}"
    if signs.last_verify is not None and signs.last_verify["differences_total"]:
        yield f"the last verify found {_count(signs.last_verify['differences_total'], 'difference')}"


def _lagging(signs: Signs) -> Iterator[str]:
    if signs.overview is None:
        return
    for key, found in groupby(signs.overview.broken, lambda broken: broken.key):
        broken = list(found)
        names = [entry.topic for entry in broken]
        yield f"{_count(len(names), 'topic')} beyond {key}={broken[0].limit}: {_named(names, len(names))}"
    lag, interval = signs.overview.lag, signs.interval_seconds
    if interval is not None and lag.seconds > INTERVALS_BEHIND * interval:
        yield f"behind by {span(lag.seconds)}, more than {INTERVALS_BEHIND} intervals of its schedule ({span(interval)})"
    if lag.headroom_seconds is None:
        return
    # The next run may begin a whole interval from now.
    needs = (interval or 0.0) + (lag.records / signs.records_per_second if signs.records_per_second else 0.0)
    if lag.headroom_seconds <= 0:
        yield "the source may drop the oldest uncopied records at any moment"
    elif needs and lag.headroom_seconds < needs:
        yield f"the source drops uncopied records in {span(lag.headroom_seconds)}; copying them takes about {span(needs)}"


def _place(entry: Mapping[str, Any]) -> str:
    """The partition; the topic alone when it stands for all its partitions (-1)."""
    return str(entry["topic"]) if entry["partition"] < 0 else f"{entry['topic']}-{entry['partition']}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _named(names: list[str], total: int) -> str:
    more = total - min(len(names), NAMED)
    return "; ".join(names[:NAMED]) + (f"; and {more:,} more" if more else "")
