"""A transaction holds so many partitions at most; the others come in the next ones, and none waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.transaction import TransactionPartitions

pytestmark = pytest.mark.unit

keys = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 20)), max_size=60)


def holding(most: int) -> TransactionPartitions:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ferry.copying.transaction.MOST_PARTITIONS", most)
        return TransactionPartitions()


@given(keys, st.integers(1, 10))
def test_members_stay_and_others_are_turned_away(wanted: list[tuple[str, int]], most: int) -> None:
    members = holding(most)
    for key in wanted:
        known = key in members.keys
        assert members.admit([key]) == (known or (len(members.keys) <= most and key in members.keys))
        assert len(members.keys) <= most
    assert members.full == (len(set(wanted)) > most)
    members.end()
    assert (members.full, members.keys) == (False, set())


@given(keys, keys, st.integers(1, 10))
def test_every_member_that_changed_is_committed_and_the_rest_in_further_transactions(
    wanted: list[tuple[str, int]], changed: list[tuple[str, int]], most: int
) -> None:
    members = holding(most)
    for key in wanted:
        members.admit([key])
    left = dict.fromkeys(changed, "cursor")
    held = members.keys & left.keys()
    while left:
        share = members.share(left)
        assert held <= share.keys()
        assert 0 < len(share) <= most
        left = {key: cursor for key, cursor in left.items() if key not in share}
        members.end()
        held = set()


def test_a_failure_without_any_partition_says_nothing_about_their_number() -> None:
    members = holding(8)
    members.halve()
    assert [members.admit([("a", number)]) for number in range(9)] == [True] * 8 + [False]


def test_one_failure_counts_once_and_positions_without_records_count_too() -> None:
    members, changed = holding(8), {("a", number): "cursor" for number in range(20)}
    assert len(members.share(changed)) == 8
    members.halve()
    members.halve()
    assert len(members.share(changed)) == 4


def test_a_transaction_that_failed_twice_is_tried_with_half_as_many() -> None:
    members = TransactionPartitions()
    for admitted in (5, 2, 1, 1):
        assert [members.admit([("a", number)]) for number in range(5)] == [number < admitted for number in range(5)]
        members.halve()
        members.end()


def test_those_that_belong_together_join_together_or_not_at_all() -> None:
    members, keys = holding(3), [("a", number) for number in range(4)]
    assert members.admit(keys[:2])
    assert not members.admit(keys[2:])
    assert (members.keys, members.full) == (set(keys[:2]), True)
    assert members.admit(keys[1:3])


def test_as_many_as_belong_together_are_always_allowed() -> None:
    members, keys = TransactionPartitions(4), [("a", number) for number in range(5)]
    for _ in range(3):
        assert members.admit(keys[:4])
        assert not members.admit(keys) or len(members.keys) == 5
        members.halve()
    assert members.admit(keys[:4])
    assert not members.admit(keys)
