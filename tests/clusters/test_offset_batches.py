"""Offsets in pieces: all of them once, none larger than what the broker takes, and an error that is none of size is handed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.offset_batches import RECORD_BYTES, OffsetBatches

pytestmark = pytest.mark.unit

TOO_LARGE, UNKNOWN, REFUSED = 28, -1, 22
offsets = st.dictionaries(st.tuples(st.text("ab\u00fc", min_size=1, max_size=249), st.integers(0, 9)), st.text(max_size=16), max_size=60)


def _size(group: str, key: tuple[str, int], metadata: str) -> int:
    return RECORD_BYTES + sum(len(part.encode()) for part in (group, key[0], metadata))


@given(offsets, st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from([TOO_LARGE, UNKNOWN]))
def test_a_broker_with_a_limit_gets_everything_once_in_order(
    given_offsets: dict[tuple[str, int], str], limit: int, allowed: int, code: int
) -> None:
    batches = OffsetBatches("group", given_offsets, str, limit)
    log: list[tuple[str, int]] = []
    while batch := batches.take():
        size = sum(_size("group", key, metadata) for key, metadata in batch.items())
        assert len(batch) == 1 or size <= batches.limit <= limit
        if len(batch) > 1 and size > allowed:
            assert batches.refused(batch, code)
            assert batches.limit < size
            continue
        batches.stored(batch)
        log += batch
    assert log == list(given_offsets)


@given(offsets.filter(len))
def test_an_error_that_is_not_about_size_remains_with_one_offset(given_offsets: dict[tuple[str, int], str]) -> None:
    batches = OffsetBatches("group", given_offsets, str)
    asked = 0
    while batches.refused(batch := batches.take(), UNKNOWN):
        asked += 1
    assert len(batch) == 1
    assert asked <= 16  # halved, not counted down
    assert not batches.refused(batch, TOO_LARGE)


def test_other_refusals_do_not_shrink_batches() -> None:
    batches = OffsetBatches("group", {("a", 0): "", ("a", 1): ""}, str)
    assert not batches.refused(batches.take(), REFUSED)
    assert len(batches.take()) == 2
