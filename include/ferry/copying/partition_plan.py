"""Plans what a run does with every partition (pure).

For each source partition, the plan first finds the position: head, group offset and topic ids must agree, or the partition stops with a
named error. Then the run copies in order from the position to the end bound and, in a backfill, the ranges below the position that the
ledger does not cover. A partition that Ferry sees for the first time gets a seed at the offset of the start policy: so "never copied" and
"copied from here" differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ferry.copying.lane_messages import Segment
from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.truncation import Truncation
from ferry.errors import (
    AlreadyClaimed,
    BackfillRefused,
    BatchRefused,
    OriginUnclear,
    PartitionError,
    PartitionUnavailable,
    PositionDisagrees,
    SourceRecreated,
    SourceTruncated,
    TargetMissing,
    TargetRecreated,
    TargetTooNarrow,
    count_of,
    offsets_of,
)
from ferry.ledger.receipts import BY_START_POLICY, CREATED_AGAIN, Receipt, ReceiptKind
from ferry.ledger.run_report import EXPIRED, LossReport, PartitionFailure
from ferry.ledger.state import Head
from ferry.ledger.topic_ids import NO_ID, PartitionPair
from ferry.wire.batch import DEFAULT_BATCH_LIMIT
from ferry.wire.ranges import outside, size, within


@dataclass(frozen=True)
class PartitionFacts(PartitionPair):
    """What both clusters hold of one source partition and its remote partition."""

    remote_partitions: int  # the remote topic's number of partitions
    remote_end: int  # the end of the remote log
    log_start: int  # source offset, like the next four
    end: int  # exclusive bound of this run
    stable_end: int  # the last stable offset
    start: int  # the offset of the start policy; if the partition is `newer`, that of the log's start
    since: int | None = None  # the first offset of a backfill's interval
    head: Head | None = None
    committed: int | None = None  # the group's offset
    claimed_by: str | None = None
    covered: tuple[tuple[int, int], ...] = ()
    compacted: bool = False
    stamps_itself: bool = False  # whether the remote topic replaces timestamps
    ledger_topic_id: str = ""
    batch_limit: int = DEFAULT_BATCH_LIMIT
    guard: PartitionGuard = field(default_factory=PartitionGuard)  # the records that the flow in the other direction wrote
    truncation: Truncation | None = None  # the source log holds other records before the head's position
    explained_end: int = -1  # as in PartitionTask
    newer: bool = False  # the partition is newer than the flow's first run

    @property
    def position(self) -> int:
        """The next upstream offset to copy, as far as a plan that may fail does not change it."""
        if self.head is not None:
            again = self.head.source_topic_id not in {NO_ID, self.topic_ids.source}
            return self.log_start if again else self.head.position
        return self.committed if self.committed is not None else self.start

    @property
    def has_remote(self) -> bool:
        """Whether the remote partition exists."""
        return self.remote_topic_id is not None and self.partition < self.remote_partitions

    def may_be_local(self, on_unexplained: str) -> bool:
        """Whether the remote partition may hold records that producers wrote to the target."""
        return self.guard.two_way or on_unexplained == "local"


@dataclass(frozen=True)
class PlanRules:
    """The settings of a flow that the plan depends on. `recipient`: for messages, the user who needs rights on the target."""

    flow: str
    run_id: str
    on_recreate: Literal["fail", "restart"] = "fail"
    on_target_recreate: Literal["fail", "restart"] = "fail"
    start_policy: str = "earliest"
    on_unexplained: Literal["fail", "local"] = "fail"
    on_unclear: Literal["fail", "local"] = "fail"
    recipient: str = "at the target"


@dataclass(frozen=True)
class PartitionPlan:
    """What the run does with one partition. If there is a `failure`, nothing."""

    facts: PartitionFacts
    position: int = -1
    segments: tuple[Segment, ...] = ()
    seed: Receipt | None = None
    foreign: tuple[Receipt, ...] = ()
    last_epoch: int = -1
    notes: tuple[str, ...] = ()
    failure: PartitionFailure | None = None
    from_target: int = 0  # how many upstream offsets of the segments are left out, because their records came from the target
    series: str = ""  # as in Receipt.series
    expired: LossReport | None = None  # records that the source has deleted before they were copied: the run will record a loss

    @property
    def has_work(self) -> bool:
        """Whether a lane has something to write for this partition."""
        return self.failure is None and bool(self.segments or self.seed or self.foreign)

    @property
    def offsets(self) -> int:
        """Upstream offsets to copy, without those that came from the target."""
        return sum(segment.end - segment.start for segment in self.segments) - self.from_target


@dataclass(frozen=True)
class _Decided:
    """A partition's position before the copy. `seed_reason`: why it is a new position; empty if it is not."""

    position: int
    epoch: int = -1
    seed_reason: str = ""


