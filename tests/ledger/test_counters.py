"""Counters: their sum, and how they stand in a receipt's value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.counters import ZERO, Counters
from ferry.ledger.min_mean_max import MinMeanMax

pytestmark = pytest.mark.unit

NUMBERS = [name for name, zero in ZERO._asdict().items() if zero == 0]
DELAYS = st.none() | st.builds(MinMeanMax, st.integers(0, 9), st.integers(10, 20).map(float), st.integers(21, 30), st.integers(1, 5))
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
