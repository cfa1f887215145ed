"""What a seed writes (pure).

A position outside the source's log is refused. A position of another replicator never moves Ferry back, so repeating such a seed changes
nothing. External records are declared as `foreign` in the same transaction.
"""

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
class TargetRecords:
    """What is on the target: what the ledger explains; and, for remote partitions with external records, the end of the log."""

    explained: Mapping[PartitionKey, Explained]
    external: Mapping[PartitionKey, int]

    def foreign(self, key: PartitionKey, position: int) -> tuple[tuple[int, int, int], ...]:
        """What to declare as foreign when the partition goes on at `position`."""
        if key not in self.external:
            return ()
        return foreign_ranges(position, self.explained.get(key, NOTHING_EXPLAINED).ranges, self.external[key])

    def found(self, key: PartitionKey) -> int:
        """As of Receipt.found: a seed keeps what the seed that it replaces had noted."""
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


def plan_seeds(given: GivenPositions, facts: Iterable[PartitionFacts], rules: PlanRules, target: TargetRecords) -> SeedPlan:
    """Seeds at the given positions, without those that change nothing. ArgumentError as of `check_positions`."""
    known = {(entry.topic, entry.partition): entry for entry in facts}
    check_positions(given, known.values())
    plans, left_out = [], list(given.left_out)
    for key, position in sorted(given.positions.items()):
        reason = "the flow does not copy it" if key not in known else _nothing_new(given, known[key], position, rules, target)
        if reason:
            left_out.append(Skipped(f"{key[0]}-{key[1]}", reason))
            continue
        plans.append(seeded(known[key], position, rules, given.origin, target.foreign(key, position), target.found(key)))
    others = [entry for key, entry in sorted(known.items()) if key not in given.positions and entry.head is None]
    if given.binding:
        _refuse_gaps(given, others, target)
        return SeedPlan(tuple(plans), tuple(left_out))
    topics = {topic for topic, _ in given.positions}
    for entry in others:
        key = (entry.topic, entry.partition)
        if key in target.external and entry.topic in topics:
            reason = f"{given.origin} has no offset for it, but its remote partition holds records: from the beginning of the source's log"
            plans.append(seeded(entry, entry.log_start, rules, reason, target.foreign(key, entry.log_start), target.found(key)))
        else:
            left_out.append(Skipped(f"{entry.topic}-{entry.partition}", _without_position(given, entry, rules, target)))
    return SeedPlan(tuple(plans), tuple(left_out))


def _refuse_gaps(given: GivenPositions, others: Iterable[PartitionFacts], target: TargetRecords) -> None:
    """A seed claims the whole remote topic. A partition without a position would begin by the start policy, after external records."""
    topics = {topic for topic, _ in given.positions}
    gaps = [
        f"{entry.topic}-{entry.partition} (its remote partition ends at {target.external[entry.topic, entry.partition]})"
        for entry in others
        if entry.topic in topics and entry.claimed_by is None and (entry.topic, entry.partition) in target.external
    ]
    if gaps:
        raise ArgumentError(f"{given.origin} must also say where these go on, which hold records that nothing explains: {', '.join(gaps)}")


def plan_foreign(facts: Iterable[PartitionFacts], rules: PlanRules, target: TargetRecords) -> SeedPlan:
    """Declarations of external records. Positions stay, and new partitions begin where the start policy says."""
    plans = []
    for entry in facts:
        key = (entry.topic, entry.partition)
        if key not in target.external:
            continue
        # The guard of the flow in the other direction is left out: it is about the source, and may be waiting for this declaration.
        (settled,) = plan_partitions([replace(entry, remote_end=0, since=None, guard=PartitionGuard())], rules)
        foreign = foreign_receipts(entry, target.foreign(key, settled.position), rules, FOREIGN_REASON)
        plans.append(replace(settled, facts=entry, segments=(), notes=(), foreign=() if settled.failure else foreign))
    return SeedPlan(tuple(plans))


def _nothing_new(given: GivenPositions, facts: PartitionFacts, position: int, rules: PlanRules, target: TargetRecords) -> str:
    """Why a position of another replicator is left out; empty when it is written."""
    if given.binding or facts.head is None:
        return ""
    (settled,) = plan_partitions([facts], rules)
    if settled.failure is not None or settled.seed is not None or position > settled.position:
        return ""
    if position == settled.position:
        return "" if (facts.topic, facts.partition) in target.external else "Ferry is at this position already"
    return f"Ferry is at {settled.position}, further than {position}: only ferry seed --from-file moves it back"


def _without_position(given: GivenPositions, facts: PartitionFacts, rules: PlanRules, target: TargetRecords) -> str:
    if (facts.topic, facts.partition) in target.external:
        return (
            f"{given.origin} has no offset for it, but its remote partition holds records: "
            "give its position with ferry seed --from-file, or declare the records with ferry seed --foreign"
        )
    return f"{given.origin} has no offset for it: it begins at {facts.start}, by the start policy ({rules.start_policy})"
