"""A cursor passes over excluded offsets: it fetches nothing there, and counts them in its receipts."""

from __future__ import annotations

import pytest
from tests.copying.cursors import BACKFILLED, COPIED, guarded, unit

from ferry.clusters.logs.fetching import FetchPosition
from ferry.copying.cursor import BYTES_AN_OFFSET, SMALLEST_FETCH_BYTES
from ferry.copying.lane_messages import Segment
from ferry.errors import SourceTruncated
from ferry.ledger.receipts import ReceiptKind

pytestmark = pytest.mark.unit


def test_excluded_offsets_are_settled_without_being_fetched() -> None:
    cursor = guarded(Segment(COPIED, 10, 100), excluded=((0, 40), (41, 80), (90, 300)))
    cursor.pass_excluded()
    assert (cursor.fetched, cursor.fetch_position().last_epoch, cursor.fetch_position().limit) == (40, -1, SMALLEST_FETCH_BYTES)
    cursor.settle_fetched()
    assert (cursor.position, cursor.head("run", "ledger").source_epoch) == (40, -1), "an old epoch here would look like a truncated log"
    cursor.fetched_to(41, 6)
    cursor.pass_excluded()
    assert cursor.fetched == 80
    cursor.accept(unit(80, 85, epoch=6), 500)
    cursor.fetched_to(90, 6)
    cursor.pass_excluded()
    assert (cursor.fetched, cursor.wants_fetch) == (100, False)
    cursor.settle_fetched()
    (receipt,) = cursor.receipts("run")
    assert (receipt.upstream_start, receipt.upstream_end, receipt.runs) == (10, 100, ((80, 500, 5),))
    assert (receipt.counters.records, receipt.counters.from_target) == (5, 30 + 39 + 10)
    assert cursor.done
    cursor.pass_excluded()
    assert (cursor.done, cursor.fetched) == (True, 100)
    cursor.revert()
    assert cursor.fetched == 10


def test_in_front_of_what_is_excluded_little_is_fetched() -> None:
    cursor = guarded(Segment(COPIED, 10, 100), excluded=((20, 40),))
    cursor.pass_excluded()
    assert cursor.fetch_position() == FetchPosition("t", 0, 10, 4, 10 * BYTES_AN_OFFSET)
    cursor.fetched_to(19, 5)
    assert cursor.fetch_position() == FetchPosition("t", 0, 19, 5, SMALLEST_FETCH_BYTES)
    cursor.fetched_to(20, 5)
    cursor.fail(SourceTruncated("t", 0, "gone"))
    cursor.pass_excluded()
    assert cursor.fetched == 20


def test_a_backfill_passes_excluded_offsets_and_leaves_the_position() -> None:
    cursor = guarded(Segment(COPIED, 50, 60), Segment(BACKFILLED, 0, 20), excluded=((0, 30),))
    cursor.fetched_to(60, 5)
    cursor.settle_fetched()
    cursor.pass_excluded()
    cursor.settle_fetched()
    assert [(entry.kind, entry.counters.from_target) for entry in cursor.receipts("run")] == [(COPIED, 0), (BACKFILLED, 20)]
    assert (cursor.position, cursor.head("run", "ledger").source_epoch, cursor.done) == (60, 5, True)


@pytest.mark.parametrize(
    ("excluded", "log_start", "ranges"),
    [
        (((10, 40),), 40, [(COPIED, 10, 40, 30)]),  # nothing of one's own is lost
        (((10, 40),), 45, [(COPIED, 10, 40, 30), (ReceiptKind.LOSS, 40, 45, 0)]),
        (((15, 20), (25, 40)), 40, [(ReceiptKind.LOSS, 10, 25, 0), (COPIED, 25, 40, 15)]),
    ],
)
def test_what_retention_took_is_a_loss_only_where_it_was_not_excluded(
    excluded: tuple[tuple[int, int], ...], log_start: int, ranges: list[tuple[ReceiptKind, int, int, int]]
) -> None:
    cursor = guarded(Segment(COPIED, 10, 100), excluded=excluded)
    cursor.lose(log_start, "gone")
    receipts = cursor.receipts("run")
    assert [(entry.kind, entry.upstream_start, entry.upstream_end, entry.counters.from_target) for entry in receipts] == ranges
    assert (cursor.fetched, cursor.position) == (log_start, log_start)
    inside = [entry.reason for entry in receipts if entry.kind is ReceiptKind.LOSS and entry.upstream_start < 15]
    assert inside in ([], ["gone; 5 of these offsets held what the flow in the other direction wrote"])
