"""The handle treatment: what comes out is the handler applied to what a consumer sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.logs import check_tiling, log_of, partitions

from ferry.handling import Record
from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.wire.ranges import Ranges, union, within
from ferry.wire.split import Indivisible, split_unit
from ferry.wire.treatment import arrange
from ferry.wire.unit import Unit

pytestmark = pytest.mark.unit
END = 1 << 62


def outputs(record: Record) -> list[Record]:
    """Drops, keeps, changes and multiplies, by offset; every output says which it is."""
    number = (0, 1, 1, 1, 2, 0, 3)[record.offset % 7]
    return [
        replace(record, value=b"%d" % index, timestamp=record.timestamp + index, headers=(*record.headers, ("n", None)))
        for index in range(number)
    ]


def taken_apart(unit: Unit) -> list[Unit]:
    """Halved until nothing can be divided any more."""
    try:
        first, second = split_unit(unit)
    except Indivisible:
        return [unit]
    return taken_apart(first) + taken_apart(second)


@settings(max_examples=300)
@given(
    entries=partitions(),
    start=st.integers(0, 250),
    width=st.integers(0, 300),
    limit=st.sampled_from([100, 2000, 1 << 19]),
    excluded=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 220)), max_size=3).map(union),
    divided=st.booleans(),
)
def test_handled_units_are_the_handler_applied_to_what_a_consumer_sees(
    kafka: Any, entries: list[dict[str, Any]], start: int, width: int, limit: int, excluded: Ranges, divided: bool
) -> None:
    log = log_of(kafka, entries)
    arranged = arrange(
        memoryview(log.data),
        position=start,
        end=start + width,
        aborted=log.aborted,
        excluded=excluded,
        merge_limit_bytes=limit,
        handling=PartitionHandling(outputs, "t", 3),
    )
    check_tiling(arranged.units, start, arranged.next_position)
    given = [Record("t", 3, row.offset, row.timestamp, row.key, row.value, row.headers) for row in log.visible]
    given = [record for record in given if start <= record.offset < arranged.next_position]
    given = [record for record in given if not within(excluded, record.offset, record.offset + 1)]
    units = [part for unit in arranged.units for part in (taken_apart(unit) if divided else [unit])]
    found: list[tuple[Any, ...]] = []
    images: dict[int, int] = {}
    for unit in units:
        rows = kafka.read(b"".join(unit.encode(900, 4, 77, True)))
        assert (unit.kind, len(rows)) == ("handled", unit.count)
        for place, (first, count) in zip(unit.places, unit.runs, strict=True):
            assert unit.upstream_start <= first
            assert first + count <= unit.upstream_end
            images |= {first + step: len(found) + place + step for step in range(count)}
        found += [tuple(row)[1:] for row in rows]
    wanted = [(record, output) for record in given for output in outputs(record)]
    assert found == [(output.timestamp, output.key, output.value, output.headers) for _, output in wanted]
    assert images == {record.offset: index for index, (record, output) in enumerate(wanted) if output.value == b"0"}
    assert sum(unit.dropped for unit in units) + arranged.dropped == sum(not outputs(record) for record in given)
    assert sum(unit.added for unit in units) == sum(max(0, len(outputs(record)) - 1) for record in given)


def test_a_handler_that_fails_ends_the_arrangement_before_the_record(kafka: Any, rows_at: Any) -> None:
    def handle(record: Record) -> list[Record]:
        if record.offset == 14:
            raise KeyError("secret content")
        return [record] if record.offset < 12 else []

    data = memoryview(kafka.build(rows_at(range(10, 20)), codec=3))
    arranged = arrange(data, position=10, end=END, handling=PartitionHandling(handle, "t", 0))
    assert arranged.next_position == 14
    assert [(unit.count, unit.dropped, unit.upstream_end) for unit in arranged.units] == [(2, 2, 14)]
    with pytest.raises(HandlerStopped, match=r"offset 14: the handler raised KeyError at test_handled.py:\d+ in handle") as raised:
        arrange(data, position=14, end=END, handling=PartitionHandling(handle, "t", 0))
    assert "secret" not in str(raised.value)


def test_what_is_dropped_without_a_unit_is_counted(kafka: Any, rows_at: Any) -> None:
    arranged = arrange(memoryview(kafka.build(rows_at(range(10)))), position=0, end=8, handling=PartitionHandling(lambda _: [], "t", 0))
    assert (arranged.units, arranged.next_position, arranged.dropped) == ([], 8, 8)
