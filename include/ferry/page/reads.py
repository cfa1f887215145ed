"""The reads of the page by name: which function does each, how long its result is fresh, and how long it may take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pkgutil import resolve_name
from typing import Any

from ferry.config import Flow


class ReadName(StrEnum):
    OVERVIEW = "overview"
    RUNS = "runs"
    COVERAGE = "coverage"
    GROUPS = "groups"
    GROUP = "group"
    DRIFT = "drift"


@dataclass(frozen=True)
class ReadEntry:
    """`function` (module:name) takes the flow, and the argument (a topic or group, never empty) if it has one.

    `fresh_seconds`: the page does not read again before that. `limit_seconds`: the page ends a read that takes longer.
    """

    function: str
    fresh_seconds: float
    limit_seconds: float


# Limits: several times what reads of 10,000 partitions or 2,000 groups took on two busy cores.
READS: Mapping[ReadName, ReadEntry] = {
    ReadName.OVERVIEW: ReadEntry("ferry.page.flow_reading:read_overview", 15.0, 180.0),
    ReadName.RUNS: ReadEntry("ferry.monitoring.runs_reading:read_runs", 10.0, 60.0),
    ReadName.COVERAGE: ReadEntry("ferry.page.coverage_reading:read_coverage_of", 10.0, 60.0),
    ReadName.GROUPS: ReadEntry("ferry.page.groups_reading:read_groups", 30.0, 120.0),
    ReadName.GROUP: ReadEntry("ferry.page.groups_reading:read_group", 10.0, 60.0),
    ReadName.DRIFT: ReadEntry("ferry.page.flow_reading:read_drift", 60.0, 120.0),
}


def carry_out(name: ReadName, flow: Flow, argument: str) -> dict[str, Any]:
    """Do one read. FerryError."""
    found: Callable[..., dict[str, Any]] = resolve_name(READS[name].function)
    return found(flow, argument) if argument else found(flow)
