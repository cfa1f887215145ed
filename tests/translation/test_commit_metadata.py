"""Which commit metadata go with a translated offset."""

from __future__ import annotations

import base64
import struct

import pytest

from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.translation.commit_metadata import carried
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.translation.translated import Inexact, Translation

pytestmark = pytest.mark.unit

TIME = 1_795_898_151_178


def streams(version: int, processors: bytes = b"") -> str:
    return base64.b64encode(bytes([version]) + struct.pack(">q", TIME) + processors).decode()


# As Kafka Streams writes it for one processor that has emitted windows.
PROCESSORS = struct.pack(">ii5sq", 1, 5, b"count", TIME)


@pytest.mark.parametrize("metadata", ["", "\0", streams(1), streams(2), streams(2, PROCESSORS), "AgAAAaIj35AK"])
def test_none_and_those_of_kafka_streams_go_with_every_offset(metadata: str) -> None:
    assert carried(metadata, Translation(5), unshifted=False) == (metadata, Translation(5))
    assert carried(metadata, None, unshifted=False) == (metadata, None)


def test_what_earlier_versions_committed_goes_nowhere_and_counts_nothing() -> None:
    assert carried("ferry:0.1.0:2026-01-01T00:00:00+00:00", Translation(5), unshifted=False) == ("", Translation(5))


@pytest.mark.parametrize("metadata", ["bAAPfn8A", "theirs", "theirs\0", "AQ==", streams(3), "näher", '{"offset": 6}'])
def test_others_only_where_offsets_do_not_shift(metadata: str) -> None:
    assert carried(metadata, Translation(5), unshifted=True) == (metadata, Translation(5))
    assert carried(metadata, Translation(5), unshifted=False) == ("", Translation(5, Inexact.METADATA))
    ahead = Translation(5, Inexact.AHEAD, 2)
    assert carried(metadata, ahead, unshifted=False) == ("", ahead)
    assert carried(metadata, None, unshifted=False) == ("", None)


def copied(*runs: tuple[int, int, int]) -> OffsetMap:
    """A map of one transaction for each run."""
    receipts = [
        Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", up, up + n, down + n, ((up, down, n),), counters=Counters(n, transactions=1))
        for up, down, n in runs
    ]
    return OffsetMap(receipts, LogBounds(target_end=receipts[-1].downstream_end + 1))


@pytest.mark.parametrize(
    ("runs", "offset", "end", "unshifted"),
    [
        ([(0, 0, 10)], 5, 10, True),
        ([(0, 0, 10)], 10, 10, True),
        # Records that are not copied yet come behind a commit marker, so metadata may say something about another record.
        ([(0, 0, 10)], 5, 11, False),
        ([(0, 0, 10), (10, 11, 5)], 5, 15, False),
        ([(0, 0, 10), (10, 11, 5)], 12, 15, False),
        # Offsets that shift and shift back: the target has a marker at 10, the source a gap at 12.
        ([(0, 0, 10), (10, 11, 2), (13, 13, 5)], 5, 18, False),
        ([(0, 0, 10), (10, 11, 2), (13, 13, 5)], 13, 18, True),
    ],
)
def test_where_offsets_do_not_shift(runs: list[tuple[int, int, int]], offset: int, end: int, unshifted: bool) -> None:
    assert copied(*runs).unshifted(offset, end) is unshifted
