"""Producers have stopped, and everything that they wrote is on the other side: both measured, not believed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.partitions import TopicPartition
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable, RecoveryStopped
from ferry.ledger.run_report import RunReport
from ferry.pipeline.plan import plan_run
from ferry.recovery.not_copied import not_copied

if TYPE_CHECKING:
    from ferry.config import Flow

# One run of a flow; its report.
Copy = Callable[["Flow", RunRequest], RunReport]
# A producer that is alive writes in this, or has nothing to write.
QUIET_SECONDS = 5.0
# The second run finds what came during the first; what still comes then is not what a stopped producer left.
DRAIN_RUNS = 3
NAMED = 5


def refuse_movement(flow: Flow, seconds: float = QUIET_SECONDS) -> None:
    """RecoveryStopped when logs of the flow's source topics grow within `seconds`."""
    before = source_ends(flow)
    time.sleep(seconds)
    moved = grown(before, source_ends(flow))
    if moved:
        raise RecoveryStopped(
            f"records still arrive on {flow.source.alias}: {named(moved)} grew within {seconds:.0f} s; stop every producer there, "
            "and transactions that are open, then run this again"
        )


def grown(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    """Partitions whose ends moved, new ones that hold records among them (pure)."""
    return [key for key, end in after.items() if before.get(key, 0) != end]


def source_ends(flow: Flow) -> dict[TopicPartition, int]:
    """High watermarks of all topics that the flow copies, heartbeats apart. ClusterUnreachable when one is not known."""
    policy = flow.policy
    with ClusterAdmin(flow.source) as source:
        topics = source.topics()
        wanted = [topic for topic, _ in flow.select_topics(topics).selected if not policy.is_heartbeats_topic(topic)]
        keys = [TopicPartition(topic, number) for topic in wanted for number in range(topics[topic].partitions)]
        ends, problems = source.end_offsets(keys, committed=False)
    for (topic, partition), problem in problems.items():
        raise ClusterUnreachable(f"cluster {flow.source.alias}: {topic}-{partition}: {problem}")
    return ends


def drain(flow: Flow, run_id: str, copy: Copy) -> int:
    """Copy until nothing is left; how many records came. RecoveryStopped naming what is left after some runs, or what went wrong."""
    records = 0
    for number in range(DRAIN_RUNS):
        report = copy(flow, RunRequest(flow.name, f"{run_id}__drain{number}"))
        records += report.records
        problems = report.problems()
        if problems:
            told = "; ".join(f"{type(problem).__name__}: {problem}" for problem in problems)
            raise RecoveryStopped(f"{flow.name} could not copy everything: {told}")
        if not left(flow, run_id):
            return records
    refuse_rest(flow, run_id)
    return records


def refuse_rest(flow: Flow, run_id: str) -> None:
    """RecoveryStopped naming what of the flow's source is not on its target."""
    found = left(flow, run_id)
    if found:
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise RecoveryStopped(f"{flow.name}: not everything is on {flow.target.alias}: {'; '.join(found[:NAMED])}{more}; run this again")


def left(flow: Flow, run_id: str) -> list[str]:
    """What a run would still do, in words; also positions that only have to move over what came from the other side."""
    planned = plan_run(flow, RunRequest(flow.name, run_id))
    rest = [f"{entry.topic}-{entry.partition} [{entry.start}, {entry.end}) {entry.reason}".strip() for entry in not_copied(planned)]
    rest += [str(failure) for failure in planned.failed]
    rest += [
        f"{plan.facts.topic}-{plan.facts.partition}: position {plan.position} of {plan.facts.end}"
        for plan in planned.partitions
        if plan.failure is None and plan.segments and not plan.offsets and plan.facts.topic not in planned.heartbeats
    ]
    return rest


def named(keys: list[TopicPartition]) -> str:
    """The first few partitions."""
    shown = ", ".join(f"{key.topic}-{key.partition}" for key in sorted(keys)[:NAMED])
    return f"{shown} and {len(keys) - NAMED} more" if len(keys) > NAMED else shown
