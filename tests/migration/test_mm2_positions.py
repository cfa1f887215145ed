"""What is taken from an offsets topic of Connect."""

from __future__ import annotations

import pytest

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.errors import ArgumentError
from ferry.migration.mm2_positions import ConnectOffsets, choose_connector, in_transactions
from ferry.wire.connect_offsets import SourcePartition, encode_source_key

pytestmark = pytest.mark.unit

MINE = SourcePartition("MirrorSourceConnector", "A", "t", 0)
OTHER = SourcePartition("mine", "A", "t", 0)
FOREIGN = SourcePartition("MirrorSourceConnector", "C", "t", 0)


def test_the_one_connector_of_the_source() -> None:
    assert choose_connector([MINE, FOREIGN], "A", "o", None) == "MirrorSourceConnector"
    assert choose_connector([MINE, OTHER], "A", "o", "mine") == "mine"


def test_several_connectors_are_listed() -> None:
    with pytest.raises(ArgumentError, match="choose one with --connector: MirrorSourceConnector, mine"):
        choose_connector([MINE, OTHER], "A", "o", None)


def test_a_connector_that_is_not_there() -> None:
    with pytest.raises(ArgumentError, match=r"--connector x: o has no offsets of it from A; it has those of MirrorSourceConnector"):
        choose_connector([MINE], "A", "o", "x")
    with pytest.raises(ArgumentError, match=r"from B; it has those from A, C"):
        choose_connector([MINE, FOREIGN], "B", "o", None)
    with pytest.raises(ArgumentError, match=r"no source at all"):
        choose_connector([], "B", "o", None)


@pytest.mark.parametrize(
    ("offsets", "end", "expected"),
    [([0, 1], 3, True), ([0, 1], 2, False), ([0, 2], 4, True), ([0, 2], 3, False)],
)
def test_a_control_record_follows_what_a_transaction_wrote(offsets: list[int], end: int, expected: bool) -> None:
    records = tuple(InternalRecord(4, offset, 0, encode_source_key(MINE), b"") for offset in offsets)
    assert in_transactions(ConnectOffsets("o", records, {4: end, 5: 0}), {MINE}) is expected
    assert in_transactions(ConnectOffsets("o", (*records, InternalRecord(4, end, 0, b"another", b"")), {4: end + 1}), {MINE}) is expected
