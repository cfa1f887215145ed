"""Offsets in pieces: all of them once, none larger than what the broker takes, and an error that is none of size is handed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.groups.committed_offsets import RECORD_BYTES, OffsetBatches
from ferry.clusters.groups.group_model import CommittedOffset

pytestmark = pytest.mark.unit

Key = tuple[str, int]
TOO_LARGE, UNKNOWN, REFUSED = 28, -1, 22
offsets = st.dictionaries(
    st.tuples(st.text("ab\u00fc", min_size=1, max_size=249), st.integers(0, 9)),
    st.builds(CommittedOffset, st.just(5), metadata=st.text(max_size=16)),
    max_size=60,
)


def _size(group: str, key: Key, offset: CommittedOffset) -> int:
    return RECORD_BYTES + sum(len(part.encode()) for part in (group, key[0], offset.metadata))


@given(offsets, st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from([TOO_LARGE, UNKNOWN]))
def test_a_broker_with_a_limit_gets_everything_once_in_order(
    given_offsets: dict[Key, CommittedOffset], limit: int, allowed: int, code: int
) -> None:
    batches = OffsetBatches("group", given_offsets, limit)
    log: list[Key] = []
    for batch in batches:
        size = sum(_size("group", key, offset) for key, offset in batch.items())
        assert len(batch) == 1 or size <= batches.limit <= limit
        if len(batch) > 1 and size > allowed:
            assert batches.refused(code)
            assert batches.limit < size
        else:
            log += batch
    assert log == list(given_offsets)


@given(offsets.filter(len))
def test_an_error_that_is_not_about_size_remains_with_one_offset(given_offsets: dict[Key, CommittedOffset]) -> None:
    batches = OffsetBatches("group", given_offsets)
    sizes = []
    for batch in batches:
        sizes.append(len(batch))
        if not batches.refused(UNKNOWN):
            break
    assert sizes[-1] == 1
    assert len(sizes) <= 17  # halved, not counted down
    assert not batches.refused(TOO_LARGE)


def test_other_refusals_do_not_shrink_batches() -> None:
    batches = OffsetBatches("group", {("a", number): CommittedOffset(1) for number in range(2)})
    for batch in batches:
        assert not batches.refused(REFUSED)
        assert len(batch) == 2
