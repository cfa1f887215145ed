"""Counters: their sum, and how they stand in a receipt's value; the least, mean and greatest of values that are not kept."""

from __future__ import annotations

from functools import reduce
from operator import add
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.counters import ZERO, Counters, MinMeanMax

pytestmark = pytest.mark.unit

NUMBERS = [name for name, zero in ZERO._asdict().items() if zero == 0]
DELAYS = st.none() | st.builds(MinMeanMax, st.integers(0, 9), st.integers(10, 20).map(float), st.integers(21, 30), st.integers(1, 5))
MOMENTS = st.lists(st.integers(min_value=0, max_value=2_000_000_000_000), min_size=1, max_size=20)
COUNTERS = st.builds(
    Counters,
    **{name: st.integers(0, 5) for name in NUMBERS},  # type: ignore[arg-type]
    record_age_ms=DELAYS,
    replication_latency_ms=DELAYS,
)


@given(COUNTERS, COUNTERS)
def test_every_number_of_both_counts(first: Counters, second: Counters) -> None:
    both = first + second
    for name in NUMBERS:
        assert getattr(both, name) == getattr(first, name) + getattr(second, name)
    for name in ("record_age_ms", "replication_latency_ms"):
        counts = [delays.count for delays in (getattr(first, name), getattr(second, name)) if delays]
        assert (getattr(both, name).count if counts else 0) == sum(counts)
    assert first + ZERO == ZERO + first == first


@given(COUNTERS)
def test_what_is_written_comes_back(counters: Counters) -> None:
    """Delays are written together or not at all."""
    if counters.record_age_ms is None or counters.replication_latency_ms is None:
        counters = counters._replace(record_age_ms=None, replication_latency_ms=None)
    assert Counters.of_document(counters.document()) == counters


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
