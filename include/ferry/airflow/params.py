"""The parameters of a DAG run: for Airflow's form, and for a check of Ferry's own.

Airflow does not always check parameters by their schemas (the check can be disabled, defaults can come from an older DAG version), and it
accepts unknown keys. So the first task checks again, before anything is read or written.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.sdk import Param

from ferry.config import Flow
from ferry.config.registry.ferry import MOST_FOLLOW_SECONDS
from ferry.errors import ArgumentError
from ferry.policy.naming import LONGEST_TOPIC, TOPIC_CHARACTERS
from ferry.wire.strict_json import parse_time

TOPIC_PATTERN = f"^{TOPIC_CHARACTERS}{{1,{LONGEST_TOPIC}}}$"
# Airflow checks the schema's date-time format only if an optional package is installed.
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
NO_BACKFILL = " (Airflow's Backfill is off because the flow has no ferry.schedule. Choose interval, or use Backfill on Ferry's page.)"


@dataclass(frozen=True)
class RunParams:
    topics: tuple[str, ...] = ()
    bound: str = "latest"
    dry_run: bool = False
    follow_seconds: int | None = None


def topics_param(flow: Flow | None = None) -> Param:
    """The parameter for topics. The form offers the flow's topics if the config names them; only the source knows those of a pattern."""
    topics = {"type": "string", "pattern": TOPIC_PATTERN}
    offered: dict[str, Any] = {"examples": list(flow.topics)} if flow is not None and flow.named_topics.issuperset(flow.topics) else {}
    return Param([], type=["array", "null"], items=topics, description="Only these source topics; empty: all of the flow.", **offered)


def time_param(description: str) -> Param:
    return Param(None, description=description, type=["null", "string"], format="date-time", pattern=TIME_PATTERN)


def trigger_params(flow: Flow | None = None) -> dict[str, Param]:
    """`flow`: the one whose form it is."""
    bound = "latest: copy up to now. interval: copy what the ledger lacks in the data interval."
    bound += NO_BACKFILL if flow is not None and flow.schedule is None else ""
    follow = "Go on with what arrives for so many seconds. Empty: as ferry.follow.seconds says. 0: end at the ends of now."
    return {
        "topics": topics_param(flow),
        "bound": Param("latest", type="string", enum=["latest", "interval"], description=bound),
        "follow_seconds": Param(None, type=["null", "integer"], minimum=0, maximum=MOST_FOLLOW_SECONDS, description=follow),
        "dry_run": Param(False, type="boolean", description="Show the plan and what each sync would change. Writes nothing."),
    }


def run_params(context: Mapping[str, Any]) -> RunParams:
    """The parameters of the run in `context`. ArgumentError for an unknown parameter or a wrong value."""
    given = given_params(context, trigger_params())
    seconds = given["follow_seconds"]
    if seconds is not None and not (type(seconds) is int and 0 <= seconds <= MOST_FOLLOW_SECONDS):
        what = f"a whole number of seconds, at most {MOST_FOLLOW_SECONDS}"
        raise ArgumentError(f"parameter follow_seconds of the run must be {what}, not {seconds!r}")
    return RunParams(checked_topics(given), given["bound"], given["dry_run"], seconds)


def given_params(context: Mapping[str, Any], known: Mapping[str, Param]) -> dict[str, Any]:
    """The parameters of the run in `context`, with the defaults of those that are not given.

    ArgumentError for a name that is not in `known`, and for a value that is no boolean or no choice of the form where the form wants one.
    """
    given = dict(context.get("params") or {})
    for name, value in given.items():
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise ArgumentError(f"parameter {name!r} of the run is not known; {hint}")
        schema = known[name].schema
        if schema["type"] == "boolean" and not isinstance(value, bool):
            raise ArgumentError(f"parameter {name} of the run must be true or false, not {value!r}")
        if "enum" in schema and value not in schema["enum"]:
            raise ArgumentError(f"parameter {name} of the run must be {' or '.join(schema['enum'])}, not {value!r}")
    return {name: param.value for name, param in known.items()} | given


def checked_topics(given: Mapping[str, Any]) -> tuple[str, ...]:
    topics = given.get("topics")
    if topics is not None and not (isinstance(topics, list | tuple) and all(_is_topic(topic) for topic in topics)):
        raise ArgumentError(f"parameter topics of the run must be a list of topic names, not {topics!r}")
    return tuple(topics or ())


def checked_time(given: Mapping[str, Any], name: str) -> datetime | None:
    """The parameter `name` as a time; None if it is not given."""
    value = given.get(name)
    try:
        return parse_time(value) if value is not None else None
    except (ValueError, TypeError):
        raise ArgumentError(f"parameter {name} of the run must be an ISO time, not {value!r}") from None


def _is_topic(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(TOPIC_PATTERN.strip("^$"), name) is not None and name not in {".", ".."}
