"""The least, mean and greatest of values that are not kept."""

from __future__ import annotations

from functools import reduce
from operator import add
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.min_mean_max import MinMeanMax

pytestmark = pytest.mark.unit

MOMENTS = st.lists(st.integers(min_value=0, max_value=2_000_000_000_000), min_size=1, max_size=20)


@given(MOMENTS)
def test_joining_keeps_what_the_values_say(moments: list[int]) -> None:
    found = reduce(add, (MinMeanMax(moment, moment, moment, 1) for moment in moments))
    assert (found.least, found.greatest, found.count) == (min(moments), max(moments), len(moments))
    assert found.mean == pytest.approx(fmean(moments), rel=1e-9)


def test_a_mean_of_means_is_weighted() -> None:
    assert MinMeanMax(1, 2.0, 3, 2) + MinMeanMax(0, 7.0, 9, 3) == MinMeanMax(0, 5.0, 9, 5)
    assert MinMeanMax(1, 2.26, 3, 2).parts() == [1, 2.3, 3, 2]


def test_ages_are_counted_from_a_moment() -> None:
    assert MinMeanMax(100, 150.0, 300, 4).until(1000) == MinMeanMax(700, 850.0, 900, 4)


def test_parts_and_back() -> None:
    assert MinMeanMax.of_parts(MinMeanMax(1, 2.5, 4, 7).parts()) == MinMeanMax(1, 2.5, 4, 7)
    with pytest.raises(ValueError, match="unpack"):
        MinMeanMax.of_parts([1, 2])
