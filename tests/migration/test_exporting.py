"""The way back: what MirrorMaker 2 needs to go on after Ferry, and what it must not be told."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from ferry.copying.partition_plan import PartitionFacts, PlanRules
from ferry.ledger.state import Head
from ferry.migration.exporting import OffsetExport, plan_export
from ferry.wire.connect_offsets import SOURCE_CONNECTOR, SourcePartition

pytestmark = pytest.mark.unit

SOURCE, REMOTE = UUID(int=1), UUID(int=2)
NEW = PartitionFacts("t", 0, SOURCE, "A.t", REMOTE, 9, 0, 0, 100, 100, 0)
RULES = PlanRules("A->B", "run-1")
WHERE = SourcePartition(SOURCE_CONNECTOR, "A", "t", 0)


def at(position: int, partition: int = 0, source: UUID = SOURCE) -> PartitionFacts:
    head = Head("t", partition, position, str(source), "A.t", str(REMOTE))
    return replace(NEW, partition=partition, head=head, committed=position, claimed_by="A->B")


@pytest.mark.parametrize(("mm2", "offset"), [(None, 49), (10, 49), (48, 49), (49, None), (50, None)])
def test_mm2_goes_on_at_ferrys_position_and_never_back(mm2: int | None, offset: int | None) -> None:
    offsets, left_out = plan_export((at(50),), RULES, "A", SOURCE_CONNECTOR, {} if mm2 is None else {WHERE: mm2})
    assert offsets == (() if offset is None else ((WHERE, offset),))
    assert [skipped.what for skipped in left_out] == ([] if offset is not None else ["t-0"])


def test_a_partition_without_records_gets_an_offset_that_mm2_ignores() -> None:
    offsets, _ = plan_export((at(0),), RULES, "A", SOURCE_CONNECTOR, {})
    export = OffsetExport("A->B", "o", offsets)
    assert export.records == ((b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]', b'{"offset":-1}'),)


def test_positions_that_are_not_clear_are_left_out() -> None:
    offsets, left_out = plan_export((NEW, at(7, 1, UUID(int=3))), RULES, "A", SOURCE_CONNECTOR, {})
    assert (offsets, [(skipped.what, skipped.reason.split(":")[0]) for skipped in left_out]) == (
        (),
        [("t-0", "Ferry has not copied it"), ("t-1", "SourceRecreated")],
    )
