"""Halves a batch that the target refuses: it is larger than the target's max.message.bytes, or Ferry looks for the refused record."""

from dataclasses import replace

from ferry.wire import compression
from ferry.wire.batch import HEADER_SIZE, MalformedBatch, read_header
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.reframe import Reframer, assemble

Runs = tuple[tuple[int, int], ...]


class Indivisible(ValueError):
    """A batch of one source record."""


def halved(batch: ProduceBatch, limit: int = compression.LARGEST_BYTES) -> tuple[ProduceBatch, ProduceBatch]:
    """Two batches with the first and second half of the records; their upstream ranges tile the batch's.

    A handled batch is divided between source records, as near to its middle as possible; the first half counts dropped records. Raises
    Indivisible for a batch of one source record: nothing smaller can be sent. Raises MalformedBatch for unreadable records, for records
    with other offsets than the header says, and for records that take more than `limit` bytes when they are decompressed.
    """
    middle = number = batch.count // 2
    if batch.places:
        middle, number = _divided(batch)
    elif not middle:
        raise Indivisible(f"the batch at upstream offset {batch.upstream_start} has {batch.count} record: it cannot be split")
    first_runs, second_runs = _split_runs(batch.runs, number)
    header = read_header(batch.payload)
    records = compression.decompress(header.codec, batch.payload[HEADER_SIZE:], limit)
    boundary = second_runs[0][0]
    batch_start = header.base_offset

    def half(lower: int, upper: int, runs: Runs, start: int, stop: int, epoch: int) -> ProduceBatch:  # noqa: PLR0917 - bounds in the batch, then upstream
        reframed = Reframer()
        reframed.add(header, records, batch_start + lower, batch_start + upper)
        if reframed.count != upper - lower:
            found = f"only {reframed.count} of its records {lower} to {upper - 1} have the offsets that its header says"
            raise MalformedBatch(f"batch at upstream offset {batch.upstream_start}: {found}")
        return replace(
            batch,
            kind="handled" if batch.places else "reframed",
            payload=memoryview(assemble(reframed, header.codec)),
            count=reframed.count,
            runs=runs,
            upstream_start=start,
            upstream_end=stop,
            min_timestamp=reframed.base_timestamp,
            max_timestamp=reframed.max_timestamp,
            last_leader_epoch=epoch,
            places=tuple(place - lower for place in _places(batch, lower, upper)) if batch.places else (),
            dropped=0 if lower else batch.dropped,
        )

    return (
        half(0, middle, first_runs, batch.upstream_start, boundary, -1),  # batches of several epochs may have been merged
        half(middle, batch.count, second_runs, boundary, batch.upstream_end, batch.last_leader_epoch),
    )


def _divided(batch: ProduceBatch) -> tuple[int, int]:
    """Where a handled batch is divided: the index in the batch, and the number of source records before it."""
    begins = [place + index for place, (_, count) in zip(batch.places, batch.runs, strict=True) for index in range(count)]
    if len(begins) < 2:
        raise Indivisible(f"all {batch.count} records that the handler made of the one at offset {batch.runs[0][0]} must be in one batch")
    number = min(range(1, len(begins)), key=lambda index: abs(begins[index] - batch.count // 2))
    return begins[number], number


def _places(batch: ProduceBatch, lower: int, upper: int) -> list[int]:
    """The places of a handled batch's runs within [lower, upper). Of a run that extends over `lower` the part from there on counts."""
    found = [max(place, lower) for place, (_, count) in zip(batch.places, batch.runs, strict=True) if lower < place + count]
    return [place for place in found if place < upper]


def _split_runs(runs: Runs, records: int) -> tuple[Runs, Runs]:
    """The runs of the first `records` records, and those of the others."""
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    left = records
    for start, count in runs:
        if taken := min(left, count):
            first.append((start, taken))
        if taken < count:
            second.append((start + taken, count - taken))
        left -= taken
    return tuple(first), tuple(second)
