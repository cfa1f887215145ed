"""Which groups a failover is about, and what the state topic says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferry.config import Flow, load_config
from ferry.errors import ArgumentError, NewerFormat
from ferry.ledger.counters import Counters
from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.recovery_record import Stage, cut_of, done_groups, stage_of
from ferry.ledger.state import CutEnds, FlowRecord, FlowState, GroupTaken, Head, RecoveryRecord, encode_state, fold_state
from ferry.recovery.options import RecoveryOptions
from ferry.recovery.readings import age_notices, narrowed, positions_of
from ferry.syncs.partition_translators import FoundMap
from ferry.syncs.translated_groups import GroupLeftOut, TranslatedGroups
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.translation.translated import TranslatedPosition, Translation
from ferry.wire.internal_records import Checkpoint

pytestmark = pytest.mark.unit

RECORD = RecoveryRecord("A->B", "failover 1", "failback 2", "failing-back", "confirmed", 5, 4)


def position(group: str, *, translated: bool = True) -> TranslatedPosition:
    return TranslatedPosition(group, "t", 0, "A.t", 5, Translation(7) if translated else None, problem="" if translated else "not copied")


def found(*positions: TranslatedPosition, left_out: tuple[GroupLeftOut, ...] = ()) -> TranslatedGroups:
    groups = tuple(dict.fromkeys(entry.group for entry in positions))
    return TranslatedGroups((*groups, "idle"), positions, left_out)


def test_groups_of_other_topics_are_left_out_by_name() -> None:
    left_out = (GroupLeftOut("share", "a share group"), GroupLeftOut("hidden", "no right", "NotAuthorized"))
    positions = position("a"), position("b", translated=False), position("__ferry-A")
    reading = narrowed(found(*positions, left_out=left_out), None, None, ())
    assert list(reading.positions) == ["a"]
    assert {entry.what for entry in reading.left_out} == {"group share", "group b", "group idle"}
    assert reading.unread == ("group hidden: NotAuthorized: no right",)
    assert reading.checkpoints_as_of is None


def test_a_group_without_a_position_because_a_cluster_did_not_answer_is_not_left_out() -> None:
    """The ledger on the other cluster was out of reach: a failback that left the group out would end without having moved it."""
    kept_back = TranslatedPosition("a", "t", 0, "t", 5, None, problem="A: timed out", unread=True)
    reading = narrowed(found(kept_back, position("b", translated=False)), None, None, ())
    assert list(reading.positions) == ["a"]
    assert "t-0: not copied" in {entry.what: entry.reason for entry in reading.left_out}["group b"]


def test_groups_are_chosen_by_their_whole_names() -> None:
    positions = position("billing"), position("billing-eu"), position("x\nbilling")
    assert list(narrowed(found(*positions), "billing", None, ()).positions) == ["billing"]
    assert list(narrowed(found(*positions), "billing.*", 0, ()).positions) == ["billing", "billing-eu"]
    assert narrowed(found(*positions), None, 0, ()).checkpoints_as_of == 0
    with pytest.raises(ArgumentError, match="'biling' matches the whole name of none of 4 groups"):
        narrowed(found(*positions), "biling", None, ())
    with pytest.raises(ArgumentError, match="no regular expression"):
        RecoveryOptions("failover", "r1", only="(")


def test_groups_that_are_done_are_named_and_left_out() -> None:
    reading = narrowed(found(position("a"), position("b")), None, None, ()).without(frozenset({"b", "gone"}))
    assert list(reading.positions) == ["a"]
    assert [entry.what for entry in reading.left_out] == ["group idle", "group b"]


def test_only_groups_of_this_movement_count_as_done() -> None:
    taken = (GroupTaken("a", "failback 2", done=True), GroupTaken("b", "failback 2"), GroupTaken("c", "failover 1", done=True))
    cut = CutEnds("t", "failover 1", (3,)), CutEnds("u", "failover 0", (4,))
    state = fold_state(encode_state(entry) for entry in (RECORD, *taken, *cut))
    assert state.recovery == RECORD
    assert done_groups(state, RECORD) == {"a"}
    assert list(cut_of(state, RECORD)) == ["t"]
    assert FlowState().recovery is None


def test_an_older_release_refuses_records_of_a_recovery() -> None:
    """It would sync groups back to where they were: it refuses their version. Flows that never failed over have none of them."""
    for entry in (RECORD, GroupTaken("a", "p"), CutEnds("t", "r", ())):
        key, value = encode_state(entry)
        assert json.loads(value)["version"] > FORMAT_VERSION
        newer = json.dumps({**json.loads(value), "version": 3}).encode()
        with pytest.raises(NewerFormat):
            fold_state([(key, newer)])
    assert json.loads(encode_state(FlowRecord("A->B", 8))[1])["version"] == FORMAT_VERSION


def test_in_an_unknown_stage_no_group_is_synced() -> None:
    assert stage_of(RECORD) is Stage.FAILING_BACK
    unknown = RecoveryRecord("A->B", "r", "p", "sailing", "", 1, 1)
    assert stage_of(unknown) is Stage.FAILING_OVER


@pytest.mark.parametrize(
    ("as_of", "said"),
    [
        (None, []),
        (0, ["not known"]),
        (100_000, ["30 s ago"]),
        (725_000, ["not known"]),
    ],
    ids=["the source answers", "no time was recorded", "a time was recorded", "by a clock that was ahead"],
)
def test_how_old_the_checkpoints_are(as_of: int | None, said: list[str]) -> None:
    notices = age_notices(as_of, 130.0)
    assert len(notices) == len(said)
    assert all(fact in notice for fact, notice in zip(said, notices, strict=True))


LINES = ("clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", "A->B.enabled = true", "groups = g.*")
COPIED = Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 0, 10, 10, ((0, 0, 10),), counters=Counters(10, transactions=1))


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    path = tmp_path / "mm2.properties"
    path.write_text("\n".join(LINES))
    return load_config(path).flow("A->B")


def test_every_partition_of_a_topic_that_a_group_reads(flow: Flow) -> None:
    """A partition that the group had never committed has no checkpoint, and one whose leader is missing no map: both are told."""
    heads = {("t", number): Head("t", number, 10, "s", "A.t", "r") for number in range(3)}
    heads["u", 0] = Head("u", 0, 10, "s", "A.u", "r")
    known = OffsetMap([COPIED], LogBounds(target_start=2, target_end=11))
    maps = dict.fromkeys((("t", 0), ("t", 1), ("u", 0)), FoundMap(known)) | {("t", 2): FoundMap(problem="no leader", unread=True)}
    checkpoints = Checkpoint("g", "A.t", 0, 7, 7), Checkpoint("other", "A.t", 0, 1, 1)
    positions, left_out = positions_of(flow, checkpoints, FlowState(heads=heads), maps)
    images = [(entry.partition, entry.upstream_offset, entry.translation and entry.translation.image) for entry in positions]
    assert images == [(0, 7, 7), (1, None, 2), (2, None, None)]
    assert [entry.problem for entry in positions] == ["", "the group has no checkpoint there", "no leader"]
    assert [entry.unread for entry in positions] == [False, False, True]
    assert [entry.group for entry in left_out] == ["other"]
