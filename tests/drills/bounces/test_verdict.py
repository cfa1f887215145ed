"""The judge sees every kind of fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.bounces.verdict import Verdict, histogram, judge

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([1, 2, 3, 4], Verdict(4)),
        ([1, 2, 4], Verdict(4, lost=1)),
        ([1, 2, 3, 2, 3, 4], Verdict(4, duplicated=2)),
        ([1, 3, 2, 4], Verdict(4, out_of_order=1)),
        ([1, 2, 9, 3, 4, 9], Verdict(4, foreign=1, duplicated=1)),
        ([], Verdict(4, lost=4)),
    ],
)
def test_every_fault_is_counted(found: list[int], verdict: Verdict) -> None:
    assert judge([1, 2, 3, 4], found) == verdict
    assert verdict.exact is (found == [1, 2, 3, 4])


@given(st.lists(st.integers(0, 9)))
def test_only_the_same_is_exact(found: list[int]) -> None:
    assert judge(range(10), found).exact is (found == list(range(10)))


def test_the_histogram_counts_each_once() -> None:
    assert histogram([0.1, 1.0, 1.1, 99.0], [1.0, 10.0]) == [2, 1, 1]
