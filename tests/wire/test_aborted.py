from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.aborted import ABORT, AbortedTracker, control_type
from ferry.wire.batch import MalformedBatch, iterate_batches

pytestmark = pytest.mark.unit

COMMIT = 1


def dropped(data: bytes, aborted: list[tuple[int, int]]) -> list[int]:
    tracker = AbortedTracker(aborted)
    return [header.base_offset for header, view in iterate_batches(memoryview(data)) if tracker.drop(header, view)]


def test_the_abort_marker_ends_the_range_of_its_producer_only(kafka: Any, rows_at: Any) -> None:
    def data(offset: int, producer_id: int, attributes: int = 0x10) -> bytes:
        return kafka.build(rows_at([offset]), producer_id=producer_id, attributes=attributes)

    log = b"".join(
        [
            data(0, 1),  # committed
            kafka.control(1, 1, COMMIT),
            data(2, 1),  # aborted
            data(3, 2),  # committed
            data(4, 3, attributes=0),  # an idempotent producer without transactions
            kafka.control(5, 2, COMMIT),
            data(6, 1),  # still aborted
            data(7, -1, attributes=0),
            kafka.control(8, 1, ABORT),
            data(9, 1),  # committed
            kafka.control(10, 1, COMMIT),
        ]
    )
    assert dropped(log, [(1, 2)]) == [2, 6]
    assert dropped(log, []) == []
    assert dropped(log, [(3, 0)]) == []


def test_a_fetch_that_starts_within_an_aborted_transaction(kafka: Any, rows_at: Any) -> None:
    log = kafka.build(rows_at([50]), producer_id=1, attributes=0x10) + kafka.control(51, 1, ABORT)
    assert dropped(log, [(1, 10)]) == [50]


def test_the_first_producer_id_of_a_cluster_is_0(kafka: Any, rows_at: Any) -> None:
    log = kafka.build(rows_at([0]), producer_id=0, attributes=0x10) + kafka.control(1, 0, ABORT)
    assert dropped(log, [(0, 0)]) == [0]


def test_two_aborted_transactions_of_one_producer_given_in_any_order(kafka: Any, rows_at: Any) -> None:
    log = b"".join(
        kafka.build(rows_at([at]), producer_id=1, attributes=0x10) + kafka.control(at + 1, 1, kind)
        for at, kind in ((0, ABORT), (2, COMMIT), (4, ABORT), (6, COMMIT))
    )
    assert dropped(log, [(1, 4), (1, 0)]) == [0, 4]


@pytest.mark.parametrize("kind", [ABORT, COMMIT, 5])
def test_the_control_type_is_in_the_key(kafka: Any, kind: int) -> None:
    assert control_type(memoryview(kafka.control(3, 1, kind))) == kind


def test_a_control_batch_that_compaction_emptied_has_no_type(kafka: Any) -> None:
    assert control_type(memoryview(kafka.build([], base_offset=3, last_offset=3, attributes=0x30, producer_id=1))) is None


@given(st.binary(min_size=1, max_size=30))
def test_random_control_records_are_malformed_at_worst(body: bytes) -> None:
    try:
        kind = control_type(memoryview(bytes(61) + body))
    except MalformedBatch:
        return
    assert isinstance(kind, int)


def test_idle_when_nothing_can_be_dropped_any_more(kafka: Any, rows_at: Any) -> None:
    tracker = AbortedTracker([(1, 0)])
    assert not tracker.idle
    for header, view in iterate_batches(memoryview(kafka.build(rows_at([0]), producer_id=1, attributes=0x10) + kafka.control(1, 1, ABORT))):
        assert not tracker.idle
        tracker.drop(header, view)
    assert tracker.idle
