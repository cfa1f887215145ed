"""Seed files are read strictly; seeds and what is declared foreign follow from what both sides and the ledger say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from ferry.copying.partition_plan import PartitionFacts, PlanRules
from ferry.errors import ArgumentError
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.migration.positions import GivenPositions, read_seed_file
from ferry.migration.seeding import Explained, SeedPlan, TargetRecords, check_positions, explained_by_ledger, plan_foreign, plan_seeds
from ferry.wire.ranges import Range

pytestmark = pytest.mark.unit

SOURCE, REMOTE, OLD = UUID(int=1), UUID(int=2), UUID(int=3)
RULES = PlanRules("A->B", "run-1")
NEW = PartitionFacts("t", 0, SOURCE, "A.t", REMOTE, 1, 0, 0, 100, 100, 0)
KNOWN = replace(NEW, head=Head("t", 0, 50, str(SOURCE), "A.t", str(REMOTE)), committed=50, claimed_by="A->B", remote_end=40)
ALIEN = TargetRecords(defaultdict(Explained), {("t", 0): 40})
EMPTY = TargetRecords(defaultdict(Explained), {})


def write(directory: Path, text: str) -> Path:
    path = directory / "seeds.csv"
    path.write_text(text)
    return path


def replicator(position: int, topic: str = "t") -> GivenPositions:
    return GivenPositions("somebody", {(topic, 0): position})


def receipt(kind: ReceiptKind, start: int, end: int, downstream: int, *, source: UUID = SOURCE, remote: UUID = REMOTE) -> Receipt:
    runs = ((start, downstream, end - start),) if kind is ReceiptKind.COPIED else ()
    return Receipt(kind, "t", 0, str(source), "A.t", str(remote), start, end, downstream + end - start, runs)


def test_positions_by_partition(tmp_path: Path) -> None:
    found = read_seed_file(write(tmp_path, "topic,partition,position\nt,0,7\n\nt,1,8\n"))
    assert (found.positions, found.origin, found.binding) == ({("t", 0): 7, ("t", 1): 8}, "operator: seeds.csv", True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t,0,7\n", ":1:"),
        ("topic,partition,position\n", "names no partition"),
        ("topic,partition,position\nt,zero,7\n", ":2:"),
        ("topic,partition,position\nt,0\n", ":2:"),
        ("topic,partition,position\nt,0,7\nt,0,8\n", ":3:"),
    ],
)
def test_bad_files_name_their_line(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        read_seed_file(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"nothing\.csv"):
        read_seed_file(tmp_path / "nothing.csv")


@pytest.mark.parametrize("line", ["t,1,7", "u,0,7", "t,0,101", "t,0,-1"])
def test_positions_outside_the_source_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ArgumentError, match=":2:"):
        check_positions(read_seed_file(write(tmp_path, f"topic,partition,position\n{line}\n")), [NEW])


def test_every_bad_position_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"somebody: t-0: position 900 .*; somebody: t-1: position 901 "):
        check_positions(GivenPositions("somebody", {("t", 0): 900, ("t", 1): 901}), [NEW, replace(NEW, partition=1)])


def seeded(found: SeedPlan) -> list[tuple[int, list[tuple[int, int, int]]]]:
    assert all(plan.seed and plan.seed.upstream_start == plan.position for plan in found.partitions)
    return [
        (plan.position, [(entry.upstream_start, entry.upstream_end, entry.downstream_end) for entry in plan.foreign])
        for plan in found.partitions
    ]


def test_a_new_partition_is_seeded_and_external_records_are_declared() -> None:
    assert seeded(plan_seeds(replicator(30), [NEW], RULES, EMPTY)) == [(30, [])]
    assert seeded(plan_seeds(replicator(30), [NEW], RULES, ALIEN)) == [(30, [(0, 30, 40)])]
    assert seeded(plan_seeds(replicator(0), [NEW], RULES, ALIEN)) == [(0, [(0, 0, 40)])]


def test_another_replicator_never_moves_ferry_back() -> None:
    back = plan_seeds(replicator(49), [KNOWN], RULES, ALIEN)
    assert (back.partitions, back.left_out[0].what, "further than 49" in back.left_out[0].reason) == ((), "t-0", True)
    same = plan_seeds(replicator(50), [KNOWN], RULES, EMPTY)
    assert (same.partitions, ["already" in skipped.reason for skipped in same.left_out]) == ((), [True])
    assert seeded(plan_seeds(replicator(51), [KNOWN], RULES, EMPTY)) == [(51, [])]
    # An operator's word does, and so does anybody's where Ferry's own position is in doubt.
    assert seeded(plan_seeds(replace(replicator(10), binding=True), [KNOWN], RULES, EMPTY)) == [(10, [])]
    assert seeded(plan_seeds(replicator(10), [replace(KNOWN, committed=7)], RULES, EMPTY)) == [(10, [])]


def test_a_repeated_seed_remembers_what_the_first_one_found() -> None:
    """The second one replaces the first one in the ledger, which by then has heads that explain it."""
    given = replace(replicator(50), binding=True)
    (first,) = plan_seeds(given, [KNOWN], RULES, EMPTY).partitions
    assert first.seed
    assert first.seed.found == 40
    ledger = explained_by_ledger([KNOWN], [first.seed])
    (second,) = plan_seeds(given, [replace(KNOWN, remote_end=0)], RULES, TargetRecords(ledger, {})).partitions
    assert second.seed
    assert second.seed.found == 40


def test_what_has_no_position_or_no_flow_is_named() -> None:
    others = [NEW, replace(NEW, partition=1), replace(KNOWN, partition=2)]
    found = plan_seeds(GivenPositions("somebody", {("t", 0): 5, ("u", 0): 7}), others, RULES, EMPTY)
    assert [skipped.what for skipped in found.left_out] == ["u-0", "t-1"]
    assert "start policy (earliest)" in found.left_out[1].reason
    alien = plan_seeds(GivenPositions("somebody", {}), others, RULES, ALIEN)
    assert (alien.partitions, "holds records" in alien.left_out[0].reason) == ((), True)


def test_what_was_copied_after_the_last_offset_is_copied_again() -> None:
    """Else the claim that the other partition's seed brings would let it begin by the start policy, which may be the end."""
    others = [replace(NEW, log_start=3, start=100), replace(NEW, partition=1, remote_partitions=2)]
    found = plan_seeds(GivenPositions("somebody", {("t", 1): 5}), others, RULES, ALIEN)
    assert sorted(seeded(found)) == [(3, [(0, 3, 40)]), (5, [])]
    with pytest.raises(ArgumentError, match=r"somebody must also say where these go on.*t-0 \(its remote partition ends at 40\)"):
        plan_seeds(GivenPositions("somebody", {("t", 1): 5}, binding=True), others, RULES, ALIEN)


