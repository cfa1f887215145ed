"""What a run of the DAG may be asked for: each parameter once, as Airflow's form and as a check of its own.

Airflow checks the schemas where a run is triggered, but not every way in does (a disabled check, a default of an older DAG version), and it
takes keys that no parameter has. So the first task checks again, and refuses before anything is read or written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.sdk import Param

from ferry.copying.request import parse_time
from ferry.errors import ArgumentError

# As of org.apache.kafka.common.internals.Topic.
TOPIC_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
# The schema's own date-time format is checked only where an optional package is installed.
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
BOUNDS = ("latest", "interval")


@dataclass(frozen=True)
class RunParams:
    """A run's checked parameters."""

    topics: tuple[str, ...] = ()
    bound: str = "latest"
    dry_run: bool = False


def topics_param() -> Param:
    """Source topics by name."""
    topics = {"type": "string", "pattern": TOPIC_PATTERN}
    return Param([], type=["array", "null"], items=topics, description="Only these source topics; empty: all of the flow.")


def time_param(description: str) -> Param:
    """An optional time."""
    return Param(None, description=description, type=["null", "string"], format="date-time", pattern=TIME_PATTERN)


def trigger_params() -> dict[str, Param]:
    """The form of a manual trigger."""
    return {
        "topics": topics_param(),
        "bound": Param(
            "latest",
            type="string",
            enum=list(BOUNDS),
            description="latest: up to now. interval: up to the end of the data interval, and what the ledger lacks in it.",
        ),
        "dry_run": Param(False, type="boolean", description="Only look: the plan and what each sync would change. Writes nothing."),
    }


def run_params(context: Mapping[str, Any]) -> RunParams:
    """The parameters of the run in `context`; ArgumentError names the first that is none, or whose value cannot be meant."""
    given = known_params(context, trigger_params())
    bound, dry_run = given.get("bound", "latest"), given.get("dry_run", False)
    if bound not in BOUNDS:
        raise ArgumentError(f"parameter bound of the run must be {' or '.join(BOUNDS)}, not {bound!r}")
    if not isinstance(dry_run, bool):
        raise ArgumentError(f"parameter dry_run of the run must be true or false, not {dry_run!r}")
    return RunParams(checked_topics(given), bound, dry_run)


def known_params(context: Mapping[str, Any], known: Mapping[str, Param]) -> dict[str, Any]:
    """What the run in `context` was given; ArgumentError for a name that is none of the `known`."""
    given = dict(context.get("params") or {})
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise ArgumentError(f"parameter {name!r} of the run is not known; {hint}")
    return given


def checked_topics(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameter `topics`."""
    topics = given.get("topics")
    if topics is not None and not (isinstance(topics, list | tuple) and all(_is_topic(topic) for topic in topics)):
        raise ArgumentError(f"parameter topics of the run must be a list of topic names, not {topics!r}")
    return tuple(topics or ())


def checked_time(given: Mapping[str, Any], name: str) -> datetime | None:
    """The parameter `name`, a time; None when it is not given."""
    value = given.get(name)
    try:
        return parse_time(value) if value is not None else None
    except (ValueError, TypeError):
        raise ArgumentError(f"parameter {name} of the run must be an ISO time, not {value!r}") from None


def _is_topic(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(TOPIC_PATTERN.strip("^$"), name) is not None and name not in {".", ".."}