def plan_partitions(facts: Iterable[PartitionFacts], rules: PlanRules) -> list[PartitionPlan]:
    return [_plan(partition, rules) for partition in facts]


def stopped_without_topic(plans: Iterable[PartitionPlan], why: Mapping[str, str]) -> list[PartitionPlan]:
    """The plans, where partitions without a remote topic fail. `why`: the reason, by source topic."""
    found = list(plans)
    for index, plan in enumerate(found):
        facts = plan.facts
        if plan.failure is None and facts.remote_topic_id is None and facts.topic in why:
            problem = f"remote topic {facts.remote_topic} does not exist, and cannot be created: {why[facts.topic]}"
            found[index] = PartitionPlan(facts, failure=PartitionFailure(*facts.key, TargetMissing.__name__, problem))
    return found


def _plan(facts: PartitionFacts, rules: PlanRules) -> PartitionPlan:
    try:
        _check_target(facts, rules)
        decided = _decide(facts, rules)
        segments = tuple(_segments(facts, decided.position))
        _check_origin(facts, segments, rules)
    except PartitionError as problem:
        return PartitionPlan(facts, failure=PartitionFailure.of(problem))
    seed = _seed(facts, decided.position, rules.run_id, decided.seed_reason) if decided.seed_reason else None
    notes = []
    lost = outside(facts.guard.excluded, decided.position, facts.log_start)
    expired = LossReport(*facts.key, lost[0][0], lost[-1][1], EXPIRED.format(facts.log_start)) if lost else None
    if expired is not None:
        notes.append(f"the source deleted {offsets_of(expired.upstream_start, expired.upstream_end)} before Ferry copied them")
    elif facts.head is None and facts.log_start < decided.position:
        notes.append(f"the start of the flow leaves out {offsets_of(facts.log_start, decided.position)}")
    returning = sum(size(within(facts.guard.excluded, segment.start, segment.end)) for segment in segments)
    if returning:
        notes.append(f"{count_of(returning, 'offset')} with records that came from the target: left out")
    known = "" if facts.head is None else facts.head.series
    series = rules.run_id if seed is not None and facts.head is not None else known
    plan = PartitionPlan(facts, decided.position, segments, seed, last_epoch=decided.epoch, notes=tuple(notes))
    return replace(plan, from_target=returning, series=series, expired=expired)


def _check_target(facts: PartitionFacts, rules: PlanRules) -> None:
    if facts.claimed_by is not None and facts.claimed_by != rules.flow:
        problem = f"flow {facts.claimed_by} writes to remote topic {facts.remote_topic}; rename one of them, or exclude the topic here"
        raise AlreadyClaimed(facts.topic, facts.partition, problem)
    if facts.remote_topic_id is not None and facts.partition >= facts.remote_partitions:
        problem = f"remote topic {facts.remote_topic} has {count_of(facts.remote_partitions, 'partition')} and could not be grown: "
        problem += f"add partitions to it, or grant Alter on topic {facts.remote_topic} {rules.recipient}"
        raise TargetTooNarrow(facts.topic, facts.partition, problem)
    if facts.stamps_itself:
        problem = f"remote topic {facts.remote_topic} has message.timestamp.type=LogAppendTime and would replace timestamps: set CreateTime"
        raise BatchRefused(facts.topic, facts.partition, problem)


def other_remote(facts: PartitionFacts, head: Head) -> str:
    """Why today's remote topic is not the one to which the flow has copied so far."""
    if facts.remote_topic != head.remote_topic:
        return f"it was copied to {head.remote_topic}, and today's replication policy names {facts.remote_topic}: change the policy back"
    if facts.remote_topic_id is None:
        return f"remote topic {facts.remote_topic} was deleted; {_gone(facts, head)}; the remote topic had topic id {head.remote_topic_id}"
    if head.remote_topic_id == NO_ID:
        return _first_id(f"remote topic {facts.remote_topic}", facts.remote_topic_id, head)
    again = f"remote topic {facts.remote_topic} {CREATED_AGAIN}; {_gone(facts, head)}"
    return f"{again}; {_other_id(head.remote_topic_id, facts.remote_topic_id)}"


