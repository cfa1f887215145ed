"""Halving a unit that the target finds too large (MESSAGE_TOO_LARGE): its max.message.bytes is smaller than the batch was at the source."""

from __future__ import annotations

from ferry.wire import compression
from ferry.wire.batch import HEADER_SIZE, read_header
from ferry.wire.reframe import Piece, assemble, reframe
from ferry.wire.treatment import Unit


def split_unit(unit: Unit) -> tuple[Unit, Unit]:
    """Two reframed units with the first and second half of the records; their upstream ranges tile the unit's.

    Raises ValueError for a unit of one record: nothing smaller can be sent. Raises MalformedBatch for unreadable records.
    """
    if unit.count < 2:
        raise ValueError(f"the unit at upstream offset {unit.upstream_start} has {unit.count} record: it cannot be split")
    header = read_header(unit.payload)
    records = compression.decompress(header.codec, unit.payload[HEADER_SIZE:])
    middle = unit.count // 2
    first_runs, second_runs = _split_runs(unit.runs, middle)
    boundary = second_runs[0][0]
    batch_start = header.base_offset

    def half(lower: int, upper: int, runs: tuple[tuple[int, int], ...], start: int, stop: int) -> Unit:
        reframed = reframe([Piece(header, records, batch_start + lower, batch_start + upper)])
        return Unit(
            kind="reframed",
            payload=memoryview(assemble(reframed, header.codec)),
            count=reframed.count,
            runs=runs,
            upstream_start=start,
            upstream_end=stop,
            min_timestamp=reframed.base_timestamp,
            max_timestamp=reframed.max_timestamp,
            last_leader_epoch=unit.last_leader_epoch,
        )

    return (
        half(0, middle, first_runs, unit.upstream_start, boundary),
        half(middle, unit.count, second_runs, boundary, unit.upstream_end),
    )


def _split_runs(runs: tuple[tuple[int, int], ...], records: int) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """The runs of the first `records` records, and those of the others."""
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    left = records
    for start, count in runs:
        taken = min(left, count)
        if taken:
            first.append((start, taken))
        if taken < count:
            second.append((start + taken, count - taken))
        left -= taken
    return tuple(first), tuple(second)
