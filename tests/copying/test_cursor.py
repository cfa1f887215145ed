"""A cursor keeps committed <= settled <= fetched whatever happens, and its receipts tell exactly what was accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.copying.cursors import BACKFILLED, COPIED, REMOTE_ID, TOPIC_ID, seed_at, task, unit

from ferry import clock
from ferry.clusters.logs.fetching import FetchPosition
from ferry.copying.cursor import PartitionCursor
from ferry.copying.lane_messages import Failure, PartitionOutcome, Segment
from ferry.errors import ClusterUnreachable, PartitionUnavailable, SourceTruncated
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head

pytestmark = pytest.mark.unit


def test_a_transaction_accepted_and_confirmed() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30)))
    cursor.fetched_to(30, 5)
    cursor.accept(unit(0, 10), 100)
    cursor.accept(unit(10, 25, runs=((10, 5), (20, 5))), 110)
    assert (cursor.position, cursor.settled, cursor.committed_position) == (25, 25, 0)
    assert cursor.touched
    receipts = cursor.receipts("run")
    assert [(entry.kind, entry.upstream_start, entry.upstream_end, entry.downstream_end) for entry in receipts] == [(COPIED, 0, 25, 120)]
    assert receipts[0].runs == ((0, 100, 15), (20, 115, 5))
    assert (receipts[0].counters.records, receipts[0].min_timestamp, receipts[0].max_timestamp) == (20, 1_000, 1_025)
    assert cursor.head("run", "ledger") == Head("t", 0, 25, str(TOPIC_ID), "A.t", str(REMOTE_ID), "ledger", 3, "run", record_bytes=1)
    cursor.confirm()
    assert (cursor.committed_position, cursor.touched) == (25, False)
    cursor.settle_fetched()
    assert cursor.position == 30
    assert [(entry.upstream_start, entry.upstream_end, entry.counters.records) for entry in cursor.receipts("run")] == [(25, 30, 0)]


def test_a_receipt_is_about_one_leader_epoch() -> None:
    """If the source loses the later records in an unclean election, the receipt of the earlier ones stays."""
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30)))
    cursor.fetched_to(30, 5)
    for start, epoch in ((0, 3), (10, 3), (20, 5)):
        cursor.accept(unit(start, start + 10, epoch=epoch), 100 + start)
    receipts = [(entry.upstream_start, entry.upstream_end, entry.downstream_end, entry.source_epoch) for entry in cursor.receipts("run")]
    assert receipts == [(0, 20, 120, 3), (20, 30, 130, 5)]


def test_the_head_says_how_large_the_last_records_were() -> None:
    def told() -> int:
        cursor.receipts("run")
        return cursor.head("run", "ledger").record_bytes

    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 60)), record_bytes=7))
    assert told() == 7
    cursor.fetched_to(60, 5)
    cursor.accept(replace(unit(0, 10), payload=memoryview(b"x" * 48)), 100)
    assert told() == 5
    cursor.confirm()
    cursor.settle_fetched()
    assert told() == 5, "nothing but control records"


def test_revert_goes_back_to_what_was_confirmed() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30), seed=seed_at(0)))
    cursor.fetched_to(20, 1)
    cursor.accept(unit(0, 20), 7)
    cursor.revert()
    assert (cursor.fetched, cursor.settled, cursor.position, cursor.committed_position) == (0, 0, 0, 0)
    assert [entry.kind for entry in cursor.receipts("run")] == [ReceiptKind.SEED]
    cursor.fetched_to(20, 1)
    cursor.accept(unit(0, 20), 50)
    assert [(entry.kind, entry.runs) for entry in cursor.receipts("run")] == [(ReceiptKind.SEED, ()), (COPIED, ((0, 50, 20),))]
    cursor.confirm()
    assert cursor.receipts("run") == []


def test_a_partition_without_a_declaration_is_untouched_until_something_is_settled() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 7, 30), position=7), last_epoch=4))
    cursor.settle_fetched()
    assert (cursor.touched, cursor.wants_fetch, cursor.doubted, cursor.not_before, cursor.troubled_since) == (False, True, False, 0, 0)
    assert cursor.fetch_position() == FetchPosition("t", 0, 7, 4, None)
    cursor.troubled_since = 9.0
    cursor.fetched_to(12, 6)
    assert (cursor.fetch_position(), cursor.troubled_since) == (FetchPosition("t", 0, 12, 6, None), 0)


def test_a_backfill_alone_begins_at_its_range_and_leaves_the_position() -> None:
    cursor = PartitionCursor(replace(task(Segment(BACKFILLED, 5, 10), Segment(BACKFILLED, 20, 30), position=40), last_epoch=4))
    assert (cursor.settled, cursor.position) == (5, 40)
    assert cursor.fetch_position() == FetchPosition("t", 0, 5, -1, None), "the epoch before the position is not the one before this offset"
    cursor.fetched_to(10, 2)
    cursor.accept(unit(5, 10, epoch=2), 0)
    cursor.settle_fetched()
    assert cursor.fetch_position() == FetchPosition("t", 0, 20, -1, None)
    cursor.lose(25, "gone")
    assert cursor.fetch_position() == FetchPosition("t", 0, 25, -1, None)
    assert (cursor.head("run", "ledger").position, cursor.head("run", "ledger").source_epoch) == (40, 4)


def test_a_receipt_counts_every_treatment_and_how_old_records_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "time_ns", lambda: 5_000_999_999)
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 100)), excluded=((90, 95),), series="s"))
    cursor.fetched_to(100, 8)

    def accept(kind: str, start: int, base: int, times: tuple[int, int], epoch: int, **more: Any) -> None:
        taken = replace(unit(start, start + 10, epoch=epoch), kind=kind, min_timestamp=times[0], max_timestamp=times[1], **more)
        cursor.accept(taken, base)

    accept("forwarded", 0, 100, (-1, -1), 6)
    accept("forwarded", 10, 110, (2_000, 3_000), 6)
    accept("reframed", 20, 120, (1_000, 1_000), 6)
    monkeypatch.setattr(clock, "time_ns", lambda: 6_000_000_000)
    accept("reframed", 30, 130, (-1, -1), 6)
    # Two source records are dropped, one becomes three records.
    accept("handled", 40, 140, (0, 4_000), 6, count=10, runs=((40, 3), (44, 5)), places=(0, 5), dropped=2)
    accept("handled", 50, 150, (500, 500), 6, count=4, runs=((50, 4),), places=(0,), dropped=6)
    accept("handled", 60, 160, (500, 500), 6, count=11, runs=((60, 10),), places=(1,), dropped=0)
    monkeypatch.setattr(clock, "time_ns", lambda: 7_000_000_000)
    cursor.settle_fetched()
    ages = [MinMeanMax(2_000, 2_500, 3_000, 10), MinMeanMax(4_000, 4_000, 4_000, 10), MinMeanMax(2_000, 4_000, 6_000, 10)]
    ages += [MinMeanMax(5_500, 5_500, 5_500, 4), MinMeanMax(5_500, 5_500, 5_500, 11)]
    mean = sum(age.mean * age.count for age in ages) / 45
    (receipt,) = cursor.receipts("run-7")
    assert receipt.counters.record_age_ms is not None
    assert receipt.counters.replication_latency_ms is not None
    assert receipt == Receipt(
        COPIED,
        "t",
        0,
        str(TOPIC_ID),
        "A.t",
        str(REMOTE_ID),
        0,
        100,
        downstream_end=171,
        runs=((0, 100, 43), (44, 145, 5), (50, 150, 4), (60, 161, 10)),
        counters=Counters(
            records=65,
            bytes=70,
            transactions=1,
            forwarded=2,
            reframed=2,
            handled=3,
            dropped=8,
            added=3,
            from_target=5,
            record_age_ms=MinMeanMax(2_000, pytest.approx(mean), 6_000, 45),
            replication_latency_ms=MinMeanMax(
                3_000, pytest.approx(7_000 - (10 * 2_500 + 10 * 1_000 + 10 * 2_000 + 15 * 500) / 45), 7_000, 45
            ),
        ),
        written=((140, 150), (160, 171)),
        min_timestamp=0,
        max_timestamp=4_000,
        # Until the moment of the receipt, of all records that bear a time.
        source_epoch=6,
        run_id="run-7",
        series="s",
    )


def test_a_receipt_of_records_without_times_says_so() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 10)))
    cursor.fetched_to(10, -1)
    cursor.accept(replace(unit(0, 10, epoch=-1), min_timestamp=-1, max_timestamp=-1), 0)
    (receipt,) = cursor.receipts("run")
    assert (receipt.min_timestamp, receipt.max_timestamp, receipt.counters.record_age_ms, receipt.counters.replication_latency_ms) == (
        -1,
        -1,
        None,
        None,
    )
    assert (receipt.source_epoch, cursor.head("run", "ledger").source_epoch) == (-1, -1)


def test_an_expired_range_is_a_loss_and_closes_what_was_copied_before() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30)))
    cursor.fetched_to(10, 1)
    cursor.accept(unit(0, 10), 0)
    cursor.lose(25, "gone")
    cursor.fetched_to(30, 2)
    cursor.accept(unit(25, 30), 10)
    found = [(entry.kind, entry.upstream_start, entry.upstream_end, entry.reason) for entry in cursor.receipts("run")]
    assert found == [(COPIED, 0, 10, ""), (ReceiptKind.LOSS, 10, 25, "gone"), (COPIED, 25, 30, "")]
    assert cursor.position == 30


def test_everything_expired() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 5, 30), position=5))
    cursor.lose(1_000, "gone")
    assert [(entry.kind, entry.upstream_start, entry.upstream_end) for entry in cursor.receipts("r")] == [(ReceiptKind.LOSS, 5, 30)]
    assert (cursor.done, cursor.position) == (True, 30)
    assert cursor.head("run", "ledger").source_epoch == -1


def test_behind_what_expired_no_epoch_is_known() -> None:
    """An older one would look like a truncated log."""
    cursor = PartitionCursor(replace(task(Segment(COPIED, 5, 30), position=5), last_epoch=7))
    cursor.doubted = True
    assert not cursor.wants_fetch
    cursor.lose(12, "gone")
    assert (cursor.wants_fetch, cursor.fetch_position()) == (True, FetchPosition("t", 0, 12, -1, None))
    assert (cursor.doubted, cursor.head("run", "ledger").source_epoch) == (False, -1)


def test_a_backfilled_segment_moves_no_position_and_an_expired_one_is_skipped() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 40, 50), Segment(BACKFILLED, 0, 10), Segment(BACKFILLED, 20, 30), position=40))
    cursor.fetched_to(50, 1)
    cursor.accept(unit(40, 50), 0)
    cursor.settle_fetched()
    assert (cursor.fetched, cursor.position) == (0, 50)
    cursor.fetched_to(10, 1)
    cursor.accept(unit(0, 10), 10)
    cursor.settle_fetched()
    cursor.lose(25, "gone")
    cursor.fetched_to(30, 1)
    cursor.accept(unit(25, 30), 20)
    cursor.settle_fetched()
    assert (cursor.done, cursor.position) == (True, 50)
    found = [(entry.kind, entry.upstream_start, entry.upstream_end) for entry in cursor.receipts("run")]
    assert found == [(COPIED, 40, 50), (BACKFILLED, 0, 10), (ReceiptKind.SKIPPED, 20, 25), (BACKFILLED, 25, 30)]


def test_a_failed_partition_keeps_what_is_settled_and_takes_no_more() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30), seed=seed_at(0)))
    cursor.fetched_to(30, 1)
    cursor.accept(unit(0, 10), 0)
    cursor.fail(SourceTruncated("t", 0, "first"))
    cursor.fail(PartitionUnavailable("t", 0, "second"))
    cursor.settle_fetched()
    assert (cursor.done, cursor.wants_fetch, cursor.position) == (True, False, 10)
    assert cursor.failure is not None
    assert (cursor.failure.error, cursor.failure.problem, cursor.failure.passing) == ("SourceTruncated", "first", False)
    assert [(entry.kind, entry.upstream_end) for entry in cursor.receipts("run")] == [(ReceiptKind.SEED, 0), (COPIED, 10)]
    cursor.confirm()
    assert cursor.outcome() == PartitionOutcome("t", 0, 10, Failure("SourceTruncated", "first", passing=False))
    assert not cursor.touched


def test_a_failure_tells_what_kind_it_is_and_whether_it_may_pass() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30)))
    cursor.fail(ClusterUnreachable("cluster A: gone"))
    assert cursor.failure == Failure("ClusterUnreachable", str(ClusterUnreachable("cluster A: gone")), passing=True)


def test_a_failed_partition_that_copied_nothing_writes_no_seed() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 30), seed=seed_at(0)))
    assert cursor.touched
    cursor.fail(SourceTruncated("t", 0, "gone"))
    assert not cursor.touched


def test_a_seed_alone_is_work() -> None:
    cursor = PartitionCursor(task(position=12, seed=seed_at(12)))
    assert (cursor.done, cursor.touched, cursor.wants_fetch) == (True, True, False)
    assert cursor.head("run", "ledger").position == 12
    cursor.confirm()
    assert not cursor.touched


def test_accepting_behind_the_last_segment_is_a_defect() -> None:
    cursor = PartitionCursor(task(position=3))
    with pytest.raises(RuntimeError, match="t-0"):
        cursor.accept(unit(3, 4), 0)


def test_receipts_and_head_bear_the_series_that_the_driver_named() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 10), seed=seed_at(0)), series="seed-9"))
    cursor.fetched_to(10, 3)
    cursor.accept(unit(0, 10), 100)
    assert [entry.series for entry in cursor.receipts("run")] == ["", "seed-9"], "the newest declaration counts, so it replaces older ones"
    assert cursor.head("run", "ledger").series == "seed-9"
