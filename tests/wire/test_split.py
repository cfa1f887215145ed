from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.split import split_unit
from ferry.wire.treatment import arrange

pytestmark = pytest.mark.unit


@given(offsets=st.sets(st.integers(0, 60), min_size=2, max_size=30).map(sorted), codec=st.integers(0, 4), merged=st.booleans())
def test_two_halves_are_the_whole(kafka: Any, rows_at: Any, offsets: list[int], codec: int, merged: bool) -> None:
    rows = rows_at(offsets)
    batches = [kafka.build([row], codec=codec) for row in rows] if merged else [kafka.build(rows, codec=codec)]
    (unit,) = arrange(memoryview(b"".join(batches)), position=0, end=100).units
    first, second = split_unit(unit)
    assert kafka.read_units([first, second]) == kafka.read_units([unit]) == rows
    assert (first.count, second.count) == (len(rows) // 2, len(rows) - len(rows) // 2)
    assert (first.upstream_start, second.upstream_end) == (unit.upstream_start, unit.upstream_end)
    assert first.upstream_end == second.upstream_start == rows[first.count].offset
    assert (first.kind, first.last_leader_epoch) == ("reframed", unit.last_leader_epoch)
    assert (second.min_timestamp, second.max_timestamp) == (rows[first.count].timestamp, rows[-1].timestamp)


def test_splitting_ends_at_single_records(kafka: Any, rows_at: Any) -> None:
    whole = arrange(memoryview(kafka.build(rows_at(range(7)))), position=0, end=100).units
    units = whole
    while any(unit.count > 1 for unit in units):
        units = [part for unit in units for part in (split_unit(unit) if unit.count > 1 else (unit,))]
    assert kafka.read_units(units) == rows_at(range(7))
    with pytest.raises(ValueError, match="cannot be split"):
        split_unit(units[0])