def test_foreign_records_without_a_position() -> None:
    (new,) = plan_foreign([replace(NEW, start=20, remote_end=40)], RULES, ALIEN).partitions
    assert (new.position, new.seed is not None, new.foreign[0].upstream_end, new.segments) == (20, True, 20, ())
    (known,) = plan_foreign([KNOWN], RULES, ALIEN).partitions
    assert (known.position, known.seed, known.foreign[0].downstream_end, known.has_work) == (50, None, 40, True)
    (doubtful,) = plan_foreign([replace(KNOWN, committed=7)], RULES, ALIEN).partitions
    assert (doubtful.failure is not None, doubtful.has_work) == (True, False)
    assert plan_foreign([KNOWN], RULES, EMPTY).partitions == ()


def test_only_what_no_receipt_settles_is_declared() -> None:
    def declared(*ranges: Range) -> tuple[tuple[int, int, int], ...]:
        return TargetRecords({("t", 0): Explained(ranges)}, {("t", 0): 7}).foreign(("t", 0), 100)

    assert declared() == ((0, 100, 7),)
    assert declared((0, 60)) == ((60, 100, 7),)
    assert declared((20, 60)) == ((0, 20, 7), (60, 100, 7))
    assert declared((0, 100)) == ((100, 100, 7),)


def test_what_the_ledger_explains_of_a_remote_log() -> None:
    copied = receipt(ReceiptKind.COPIED, 10, 20, 5)
    assert explained_by_ledger([NEW], [copied]) == {("t", 0): Explained(((10, 20),), ((5, 15),))}
    assert explained_by_ledger([NEW], [copied, receipt(ReceiptKind.FOREIGN, 0, 10, -5)]) == {("t", 0): Explained(((0, 20),), ((0, 15),))}
    assert explained_by_ledger([NEW], [receipt(ReceiptKind.LOSS, 0, 10, -11)]) == {("t", 0): Explained(((0, 10),))}
    # Another remote topic's receipts say nothing; another source topic's explain records, but no offsets.
    assert explained_by_ledger([NEW], [receipt(ReceiptKind.COPIED, 10, 20, 5, remote=OLD)]) == {("t", 0): Explained()}
    assert explained_by_ledger([NEW], [receipt(ReceiptKind.COPIED, 10, 20, 5, source=OLD)]) == {("t", 0): Explained((), ((5, 15),))}


def test_what_was_copied_before_the_source_topic_had_an_id_is_declared() -> None:
    """Else it counts as missing, and a backfill copies it a second time."""
    none = UUID(int=0)
    before = receipt(ReceiptKind.COPIED, 0, 50, 0, source=none)
    assert explained_by_ledger([NEW], [before]) == {("t", 0): Explained()}
    assert explained_by_ledger([replace(NEW, topic_id=none)], [before]) == {("t", 0): Explained(((0, 50),), ((0, 50),))}
