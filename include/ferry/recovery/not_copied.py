"""What the other side does not have: per partition how much, or, where the source is away, since when nobody knows. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.ledger.reading import read_state
from ferry.ledger.state import HEAD_KEY
from ferry.pipeline.plan import RunPlan

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True)
class NotCopied:
    """Source offsets `[start, end)` of a partition that are not on the other side. `end` and `offsets` are None where the source is away.

    `offsets` do not count what had come from there. `reason`: why, where there is more to say than that no run has come so far.
    """

    topic: str
    partition: int
    remote_topic: str
    start: int
    end: int | None
    offsets: int | None
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return dict(vars(self))


def not_copied(planned: RunPlan) -> tuple[NotCopied, ...]:
    """By the plan of a run that would come now (pure); partitions without a rest are left out."""
    # Where names stay as they are, the remote partition has the same name: what is open there holds no record back here.
    open_at = {(entry.topic, entry.partition): entry for entry in planned.held_back if planned.flow.startswith(f"{entry.cluster}->")}
    found = []
    for plan in planned.partitions:
        facts = plan.facts
        held = open_at.get((facts.topic, facts.partition))
        reason = "" if held is None else f"a transaction is open from {held.stable_end} on, and the log ends at {held.high_watermark}"
        position = plan.position
        if plan.failure is not None:
            position = facts.head.position if facts.head is not None else facts.start
            reason = f"{type(plan.failure).__name__}: {plan.failure.problem}"
        rest = plan.offsets if plan.failure is None else max(0, facts.end - position)
        if facts.topic not in planned.heartbeats and (rest or reason):
            found.append(NotCopied(facts.topic, facts.partition, facts.remote_topic, position, facts.end, rest, reason))
    return tuple(found)


def perhaps_not_copied(flow: Flow) -> tuple[tuple[NotCopied, ...], int | None]:
    """Where each partition stood when the source went away, and when (ms) records were last copied, None where nobody knows."""
    with ClusterAdmin(flow.target) as target:
        state, _ = read_state(flow, target.topics(), settled=True)
    policy = flow.policy
    rest = tuple(
        NotCopied(head.topic, head.partition, head.remote_topic, head.position, None, None)
        for _, head in sorted(state.heads.items())
        if not policy.is_heartbeats_topic(head.topic)
    )
    return rest, last_copied(flow)


def last_copied(flow: Flow) -> int | None:
    """When (ms) a position last moved; None: there is none. Runs that fail write records of their own, so those of runs do not say it."""
    with InternalTopicReader(flow.target) as reader:
        records = reader.read(flow.state_topic, complete=False)
        return max((record.timestamp for record in records if record.key.startswith(HEAD_KEY)), default=None)
