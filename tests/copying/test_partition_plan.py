"""Every outcome of the plan, and every reason for which a partition stops by name."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.lane_messages import Segment
from ferry.copying.loop_guard import PartitionGuard
from ferry.copying.partition_plan import PartitionFacts, PartitionPlan, PlanRules, plan_partitions, seeded
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
    TargetRecreated,
    TargetTooNarrow,
)
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.run_report import EXPIRED, LossReport
from ferry.ledger.state import Head

pytestmark = pytest.mark.unit

SOURCE, OTHER_SOURCE, REMOTE, OTHER_REMOTE = (UUID(int=number) for number in range(1, 5))
NO_ID = UUID(int=0)
LEDGER = "ledger-1"
RULES = PlanRules("A->B", "run-1")
RESTART = PlanRules("A->B", "run-1", on_recreate="restart", on_target_recreate="restart")
COPIED, BACKFILLED = ReceiptKind.COPIED, ReceiptKind.BACKFILLED


def head(position: int = 50, *, source: UUID = SOURCE, remote: UUID = REMOTE, ledger: str = LEDGER) -> Head:
    return Head("t", 0, position, str(source), "A.t", str(remote), ledger, source_epoch=7, run_id="run-0")


NEW = PartitionFacts(
    topic="t",
    partition=0,
    topic_id=SOURCE,
    remote_topic="A.t",
    remote_topic_id=REMOTE,
    remote_partitions=1,
    remote_end=0,
    log_start=10,
    end=100,
    stable_end=120,
    start=10,
    ledger_topic_id=LEDGER,
)
KNOWN = replace(NEW, head=head(), committed=50, claimed_by="A->B", remote_end=40)


def plan(facts: PartitionFacts, rules: PlanRules = RULES) -> PartitionPlan:
    (only,) = plan_partitions([facts], rules)
    return only


def refused(facts: PartitionFacts, error: type[PartitionError], text: str, rules: PlanRules = RULES) -> None:
    found = plan(facts, rules)
    assert found.failure.error == error.__name__
    assert text in found.failure.problem
    assert (found.failure.topic, found.failure.partition) == (facts.topic, facts.partition)
    assert (found.has_work, found.segments, found.seed) == (False, (), None)


def test_the_first_time_begins_at_the_start_policy_and_says_so() -> None:
    found = plan(NEW)
    assert (found.position, found.segments, found.offsets) == (10, (Segment(COPIED, 10, 100),), 90)
    seed = Receipt(ReceiptKind.SEED, "t", 0, str(SOURCE), "A.t", str(REMOTE), 10, 10, run_id="run-1", reason="start policy earliest")
    assert found.seed == seed


def test_the_first_time_with_nothing_to_copy_still_records_the_start() -> None:
    found = plan(replace(NEW, start=120))
    assert (found.position, found.segments, found.has_work) == (120, (), True)


def test_a_remote_topic_that_does_not_exist_yet_is_planned() -> None:
    assert plan(replace(NEW, remote_topic_id=None, remote_partitions=0)).segments == (Segment(COPIED, 10, 100),)


def test_a_known_partition_goes_on_at_its_head() -> None:
    found = plan(KNOWN)
    assert (found.position, found.segments, found.seed, found.last_epoch) == (50, (Segment(COPIED, 50, 100),), None, 7)


def test_nothing_to_do() -> None:
    assert not plan(replace(KNOWN, end=50)).has_work
    assert not plan(replace(KNOWN, end=20)).has_work


def test_a_partition_that_was_copied_to_its_end_is_not_truncated() -> None:
    found = plan(replace(KNOWN, end=50, stable_end=50))
    assert (found.failure, found.position, found.has_work) == (None, 50, False)


def test_the_head_counts_when_the_group_offset_is_gone() -> None:
    assert plan(replace(KNOWN, committed=None)).position == 50


def test_expired_records_are_noted() -> None:
    found = plan(replace(KNOWN, log_start=70))
    assert found.segments == (Segment(COPIED, 50, 100),)
    assert found.notes == ("the source deleted offsets 50 to 69 before Ferry copied them",)
    assert found.expired == LossReport("t", 0, 50, 70, EXPIRED.format(70))
    returned = replace(KNOWN, log_start=70, guard=PartitionGuard(excluded=((40, 60),)))
    assert (rest := plan(returned).expired) is not None
    assert (rest.upstream_start, rest.upstream_end) == (60, 70)
    assert plan(replace(returned, guard=PartitionGuard(excluded=((40, 80),)))).expired is None
    assert plan(replace(KNOWN, log_start=50)).notes == ()


def test_what_came_from_the_target_is_told_and_not_counted_as_work() -> None:
    found = plan(replace(KNOWN, since=0, guard=PartitionGuard(((5, 20), (45, 1_060), (2_000, 2_010))), end=1_100, stable_end=1_100))
    assert found.segments == (Segment(COPIED, 50, 1_100), Segment(BACKFILLED, 10, 50))
    assert (found.from_target, found.offsets) == (10 + 1_015, 1_050 + 40 - 1_025)
    (note,) = found.notes
    assert "1,025 offsets" in note


def test_what_may_have_come_from_the_target_is_not_copied() -> None:
    broken = replace(KNOWN, guard=PartitionGuard(broken=True))
    refused(
        broken,
        OriginUnclear,
        "settle that flow with ferry seed --from-file, then declare what it wrote with ferry seed --foreign",
    )
    local = replace(RULES, on_unclear="local")
    refused(broken, OriginUnclear, "topic t too, and its ledger here was deleted", local)
    unclear = replace(KNOWN, guard=PartitionGuard(unclear_below=51))
    refused(
        unclear,
        OriginUnclear,
        "topic t held records up to offset 51 that its ledger does not explain: if they came from the target, declare",
    )
    refused(unclear, OriginUnclear, "if they were produced here, set ferry.on.unclear=local for this flow")
    assert (
        plan(unclear, local).segments
        == plan(replace(KNOWN, guard=PartitionGuard(unclear_below=50))).segments
        == (Segment(COPIED, 50, 100),)
    )
    assert plan(replace(unclear, log_start=51)).failure is None, "what may have come from there is gone"
    assert plan(replace(unclear, end=50)).failure is None, "nothing is copied"
    refused(replace(KNOWN, guard=PartitionGuard(unclear_below=11), since=0), OriginUnclear, "up to offset 11")


def test_another_flow_writes_there() -> None:
    refused(replace(NEW, claimed_by="C->B"), AlreadyClaimed, "flow C->B writes to remote topic A.t")


def test_the_remote_topic_is_too_narrow() -> None:
    refused(replace(NEW, partition=1), TargetTooNarrow, "has 1 partition ")


def test_the_remote_topic_would_replace_timestamps() -> None:
    stamped = replace(NEW, stamps_itself=True)
    refused(stamped, BatchRefused, "remote topic A.t has message.timestamp.type=LogAppendTime and would replace timestamps: set CreateTime")


def test_the_remote_topic_was_recreated_or_deleted() -> None:
    recreated = replace(KNOWN, remote_topic_id=OTHER_REMOTE, committed=None)
    refused(recreated, TargetRecreated, "ferry.on.target.recreate")
    gone = "created again; what was copied of t-0 below source offset 50 is gone{}; the topic had topic id"
    refused(replace(recreated, log_start=20), TargetRecreated, gone.format(" (the source still has it, from offset 20 on)"))
    refused(replace(recreated, log_start=50), TargetRecreated, gone.format(" (the source has deleted it too)"))
    for other_log in (replace(recreated, topic_id=OTHER_SOURCE), replace(recreated, stable_end=10)):
        refused(other_log, TargetRecreated, gone.format(""))
    refused(replace(recreated, head=head(0)), TargetRecreated, "created again; what was copied of t-0 below source offset 0 is gone")
    refused(replace(KNOWN, remote_topic_id=None, remote_partitions=0, committed=None), TargetRecreated, "was deleted")
    refused(
        replace(KNOWN, remote_topic="other", remote_topic_id=None, committed=None), TargetRecreated, "names other: change the policy back"
    )
    found = plan(recreated, RESTART)
    assert (found.position, found.seed is not None and found.seed.reason) == (10, "restart: remote topic A.t was deleted and created again")


@pytest.mark.parametrize("rules", [RULES, RESTART])
@pytest.mark.parametrize(
    ("ids", "topic"),
    [
        ({"source": NO_ID}, "source topic t"),
        ({"remote": NO_ID}, "remote topic A.t"),
        ({"source": NO_ID, "remote": NO_ID}, "remote topic A.t"),
    ],
)
def test_topics_that_get_ids_by_an_upgrade_are_not_copied_again(ids: dict[str, UUID], topic: str, rules: PlanRules) -> None:
    """restart would append all that was copied before a second time."""
    text = f"{topic} had no topic id when it was copied"
    refused(replace(KNOWN, head=head(**ids)), PositionDisagrees, text, rules)
    refused(replace(KNOWN, head=head(**ids)), PositionDisagrees, "ferry seed --from-file at position 50", rules)


def test_topics_without_ids_stay_so() -> None:
    found = plan(replace(KNOWN, topic_id=NO_ID, remote_topic_id=NO_ID, head=head(source=NO_ID, remote=NO_ID)))
    assert (found.failure, found.position) == (None, 50)
    refused(replace(KNOWN, remote_topic_id=None, head=head(remote=NO_ID)), TargetRecreated, "remote topic A.t was deleted")


def test_the_source_topic_was_recreated() -> None:
    recreated = replace(KNOWN, topic_id=OTHER_SOURCE)
    refused(recreated, SourceRecreated, "ferry.on.recreate=restart")
    found = plan(replace(recreated, log_start=3), RESTART)
    assert (found.position, found.last_epoch) == (3, -1)
    assert found.seed is not None
    assert found.seed.source_topic_id == str(OTHER_SOURCE)


def test_a_log_that_seems_to_end_before_the_position_is_truncated_only_if_that_is_confirmed() -> None:
    lagging = replace(KNOWN, end=30, stable_end=30)
    for rules in (RULES, RESTART):
        text = "only up to offset 30, before the position 50"
        refused(lagging, PartitionUnavailable, text, rules)
    confirmed = replace(lagging, truncation=Truncation(30, 30, copied=True))
    refused(confirmed, SourceTruncated, "truncated to offset 30; copied up to 50; ferry.on.recreate=restart goes on at offset 30")
    found = plan(confirmed, RESTART)
    assert (found.position, found.segments) == (30, ())
    assert found.seed is not None
    assert found.seed.reason == "restart: the source log was truncated to offset 30; copied up to 50"


def test_the_source_log_was_rewritten_before_the_position() -> None:
    truncated = replace(KNOWN, truncation=Truncation(40, 35, copied=True))
    text = "the source log was truncated to offset 40; copied up to 50; ferry.on.recreate=restart goes on at offset 35"
    refused(truncated, SourceTruncated, text)
    found = plan(truncated, RESTART)
    assert (found.position, found.last_epoch, found.segments, found.series) == (35, -1, (Segment(COPIED, 35, 100),), "run-1")
    assert found.seed is not None
    assert found.seed.reason == "restart: the source log was truncated to offset 40; copied up to 50"


def test_a_log_that_differs_only_where_nothing_was_copied_is_read_again_from_there() -> None:
    found = plan(replace(KNOWN, truncation=Truncation(45, 45, copied=False)))
    assert (found.position, found.segments, found.series) == (45, (Segment(COPIED, 45, 100),), "run-1")
    assert found.seed is not None
    assert found.seed.reason.startswith("nothing had been copied at or behind offset 45: ")


def test_the_ledger_was_deleted() -> None:
    refused(replace(KNOWN, ledger_topic_id="ledger-2"), PositionDisagrees, "ledger that explains position 50 was deleted")


def test_group_and_head_differ() -> None:
    refused(replace(KNOWN, committed=49), PositionDisagrees, "group says 49, the head says 50")
    flushed = replace(KNOWN, head=replace(head(), remote_end=40))  # without transactions the group is written after the head
    assert plan(replace(flushed, committed=49)).position == 50
    refused(replace(flushed, committed=51), PositionDisagrees, "group says 51, the head says 50")


def test_the_state_topic_was_lost() -> None:
    refused(replace(KNOWN, head=None), PositionDisagrees, "the state topic lost it")


def test_records_that_no_ledger_explains() -> None:
    refused(replace(NEW, remote_end=1), PositionDisagrees, "holds records up to offset 1 that no ledger")
    advice = (
        "if another replicator copied them, say so with ferry seed; if they were produced there, set ferry.on.unexplained=local; or delete"
    )
    refused(replace(NEW, remote_end=5), PositionDisagrees, advice)


def test_records_that_were_produced_there_are_said_to_be() -> None:
    local = plan(replace(NEW, remote_end=5), replace(RULES, on_unexplained="local"))
    two_way = plan(replace(NEW, remote_end=5, guard=PartitionGuard(two_way=True)))
    for found in (local, two_way):
        assert found.seed is not None
        assert found.seed.reason == "start policy earliest; what is below 5 was produced there"


def test_aborted_remains_of_a_first_run_do_not_stop_the_second() -> None:
    assert plan(replace(NEW, remote_end=5, claimed_by="A->B")).has_work


def test_a_backfill_copies_what_is_not_covered_below_the_position() -> None:
    found = plan(replace(KNOWN, since=0, covered=((20, 30), (45, 50))))
    assert found.segments == (Segment(COPIED, 50, 100), Segment(BACKFILLED, 10, 20), Segment(BACKFILLED, 30, 45))
    assert plan(replace(KNOWN, since=0, end=25)).segments == (Segment(BACKFILLED, 10, 25),)
    assert not plan(replace(KNOWN, since=0, end=40, covered=((0, 50),))).has_work


def test_a_backfill_into_a_compacted_topic_is_refused_where_it_would_append() -> None:
    refused(replace(KNOWN, since=0, compacted=True), BackfillRefused, "is compacted")
    assert plan(replace(KNOWN, since=0, compacted=True, covered=((10, 50),))).segments == (Segment(COPIED, 50, 100),)


def test_a_seed_of_an_operator_stands_alone() -> None:
    found = seeded(KNOWN, 77, replace(RULES, run_id="run-9"), "operator: x.csv", foreign=((3, 77, 40),))
    assert (found.facts, found.position, found.segments, found.has_work) == (KNOWN, 77, (), True)
    seed = Receipt(ReceiptKind.SEED, "t", 0, str(SOURCE), "A.t", str(REMOTE), 77, 77, run_id="run-9", reason="operator: x.csv", found=40)
    assert found.seed == seed
    assert found.foreign == (replace(seed, kind=ReceiptKind.FOREIGN, upstream_start=3, downstream_end=40, found=-1),)


@pytest.mark.parametrize(("remote_end", "before", "found"), [(0, -1, -1), (0, 7, 7), (5, -1, 5), (5, 7, 7)])
def test_a_seed_says_how_far_the_remote_partition_reached_when_a_ledger_first_began_anew(remote_end: int, before: int, found: int) -> None:
    seed = seeded(replace(KNOWN, remote_end=remote_end), 77, RULES, "operator", found=before).seed
    assert seed is not None
    assert seed.found == found


def test_what_is_copied_again_is_a_series_of_its_own() -> None:
    """Until the next seed, so that compaction leaves the receipts of the first copies, whose records are still there."""
    assert plan(NEW).series == plan(KNOWN).series == ""
    taken_back = seeded(KNOWN, 0, replace(RULES, run_id="seed-9"), "operator: x.csv")
    assert taken_back.series == "seed-9"
    assert KNOWN.head
    assert plan(replace(KNOWN, head=replace(KNOWN.head, series="seed-9"))).series == "seed-9"
    restarted = plan(replace(KNOWN, remote_topic_id=UUID(int=9)), replace(RULES, on_target_recreate="restart", run_id="run-10"))
    assert (restarted.seed is not None, restarted.series) == (True, "run-10")


def test_a_seed_respects_claims() -> None:
    claimed = replace(KNOWN, claimed_by="C->B")
    found = seeded(claimed, 77, RULES, "operator: x.csv")
    assert found.failure.error == "AlreadyClaimed"
    assert (found.facts, found.seed, found.has_work) == (claimed, None, False)


@given(
    position=st.integers(0, 60),
    end=st.integers(0, 60),
    since=st.none() | st.integers(0, 60),
    log_start=st.integers(0, 60),
    cuts=st.lists(st.integers(0, 60), max_size=6, unique=True),
)
def test_segments_are_disjoint_uncovered_and_bounded(position: int, end: int, since: int | None, log_start: int, cuts: list[int]) -> None:
    edges = sorted(cuts)[: len(cuts) // 2 * 2]
    held = tuple(zip(edges[::2], edges[1::2], strict=True))
    found = plan(
        replace(KNOWN, head=head(position), committed=position, end=end, stable_end=60, since=since, log_start=log_start, covered=held)
    )
    offsets = [offset for segment in found.segments for offset in range(segment.start, segment.end)]
    wanted = set(range(position, end))
    if since is not None:
        below = set(range(max(since, log_start), min(end, position)))
        wanted |= {offset for offset in below if not any(low <= offset < high for low, high in held)}
    assert len(offsets) == len(set(offsets))
    assert set(offsets) == wanted
    assert all((segment.kind is COPIED) == (segment.start >= position) for segment in found.segments)