def _gone(facts: PartitionFacts, head: Head) -> str:
    """The records that are gone with a remote topic; and which of them the source still has, if its log is still the copied one."""
    copies = f"what was copied of {facts.topic}-{facts.partition} below source offset {head.position:,} is gone"
    same = head.source_topic_id == facts.topic_ids.source and facts.stable_end >= head.position
    still = f"still has it, from offset {facts.log_start:,} on" if facts.log_start < head.position else "has deleted it too"
    return f"{copies} (the source {still})" if same else copies


def _first_id(topic: str, now: object, head: Head) -> str:
    """The problem of a topic that has got an id. Nobody knows whether it is the copied one, and a restart could copy all of it twice."""
    had_none = f"{topic} had no topic id when it was copied, and has {now} since its cluster was upgraded to 2.8 or newer"
    return f"{had_none}; if it was not created again, settle it with ferry seed --from-file at position {head.position}"


def _other_id(before: object, now: object) -> str:
    return f"the topic had topic id {before} and has {now} now"


def _decide(facts: PartitionFacts, rules: PlanRules) -> _Decided:
    head = facts.head
    if head is None:
        return _first_time(facts, rules)
    if head.remote_topic_id != facts.topic_ids.remote:
        if head.remote_topic_id == NO_ID and facts.remote_topic_id is not None:
            raise PositionDisagrees(facts.topic, facts.partition, other_remote(facts, head))
        if rules.on_target_recreate == "restart":
            return _Decided(facts.start, seed_reason=f"restart: remote topic {facts.remote_topic} {CREATED_AGAIN}")
        problem = f"{other_remote(facts, head)}; ferry.on.target.recreate=restart copies again what the source still has"
        raise TargetRecreated(facts.topic, facts.partition, problem)
    if head.source_topic_id != facts.topic_ids.source:
        if head.source_topic_id == NO_ID:
            raise PositionDisagrees(facts.topic, facts.partition, _first_id(f"source topic {facts.topic}", facts.topic_id, head))
        if rules.on_recreate == "restart":
            return _Decided(facts.log_start, seed_reason=f"restart: source topic {facts.topic} {CREATED_AGAIN}")
        problem = (
            f"source topic {facts.topic} {CREATED_AGAIN}; {_other_id(head.source_topic_id, facts.topic_id)}; "
            "ferry.on.recreate=restart copies the new topic after the old one's records"
        )
        raise SourceRecreated(facts.topic, facts.partition, problem)
    return _known(facts, head, rules)


def _known(facts: PartitionFacts, head: Head, rules: PlanRules) -> _Decided:
    if head.ledger_topic_id != facts.ledger_topic_id:
        problem = f"the ledger that explains position {head.position} was deleted; settle it with ferry seed --from-file"
        raise PositionDisagrees(facts.topic, facts.partition, problem)
    may_lag = head.remote_end >= 0 and facts.committed is not None and facts.committed < head.position
    if facts.committed is not None and facts.committed != head.position and not may_lag:
        problem = f"the flow's group says {facts.committed}, the head says {head.position}; settle it with ferry seed --from-file"
        raise PositionDisagrees(facts.topic, facts.partition, problem)
    if facts.truncation is not None:
        return _truncated(facts, head, facts.truncation, rules)
    if head.position > facts.stable_end:
        problem = (
            f"the source log can be read only up to offset {facts.stable_end}, before the position {head.position}, but its leader does "
            "not confirm that it was truncated: the leader may lag behind, or a transaction may be open; run again"
        )
        raise PartitionUnavailable(facts.topic, facts.partition, problem)
    return _Decided(head.position, head.source_epoch)


def _truncated(facts: PartitionFacts, head: Head, truncation: Truncation, rules: PlanRules) -> _Decided:
    rewritten = f"the source log was truncated to offset {truncation.end}; copied up to {head.position}"
    if not truncation.copied:
        return _Decided(truncation.start, seed_reason=f"nothing had been copied at or behind offset {truncation.start}: {rewritten}")
    if rules.on_recreate == "restart":
        return _Decided(truncation.start, seed_reason=f"restart: {rewritten}")
    problem = f"{rewritten}; ferry.on.recreate=restart goes on at offset {truncation.start}"
    raise SourceTruncated(facts.topic, facts.partition, problem)


