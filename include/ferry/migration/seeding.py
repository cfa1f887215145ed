"""`ferry seed`: an operator or another replicator says where partitions go on.

A position above the source's last stable offset is refused. A position of another replicator never moves Ferry back, so repeating such a
seed changes nothing. External records are declared as `foreign` in the same transaction: records in remote partitions that no receipt
explains, because another replicator or a producer wrote them.

Ferry takes the flow's lease, then writes the seed receipts, heads, group offsets and declarations of external records in one lane
transaction. So a seed is as safe as a copy: it supersedes a run that is under way, and is written as a whole or not at all. Everything is
decided twice: before anything is written, so that wrong input changes nothing, and again under the lease.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.driver import CopyDriver
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.partition_plan import PartitionFacts, PartitionPlan, PlanRules, foreign_receipts, plan_partitions, seeded
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, rules_of, take_snapshot
from ferry.errors import ArgumentError, ClusterUnreachable, ExitCode, offsets_of, worst_exit_code
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import BY_OPERATOR, Receipt, ReceiptKind, covered
from ferry.ledger.run_report import PartitionFailure, RunReport, Skipped
from ferry.ledger.topic_ids import NO_ID, of_source, valid_receipts
from ferry.migration.positions import GivenPositions
from ferry.pipeline.report_reading import assemble_report
from ferry.pipeline.run import Run
from ferry.wire.ranges import Ranges, outside

FOREIGN_REASON = f"{BY_OPERATOR}: written by another replicator"
SEED_VERSION = 1
_PUT_THERE = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.FOREIGN})


@dataclass(frozen=True)
class SeedPlan:
    partitions: tuple[PartitionPlan, ...]
    left_out: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class Explained:
    """What the ledger says about one remote partition: settled upstream ranges, and the downstream range that it explains."""

    ranges: Ranges = ()
    written: Ranges = ()  # none where Ferry never wrote; it begins at 0 where everything from the beginning on is explained
    found: int = -1  # as of Receipt.found


def explained_by_ledger(facts: Collection[PartitionFacts], receipts: Iterable[Receipt]) -> dict[TopicPartition, Explained]:
    """What the ledger explains, by source partition (pure).

    Receipts of an older source topic explain records of the remote topic, but no offsets of today. If the older topic had no id yet, its
    receipts do not even explain the records: a seed declares them, so that no backfill copies them again.
    """
    valid = valid_receipts(receipts, {entry.key: entry.topic_ids for entry in facts}, any_source=True)
    return {entry.key: _explained(valid.get(entry.key, []), entry.topic_ids.source) for entry in facts}


def _explained(receipts: list[Receipt], source_topic_id: str) -> Explained:
    ranges = covered(of_source(receipts, source_topic_id))
    known = [receipt for receipt in receipts if receipt.source_topic_id == source_topic_id or receipt.source_topic_id != NO_ID]
    written = [receipt for receipt in known if receipt.kind in _PUT_THERE and receipt.downstream_end >= 0]
    found = max((receipt.found for receipt in receipts), default=-1)
    if not written:
        return Explained(ranges, found=found)
    foreign = any(receipt.kind is ReceiptKind.FOREIGN for receipt in written)
    # A receipt without runs: its records have left the target's log. They were before all others.
    bare = any(not receipt.runs for receipt in written)
    first = 0 if foreign or bare else min(receipt.runs[0][1] for receipt in written)
    return Explained(ranges, ((first, max(receipt.downstream_end for receipt in written)),), found)


@dataclass(frozen=True)
class TargetRecords:
    """The records on the target: those that the ledger explains; and, for remote partitions with external records, the end of the log."""

    explained: Mapping[TopicPartition, Explained]
    external: Mapping[TopicPartition, int]

    def foreign(self, key: TopicPartition, position: int) -> tuple[tuple[int, int, int], ...]:
        """What to declare as foreign when the partition goes on at `position`, as (upstream start, end, downstream end).

        Nobody knows the upstream offsets of the records. They may have any offset below the position that the ledger does not settle.
        """
        if key not in self.external:
            return ()
        unsettled = outside(self.explained[key].ranges, 0, position) or ((position, position),)
        return tuple((start, end, self.external[key]) for start, end in unsettled)


def check_positions(given: GivenPositions, facts: Iterable[PartitionFacts]) -> None:
    """ArgumentError naming every position that cannot be right."""
    known = {entry.key: entry for entry in facts}
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
    known = {entry.key: entry for entry in facts}
    check_positions(given, known.values())
    plans, left_out = [], list(given.left_out)
    for key, position in sorted(given.positions.items()):
        reason = "the flow does not copy it" if key not in known else _nothing_new(given, known[key], position, rules, target)
        if reason:
            left_out.append(Skipped(f"{key[0]}-{key[1]}", reason))
            continue
        # A seed keeps what the seed that it replaces had noted.
        found = target.explained[key].found
        plans.append(seeded(known[key], position, rules, given.origin, target.foreign(key, position), found))
    others = [entry for key, entry in sorted(known.items()) if key not in given.positions and entry.head is None]
    if given.binding:
        _refuse_gaps(given, others, target)
        return SeedPlan(tuple(plans), tuple(left_out))
    topics = {topic for topic, _ in given.positions}
    for entry in others:
        if entry.key in target.external and entry.topic in topics:
            reason = f"{given.origin} has no offset for it, but its remote partition holds records: from the beginning of the source's log"
            foreign = target.foreign(entry.key, entry.log_start)
            plans.append(seeded(entry, entry.log_start, rules, reason, foreign, target.explained[entry.key].found))
        else:
            left_out.append(Skipped(f"{entry.topic}-{entry.partition}", _without_position(given, entry, rules, target)))
    return SeedPlan(tuple(plans), tuple(left_out))


def _refuse_gaps(given: GivenPositions, others: Iterable[PartitionFacts], target: TargetRecords) -> None:
    """A seed claims the whole remote topic. A partition without a position would begin by the start policy, after external records."""
    topics = {topic for topic, _ in given.positions}
    held = [entry for entry in others if entry.topic in topics and entry.claimed_by is None and entry.key in target.external]
    gaps = [f"{entry.topic}-{entry.partition} (its remote partition ends at {target.external[entry.key]})" for entry in held]
    if gaps:
        raise ArgumentError(f"{given.origin} must also say where these go on, which hold records that nothing explains: {', '.join(gaps)}")


def plan_foreign(facts: Iterable[PartitionFacts], rules: PlanRules, target: TargetRecords) -> SeedPlan:
    """Declarations of external records. Positions stay, and new partitions begin where the start policy says."""
    plans = []
    for entry in facts:
        if entry.key not in target.external:
            continue
        # The guard of the flow in the other direction is left out: it is about the source, and may be waiting for this declaration.
        (planned,) = plan_partitions([replace(entry, remote_end=0, since=None, guard=PartitionGuard())], rules)
        foreign = foreign_receipts(entry, target.foreign(entry.key, planned.position), rules, FOREIGN_REASON)
        plans.append(replace(planned, facts=entry, segments=(), notes=(), foreign=() if planned.failure else foreign))
    return SeedPlan(tuple(plans))


def _nothing_new(given: GivenPositions, facts: PartitionFacts, position: int, rules: PlanRules, target: TargetRecords) -> str:
    """Why a position of another replicator is left out; empty when it is written."""
    if given.binding or facts.head is None:
        return ""
    (planned,) = plan_partitions([facts], rules)
    if planned.failure is not None or planned.seed is not None or position > planned.position:
        return ""
    if position == planned.position:
        return "" if facts.key in target.external else "Ferry is at this position already"
    return f"Ferry is at {planned.position}, further than {position}: only ferry seed --from-file moves it back"


def _without_position(given: GivenPositions, facts: PartitionFacts, rules: PlanRules, target: TargetRecords) -> str:
    if facts.key in target.external:
        return (
            f"{given.origin} has no offset for it, but its remote partition holds records: "
            "give its position with ferry seed --from-file, or declare the records with ferry seed --foreign"
        )
    left = f", which leaves out {offsets_of(facts.log_start, facts.start)}" if facts.log_start < facts.start else ""
    return f"{given.origin} has no offset for it: it begins at {facts.start}{left}, by the start policy ({rules.start_policy})"


@dataclass(frozen=True)
class SeedEntry:
    """One partition that was seeded, and why."""

    topic: str
    partition: int
    remote_topic: str
    position: int
    before: int | None  # its position until then; None for a new partition
    reason: str
    foreign: tuple[tuple[int, int, int], ...] = ()  # what was declared, as (upstream start, upstream end, downstream end)

    @property
    def declared(self) -> str:
        return ", ".join(f"below {downstream}: {offsets_of(start, end)}" for start, end, downstream in self.foreign)


@dataclass(frozen=True)
class SeedOutcome:
    """What a seed wrote, or would write (`dry_run`)."""

    flow: str
    run_id: str
    origin: str
    dry_run: bool
    seeds: tuple[SeedEntry, ...] = ()
    left_out: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()
    failed: tuple[PartitionFailure, ...] = ()
    exit_code: ExitCode = ExitCode.DONE

    def document(self) -> dict[str, Any]:
        return {"version": SEED_VERSION, **asdict(self)}


# Decides from a snapshot. `topics` None: about all topics, without waiting for open transactions.
DecideSeeds = Callable[[FlowSnapshot, "tuple[str, ...] | None"], SeedPlan]


def seed(opened: OpenFlow, request: RunRequest, given: GivenPositions, *, dry_run: bool = False) -> SeedOutcome:
    """Write the given positions. ArgumentError, with nothing written, when one of them cannot be right."""
    flow = opened.flow

    def decide(seen: FlowSnapshot, topics: tuple[str, ...] | None) -> SeedPlan:
        wanted = given if topics is None else given.of_topics(topics)
        check_positions(wanted, seen.facts)  # before the target's logs are read, which may take long
        remote = _remote(opened, seen, topics is not None)
        # The flow in the other direction copies records that producers write to the target, so they are not declared.
        local = {facts.key for facts in seen.facts if facts.may_be_local(flow.on_unexplained)}
        remote = replace(remote, external={key: end for key, end in remote.external.items() if key not in local})
        return plan_seeds(wanted, seen.facts, rules_of(flow, request), remote)

    return _carry_out(opened, request, decide, given, dry_run=dry_run)


def declare_foreign(opened: OpenFlow, request: RunRequest, *, dry_run: bool = False) -> SeedOutcome:
    """Declare the external records in remote topics as written by another replicator."""

    def decide(seen: FlowSnapshot, topics: tuple[str, ...] | None) -> SeedPlan:
        return plan_foreign(seen.facts, rules_of(opened.flow, request), _remote(opened, seen, topics is not None))

    return _carry_out(opened, request, decide, GivenPositions(f"{BY_OPERATOR}: foreign records", {}), dry_run=dry_run)


def _remote(opened: OpenFlow, seen: FlowSnapshot, stable: bool) -> TargetRecords:
    known = explained_by_ledger(seen.facts, read_receipts(opened, [facts.key for facts in seen.facts]))
    return TargetRecords(known, _external(opened, seen.facts, known, stable=stable))


def _external(
    opened: OpenFlow, facts: Iterable[PartitionFacts], known: Mapping[TopicPartition, Explained], *, stable: bool
) -> dict[TopicPartition, int]:
    """Source partitions whose remote partition holds external records, with the end of its log. `stable`: wait for open transactions.

    Where Ferry never wrote, every record is external. Otherwise Ferry looks before its first record and after its last, because another
    replicator may have run before Ferry or after it. Reading a log stops at the first record that is found.
    """
    present = {entry.remote: entry for entry in facts if entry.has_remote}
    target = opened.target.admin
    starts, problems = target.earliest_offsets(present)
    ends, more = target.end_offsets(present, committed=False)
    for (topic, partition), problem in {**problems, **more}.items():
        raise ClusterUnreachable(f"cluster {opened.target.alias}: {topic}-{partition}: {problem}")
    found, reader = {}, opened.target.reader()
    for key, entry in present.items():
        written = known[entry.key].written
        unexplained = outside(written, starts[key], ends[key])
        # Without a claim, Ferry never wrote here, not even in an aborted transaction: every offset of the log is external.
        untouched = not written and entry.claimed_by is None and bool(unexplained)
        if untouched or any(
            record.offset < end
            for start, end in unexplained
            for record in reader.read(key.topic, {key.partition: start}, {key.partition}, complete=stable)
        ):
            found[entry.key] = ends[key]
    return found


def _carry_out(opened: OpenFlow, request: RunRequest, decide: DecideSeeds, given: GivenPositions, *, dry_run: bool) -> SeedOutcome:
    flow, seen = opened.flow, take_snapshot(opened, request, stable=False)
    plan = decide(seen, None)
    failed = [found.failure for found in plan.partitions if found.failure is not None]
    code = ExitCode.PARTLY_FAILED if failed else ExitCode.DONE
    topics = tuple(dict.fromkeys(found.facts.topic for found in plan.partitions if found.has_work))
    if topics and not dry_run:
        everything = () if _begins(flow, seen, plan) else topics
        written, report = _write(opened, replace(request, topics=request.topics or everything), decide, topics)
        left_out = (*plan.left_out, *(skipped for skipped in written.left_out if skipped not in plan.left_out))
        plan = SeedPlan(written.partitions, left_out)
        failed = [*(failure for failure in failed if failure.topic not in topics), *report.failed]
        code = worst_exit_code([code, report.exit_code]) if failed else ExitCode.DONE
    seeds = _entries(plan.partitions, failed)
    return SeedOutcome(
        flow.name, request.run_id, given.origin, dry_run, seeds, plan.left_out, given.notices, failed=tuple(failed), exit_code=code
    )


def _begins(flow: Flow, seen: FlowSnapshot, plan: SeedPlan) -> bool:
    """Whether the seed counts as the flow's first run, because it says of every partition where it begins."""
    seeded = {found.facts.key for found in plan.partitions if found.failure is None}
    others = {facts.topic for facts in seen.facts if facts.head is None and facts.key not in seeded}
    sure = flow.start != "earliest" and not (seen.denied or seen.unavailable)
    return sure and all(map(flow.is_heartbeats, others))


