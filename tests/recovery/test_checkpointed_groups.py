"""Where groups of a source that is away stood, by checkpoints and the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config import Flow, load_config
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import FlowState, Head
from ferry.recovery.checkpointed_groups import positions_of
from ferry.syncs.offset_maps import OffsetMaps
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.wire.internal_records import Checkpoint

pytestmark = pytest.mark.unit

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
    maps = OffsetMaps({("t", 0): known, ("t", 1): known, ("u", 0): known}, {("t", 2): "no leader"}, frozenset({("t", 2)}))
    checkpoints = Checkpoint("g", "A.t", 0, 7, 7), Checkpoint("other", "A.t", 0, 1, 1)
    positions, left_out = positions_of(flow, checkpoints, FlowState(heads=heads), maps)
    images = [(entry.partition, entry.upstream_offset, entry.translation and entry.translation.image) for entry in positions]
    assert images == [(0, 7, 7), (1, None, 2), (2, None, None)]
    assert [entry.problem for entry in positions] == ["", "the group has no checkpoint there", "no leader"]
    assert [entry.unread for entry in positions] == [False, False, True]
    assert [entry.group for entry in left_out] == ["other"]