def _first_time(facts: PartitionFacts, rules: PlanRules) -> _Decided:
    if facts.committed is not None:
        problem = (
            f"the flow's group says {facts.committed}, but there is no head: the state topic lost it; settle it with ferry seed --from-file"
        )
        raise PositionDisagrees(facts.topic, facts.partition, problem)
    held = facts.claimed_by is None and facts.remote_end > 0
    if held and not facts.may_be_local(rules.on_unexplained):
        problem = (
            f"remote topic {facts.remote_topic} holds records up to offset {facts.remote_end} that no ledger of this flow explains; "
            "if another replicator copied them, say so with ferry seed; if they were produced there, set ferry.on.unexplained=local; "
            "or delete the remote topic"
        )
        raise PositionDisagrees(facts.topic, facts.partition, problem)
    local = f"; what is below {facts.remote_end} was produced there" if held else ""
    policy = "earliest: newer than the flow's first run" if facts.newer and rules.start_policy != "earliest" else rules.start_policy
    return _Decided(facts.start, seed_reason=f"{BY_START_POLICY} {policy}{local}")


def _check_origin(facts: PartitionFacts, segments: Iterable[Segment], rules: PlanRules) -> None:
    """Fail if it is not known which records of the source came from the target: these must not be copied back."""
    guard = facts.guard
    if guard.broken:
        problem = (
            f"the flow from the target writes to topic {facts.topic} too, and its ledger here was deleted: nobody knows which records came "
            "from there; settle that flow with ferry seed --from-file, then declare what it wrote with ferry seed --foreign"
        )
        raise OriginUnclear(facts.topic, facts.partition, problem)
    if guard.unasked:
        problem = f"the leader of {facts.topic}-{facts.partition} does not say which records from the target its log still holds"
        raise PartitionUnavailable(facts.topic, facts.partition, problem)
    first = min((max(segment.start, facts.log_start) for segment in segments), default=guard.unclear_below)
    if first < guard.unclear_below and rules.on_unclear == "fail":
        problem = (
            f"the flow from the target was seeded when topic {facts.topic} held records up to offset {guard.unclear_below} that its ledger "
            "does not explain: if they came from the target, declare them with ferry seed --foreign for that flow; if they were produced "
            "here, set ferry.on.unclear=local for this flow"
        )
        raise OriginUnclear(facts.topic, facts.partition, problem)


def _segments(facts: PartitionFacts, position: int) -> Iterable[Segment]:
    if facts.end > position:
        yield Segment(ReceiptKind.COPIED, position, facts.end)
    if facts.since is None:
        return
    missing = outside(facts.covered, max(facts.since, facts.log_start), min(facts.end, position))
    if missing and facts.compacted:
        problem = f"remote topic {facts.remote_topic} is compacted: old records appended after newer ones would replace them"
        raise BackfillRefused(facts.topic, facts.partition, problem)
    yield from (Segment(ReceiptKind.BACKFILLED, start, end) for start, end in missing)


def seeded(  # noqa: PLR0917 - the partition, its new position, and what its topics hold
    facts: PartitionFacts, position: int, rules: PlanRules, reason: str, foreign: tuple[tuple[int, int, int], ...] = (), found: int = -1
) -> PartitionPlan:
    """A plan that only writes an operator's seed: `position` for a partition.

    `foreign`: records that another replicator wrote, as (upstream start, upstream end, downstream end). `found`: of an earlier seed.
    """
    try:
        _check_target(facts, rules)
    except PartitionError as problem:
        return PartitionPlan(facts, failure=PartitionFailure.of(problem))
    seed = replace(_seed(facts, position, rules.run_id, reason), found=max(found, facts.remote_end or -1))
    return PartitionPlan(facts, position, seed=seed, foreign=foreign_receipts(facts, foreign, rules, reason), series=rules.run_id)


def foreign_receipts(facts: PartitionFacts, ranges: Iterable[tuple[int, int, int]], rules: PlanRules, reason: str) -> tuple[Receipt, ...]:
    """Receipts of records that another replicator wrote, from (upstream start, upstream end, downstream end)."""
    blank = _seed(facts, 0, rules.run_id, reason)
    return tuple(
        replace(blank, kind=ReceiptKind.FOREIGN, upstream_start=start, upstream_end=end, downstream_end=downstream_end)
        for start, end, downstream_end in ranges
    )


def _seed(facts: PartitionFacts, position: int, run_id: str, reason: str) -> Receipt:
    return replace(facts.receipt(ReceiptKind.SEED, position, position, reason), run_id=run_id)