def _write(opened: OpenFlow, request: RunRequest, decide: DecideSeeds, topics: tuple[str, ...]) -> tuple[SeedPlan, RunReport]:
    Run(opened, request).prepare(spark_follows=True)
    decided: list[SeedPlan] = []

    def under_the_lease(seen: FlowSnapshot) -> tuple[PartitionPlan, ...]:
        decided.append(decide(seen, topics))
        return decided[-1].partitions

    CopyDriver(opened, request, InlineLaneRunner(), lambda _: None).seed(under_the_lease)
    opened.anew()
    return decided[-1], assemble_report(opened, request)


def _entries(plans: Iterable[PartitionPlan], failed: Iterable[PartitionFailure]) -> tuple[SeedEntry, ...]:
    undone, entries = {(failure.topic, failure.partition) for failure in failed}, []
    for plan in (found for found in plans if found.has_work and found.facts.key not in undone):
        facts = plan.facts
        before = facts.head.position if facts.head else None
        reason = next(receipt.reason for receipt in (plan.seed, *plan.foreign) if receipt is not None)
        foreign = tuple((entry.upstream_start, entry.upstream_end, entry.downstream_end) for entry in plan.foreign)
        entries.append(SeedEntry(*facts.key, facts.remote_topic, plan.position, before, reason, foreign))
    return tuple(entries)
