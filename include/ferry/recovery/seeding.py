"""`ferry seed`: an operator or another replicator says where partitions go on.

Ferry takes the flow's lease, then writes the seed receipts, heads, group offsets and declarations of external records in one lane
transaction. So a seed is as safe as a copy: it supersedes a run that is under way, and is written as a whole or not at all. Everything is
decided twice: before anything is written, so that wrong input changes nothing, and again under the lease.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ferry.clusters.admin import ClusterAdmin
from ferry.config import Flow
from ferry.copying.driver import CopyDriver, rules_of
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.plan import PartitionPlan
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.errors import ExitCode, PartitionError, worst_exit_code
from ferry.ledger.reading import read_receipts
from ferry.ledger.run_report import PartitionFailure, RunReport, Skipped
from ferry.pipeline.report import assemble_report
from ferry.pipeline.run import prepare_remote_topics
from ferry.recovery.external_records import explained, find_external
from ferry.recovery.positions import GivenPositions
from ferry.recovery.seed_plan import SeedPlan, TargetRecords, check_positions, plan_foreign, plan_seeds

SEED_VERSION = 1


@dataclass(frozen=True)
class SeedEntry:
    """One partition that was seeded, and why. `before`: its position until then; None for a new partition.

    `foreign`: what was declared, as (upstream start, upstream end, downstream end).
    """

    topic: str
    partition: int
    remote_topic: str
    position: int
    before: int | None
    reason: str
    foreign: tuple[tuple[int, int, int], ...] = ()


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
        """As JSON."""
        return {"version": SEED_VERSION, **asdict(self)}


# Decides from a snapshot. `topics` None: about all topics, without waiting for open transactions.
Decide = Callable[[FlowSnapshot, "tuple[str, ...] | None"], SeedPlan]


def seed(flow: Flow, request: RunRequest, given: GivenPositions, *, dry_run: bool = False) -> SeedOutcome:
    """Write the given positions. ArgumentError, with nothing written, when one of them cannot be right."""

    def decide(seen: FlowSnapshot, topics: tuple[str, ...] | None) -> SeedPlan:
        wanted = given if topics is None else given.of_topics(topics)
        check_positions(wanted, seen.facts)  # before the target's logs are read, which may take long
        return plan_seeds(wanted, seen.facts, rules_of(flow, request), _without_local(flow, seen, _remote(flow, seen, topics is not None)))

    return _carry_out(flow, request, decide, given, dry_run=dry_run)


def declare_foreign(flow: Flow, request: RunRequest, *, dry_run: bool = False) -> SeedOutcome:
    """Declare the external records in remote topics as written by another replicator."""

    def decide(seen: FlowSnapshot, topics: tuple[str, ...] | None) -> SeedPlan:
        return plan_foreign(seen.facts, rules_of(flow, request), _remote(flow, seen, topics is not None))

    return _carry_out(flow, request, decide, GivenPositions("operator: foreign records", {}), dry_run=dry_run)


def _without_local(flow: Flow, seen: FlowSnapshot, remote: TargetRecords) -> TargetRecords:
    """Without records that producers write to the target: the flow in the other direction copies them, so they are not declared."""
    local = {(facts.topic, facts.partition) for facts in seen.facts if facts.guard.two_way or flow.on_unexplained == "local"}
    return replace(remote, external={key: end for key, end in remote.external.items() if key not in local})


def _remote(flow: Flow, seen: FlowSnapshot, settled: bool) -> TargetRecords:
    known = explained(seen.facts, read_receipts(flow, [(facts.topic, facts.partition) for facts in seen.facts]))
    return TargetRecords(known, find_external(flow, seen.facts, known, settled=settled))


def _carry_out(flow: Flow, request: RunRequest, decide: Decide, given: GivenPositions, *, dry_run: bool) -> SeedOutcome:
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        seen = take_snapshot(flow, request, source, target, settled=False)
    plan = decide(seen, None)
    failed = [_failure(found.failure) for found in plan.partitions if found.failure is not None]
    code = ExitCode.PARTLY_FAILED if failed else ExitCode.DONE
    topics = tuple(dict.fromkeys(found.facts.topic for found in plan.partitions if found.has_work))
    if topics and not dry_run:
        written, report = _write(flow, request.narrowed(*topics), decide, topics)
        left_out = (*plan.left_out, *(skipped for skipped in written.left_out if skipped not in plan.left_out))
        plan = SeedPlan(written.partitions, left_out)
        failed = [*(failure for failure in failed if failure.topic not in topics), *report.failed]
        code = worst_exit_code([code, report.exit_code]) if failed else ExitCode.DONE
    return SeedOutcome(
        flow=flow.name,
        run_id=request.run_id,
        origin=given.origin,
        dry_run=dry_run,
        seeds=_entries(plan.partitions, failed),
        left_out=plan.left_out,
        notices=given.notices,
        failed=tuple(failed),
        exit_code=code,
    )


def _write(flow: Flow, request: RunRequest, decide: Decide, topics: tuple[str, ...]) -> tuple[SeedPlan, RunReport]:
    prepare_remote_topics(flow, request)
    decided: list[SeedPlan] = []

    def under_the_lease(seen: FlowSnapshot) -> tuple[PartitionPlan, ...]:
        decided.append(decide(seen, topics))
        return decided[-1].partitions

    CopyDriver(flow, request, InlineLaneRunner(), lambda _: None).seed(under_the_lease)
    return decided[-1], assemble_report(flow, request)


def _entries(plans: Iterable[PartitionPlan], failed: Iterable[PartitionFailure]) -> tuple[SeedEntry, ...]:
    undone = {(failure.topic, failure.partition) for failure in failed}
    return tuple(
        SeedEntry(
            topic=facts.topic,
            partition=facts.partition,
            remote_topic=facts.remote_topic,
            position=plan.position,
            before=facts.head.position if facts.head else None,
            reason=next(receipt.reason for receipt in (plan.seed, *plan.foreign) if receipt is not None),
            foreign=tuple((entry.upstream_start, entry.upstream_end, entry.downstream_end) for entry in plan.foreign),
        )
        for plan in plans
        if plan.has_work and ((facts := plan.facts).topic, facts.partition) not in undone
    )


def _failure(error: PartitionError) -> PartitionFailure:
    return PartitionFailure(error.topic, error.partition, type(error).__name__, error.problem)
