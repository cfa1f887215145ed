"""Partitions that the next run will not copy, and why, by the plan of a snapshot. Reads only.

While a run commits, the head and the group of a partition differ for a moment. So Ferry takes a second snapshot before it names such a
partition.
"""

import time

from ferry.clusters.admin import ClusterAdmin
from ferry.config import Flow
from ferry.copying.driver import rules_of
from ferry.copying.plan import plan_partitions
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.ledger.run_report import PartitionFailure

# No reason to stop: a run adds partitions to the remote topic before it copies.
_MENDED_BY_A_RUN = "TargetTooNarrow"
_SEEMS_SO_WHILE_A_RUN_COMMITS = frozenset({"PositionDisagrees", "SourceTruncated"})
# Longer than a commit takes.
SECOND_LOOK_SECONDS = 2.0


def stopped_partitions(flow: Flow, seen: FlowSnapshot) -> tuple[PartitionFailure, ...]:
    """The stopped partitions of `seen`. Where a committing run may be the cause, only those that a second snapshot shows too."""
    found = _failures(flow, seen)
    if not any(failure.error in _SEEMS_SO_WHILE_A_RUN_COMMITS for failure in found):
        return found
    time.sleep(SECOND_LOOK_SECONDS)
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        again = {
            _which(failure)
            for failure in _failures(flow, take_snapshot(flow, RunRequest(flow.name, "look"), source, target, settled=False))
        }
    return tuple(failure for failure in found if _which(failure) in again)


def _which(failure: PartitionFailure) -> tuple[str, int, str]:
    """What identifies a failure. Its text does not: it may name the end of a log that grows."""
    return failure.topic, failure.partition, failure.error


def _failures(flow: Flow, seen: FlowSnapshot) -> tuple[PartitionFailure, ...]:
    found = [
        PartitionFailure(plan.facts.topic, plan.facts.partition, type(plan.failure).__name__, plan.failure.problem)
        for plan in plan_partitions(seen.facts, rules_of(flow, RunRequest(flow.name, "look")))
        if plan.failure is not None and type(plan.failure).__name__ != _MENDED_BY_A_RUN
    ]
    missing = (PartitionFailure(topic, number, "PartitionUnavailable", why) for (topic, number), why in seen.partition_problems.items())
    return (*found, *seen.denied, *missing)
