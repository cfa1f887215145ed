"""Halving a unit that the target refuses: its max.message.bytes is smaller than the batch was, or one of its records has to be found."""

from __future__ import annotations

from ferry.wire import compression
from ferry.wire.batch import HEADER_SIZE, read_header
from ferry.wire.reframe import Piece, assemble, reframe
from ferry.wire.unit import Unit

Runs = tuple[tuple[int, int], ...]


class Indivisible(ValueError):
    """A unit of one source record."""


def split_unit(unit: Unit, limit: int = compression.LARGEST_BYTES) -> tuple[Unit, Unit]:
    """Two units with the first and second half of the records; their upstream ranges tile the unit's.

    A handled unit is divided between source records, as near to its middle as possible; the first half counts what was dropped. Raises
    Indivisible for a unit of one source record: nothing smaller can be sent. Raises MalformedBatch for unreadable records, and for those
    that take more than `limit` bytes when they are decompressed.
    """
    if unit.places:
        return _halves(unit, limit, *_divided(unit))
    if unit.count < 2:
        raise Indivisible(f"the unit at upstream offset {unit.upstream_start} has {unit.count} record: it cannot be split")
    middle = unit.count // 2
    return _halves(unit, limit, middle, *_split_runs(unit.runs, middle))


def _halves(unit: Unit, limit: int, middle: int, first_runs: Runs, second_runs: Runs) -> tuple[Unit, Unit]:
    header = read_header(unit.payload)
    records = compression.decompress(header.codec, unit.payload[HEADER_SIZE:], limit)
    boundary = second_runs[0][0]
    batch_start = header.base_offset

    def half(lower: int, upper: int, runs: Runs, start: int, stop: int, epoch: int) -> Unit:  # noqa: PLR0917 - bounds in the batch, then upstream
        reframed = reframe([Piece(header, records, batch_start + lower, batch_start + upper)])
        return Unit(
            kind="handled" if unit.places else "reframed",
            payload=memoryview(assemble(reframed, header.codec)),
            count=reframed.count,
            runs=runs,
            upstream_start=start,
            upstream_end=stop,
            min_timestamp=reframed.base_timestamp,
            max_timestamp=reframed.max_timestamp,
            last_leader_epoch=epoch,
            places=tuple(place - lower for place in _places(unit, lower, upper)) if unit.places else (),
            dropped=0 if lower else unit.dropped,
        )

    return (
        half(0, middle, first_runs, unit.upstream_start, boundary, -1),  # batches of several epochs may have been merged
        half(middle, unit.count, second_runs, boundary, unit.upstream_end, unit.last_leader_epoch),
    )


def _divided(unit: Unit) -> tuple[int, Runs, Runs]:
    """The index in the batch at which a handled unit is divided, and the runs of both sides."""
    begins = [place + index for place, (_, count) in zip(unit.places, unit.runs, strict=True) for index in range(count)]
    if len(begins) < 2:
        raise Indivisible(f"all {unit.count} records that the handler made of the one at offset {unit.runs[0][0]} must be in one batch")
    number = min(range(1, len(begins)), key=lambda index: abs(begins[index] - unit.count // 2))
    return begins[number], *_split_runs(unit.runs, number)


def _places(unit: Unit, lower: int, upper: int) -> list[int]:
    """The places of a handled unit's runs within [lower, upper), a run that goes over `lower` beginning there."""
    found = [max(place, lower) for place, (_, count) in zip(unit.places, unit.runs, strict=True) if lower < place + count]
    return [place for place in found if place < upper]


def _split_runs(runs: Runs, records: int) -> tuple[Runs, Runs]:
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
