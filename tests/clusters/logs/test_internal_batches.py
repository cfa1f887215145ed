"""Internal records travel in few batches that any reader of Kafka's format understands, and can be divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from ferry.clusters.logs.internal_batches import BATCH_BYTES, RECORD_OVERHEAD_BYTES, InternalBatch, internal_batches, split_batch

pytestmark = pytest.mark.unit

RECORDS = st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=50)), min_size=1, max_size=30)


def test_a_batch_says_who_wrote_it_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.clock.time_ns", lambda: 1_700_000_000_123_999_999)
    (whole,) = internal_batches([(b"a", bytes(5_000)), (b"b", None)])
    for batch in (whole, *split_batch(whole)):
        for transactional in (True, False):
            read = MemoryRecords(b"".join(batch.encode(7, 3, 11, transactional))).next_batch()
            assert read is not None
            assert (read.magic, read.compression_type, read.timestamp_type, read.is_transactional) == (2, 0, 0, transactional)
            assert (read.producer_id, read.producer_epoch, read.base_sequence, read.validate_crc()) == (7, 3, 11, True)
            assert {record.timestamp for record in read} == {1_700_000_000_123}


def records_of(encoded: tuple[bytes]) -> list[tuple[bytes, bytes | None]]:
    batch = MemoryRecords(b"".join(encoded)).next_batch()
    assert batch is not None
    return [(record.key, record.value) for record in batch]


@given(RECORDS)
def test_encoded_records_read_back_in_order(records: list[tuple[bytes, bytes | None]]) -> None:
    (batch,) = internal_batches(records)
    assert batch.count == len(records)
    assert records_of(batch.encode(7, 3, 11, True)) == records


@given(RECORDS)
def test_halves_hold_the_same_records(records: list[tuple[bytes, bytes | None]]) -> None:
    (batch,) = internal_batches([*records, (b"k", b"v")])
    first, second = split_batch(batch)
    assert first.records + second.records == batch.records
    assert first.count
    assert second.count


def test_large_records_are_spread_over_batches_in_order() -> None:
    records = [(b"%d" % number, b"x" * (BATCH_BYTES // 3)) for number in range(10)]
    batches = list(internal_batches(records))
    assert [record for batch in batches for record in batch.records] == records
    assert all(batch.size <= BATCH_BYTES for batch in batches)
    assert len(batches) == 5


def test_a_batch_is_filled_to_the_last_byte() -> None:
    weight = BATCH_BYTES // 4
    records = [(b"k", b"x" * (weight - RECORD_OVERHEAD_BYTES - 1))] * 8
    first, second = internal_batches(records)
    assert [(batch.count, batch.size, batch.own) for batch in (first, second)] == [(4, BATCH_BYTES, BATCH_BYTES)] * 2
    assert first.timestamp == second.timestamp > 1_700_000_000_000
    assert InternalBatch(((b"k", None),), 0).size == 1 + RECORD_OVERHEAD_BYTES


def test_a_record_above_the_size_travels_alone() -> None:
    batches = list(internal_batches([(b"a", b"x"), (b"b", b"x" * (BATCH_BYTES + 1)), (b"c", b"x")]))
    assert [batch.count for batch in batches] == [1, 1, 1]
