"""What a seed writes: a pure function over what both clusters and the ledger say.

A position is refused when it lies outside the source's log. One that comes from another replicator never moves Ferry back, so a seed that
is repeated does nothing. Records that nothing explains are declared foreign in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.plan import PartitionFacts, PartitionPlan, PlanRules, foreign_receipts, plan_partitions, seeded
from ferry.errors import ArgumentError
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import PartitionKey
from ferry.recovery.external_records import NOTHING_EXPLAINED, Explained, foreign_ranges
from ferry.recovery.positions import GivenPositions

FOREIGN_REASON = "operator: written by another replicator"


@dataclass(frozen=True)
class SeedPlan:
    """What to write, and what is left out and why."""

    partitions: tuple[PartitionPlan, ...]
    left_out: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class Remote:
    """What is on the target: what the ledger explains, and log ends of the remote partitions that hold records nobody explains."""

    explained: Mapping[PartitionKey, Explained]
    strangers: Mapping[PartitionKey, int]

    def foreign(self, key: PartitionKey, position: int) -> tuple[tuple[int, int, int], ...]:
        """What to declare when the partition goes on at `position`."""
        if key not in self.strangers:
            return ()
        return foreign_ranges(position, self.explained.get(key, NOTHING_EXPLAINED).ranges, self.strangers[key])

    def found(self, key: PartitionKey) -> int:
        """What an earlier seed noted that was there: one that replaces it must not forget it."""
        return self.explained.get(key, NOTHING_EXPLAINED).found


def check_positions(given: GivenPositions, facts: Iterable[PartitionFacts]) -> None:
    """ArgumentError naming every position that cannot be right."""
    known = {(entry.topic, entry.partition): entry for entry in facts}
    problems = []
    for key, position in sorted(given.positions.items()):
        entry = known.get(key)
        if entry is None:
            if given.binding:
                problems.append(f"{given.place(key)}: the flow does not copy such a partition")
        elif not 0 <= position <= entry.stable_end:
            problems.append(
                f"{given.place(key)}: position {position} is outside the source's log, which ends at {entry.stable_end} "
                "(an open transaction there ends it earlier; so does a topic that was created again)"
            )
    if problems:
        raise ArgumentError("; ".join(problems))


def plan_seeds(given: GivenPositions, facts: Iterable[PartitionFacts], rules: PlanRules, remote: Remote) -> SeedPlan:
    """Seeds at the given positions, those that say nothing new left out. ArgumentError as of `check_positions`."""
    known = {(entry.topic, entry.partition): entry for entry in facts}
    check_positions(given, known.values())
    plans, left_out = [], list(given.left_out)
    for key, position in sorted(given.positions.items()):
        reason = "the flow does not copy it" if key not in known else _nothing_new(given, known[key], position, rules, remote)
        if reason:
            left_out.append(Skipped(f"{key[0]}-{key[1]}", reason))
            continue
        plans.append(seeded(known[key], position, rules, given.origin, remote.foreign(key, position), remote.found(key)))
    others = [entry for key, entry in sorted(known.items()) if key not in given.positions and entry.head is None]
    if given.binding:
        _refuse_gaps(given, others, remote)
        return SeedPlan(tuple(plans), tuple(left_out))
    topics = {topic for topic, _ in given.positions}
    for entry in others:
        key = (entry.topic, entry.partition)
        if key in remote.strangers and entry.topic in topics:
            reason = f"{given.origin} has no offset for it, but its remote partition holds records: from the beginning of the source's log"
            plans.append(seeded(entry, entry.log_start, rules, reason, remote.foreign(key, entry.log_start), remote.found(key)))
        else:
            left_out.append(Skipped(f"{entry.topic}-{entry.partition}", _without_position(given, entry, rules, remote)))
    return SeedPlan(tuple(plans), tuple(left_out))


def _refuse_gaps(given: GivenPositions, others: Iterable[PartitionFacts], remote: Remote) -> None:
    """A seed claims the remote topic: a partition that is left out would begin by the start policy, over records that are there already."""
    topics = {topic for topic, _ in given.positions}
    gaps = [
        f"{entry.topic}-{entry.partition} (its remote partition ends at {remote.strangers[entry.topic, entry.partition]})"
        for entry in others
        if entry.topic in topics and entry.claimed_by is None and (entry.topic, entry.partition) in remote.strangers
    ]
    if gaps:
        raise ArgumentError(f"{given.origin} must also say where these go on, which hold records that nothing explains: {', '.join(gaps)}")


def plan_foreign(facts: Iterable[PartitionFacts], rules: PlanRules, remote: Remote) -> SeedPlan:
    """Declarations of what is in remote partitions; positions stay, and new partitions begin where the start policy says."""
    plans = []
    for entry in facts:
        key = (entry.topic, entry.partition)
        if key not in remote.strangers:
            continue
        # What the flow in the other direction wrote at the source says nothing about the target, and may wait for this very word.
        (settled,) = plan_partitions([replace(entry, remote_end=0, since=None, guard=PartitionGuard())], rules)
        foreign = foreign_receipts(entry, remote.foreign(key, settled.position), rules, FOREIGN_REASON)
        plans.append(replace(settled, facts=entry, segments=(), notes=(), foreign=() if settled.failure else foreign))
    return SeedPlan(tuple(plans))


def _nothing_new(given: GivenPositions, facts: PartitionFacts, position: int, rules: PlanRules, remote: Remote) -> str:
    """Why a position of another replicator is left out; empty when it is written."""
    if given.binding or facts.head is None:
        return ""
    (settled,) = plan_partitions([facts], rules)
    if settled.failure is not None or settled.seed is not None or position > settled.position:
        return ""
    if position == settled.position:
        return "" if (facts.topic, facts.partition) in remote.strangers else "stands there already"
    return f"Ferry stands at {settled.position}, further than {position}: ferry seed --from-file would take it back"


def _without_position(given: GivenPositions, facts: PartitionFacts, rules: PlanRules, remote: Remote) -> str:
    if (facts.topic, facts.partition) in remote.strangers:
        return (
            f"{given.origin} has no offset for it, but its remote partition holds records: "
            "say where it goes on with ferry seed --from-file, or ferry seed --foreign"
        )
    return f"{given.origin} has no offset for it: it begins at {facts.start}, by the start policy ({rules.start_policy})"
