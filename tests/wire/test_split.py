from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.cursor import ReceiptDraft
from ferry.copying.lane_messages import Segment
from ferry.handling.calling import PartitionHandling
from ferry.ledger.receipts import ReceiptKind
from ferry.wire.batch import HEADER_SIZE, MalformedBatch
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.split import Indivisible, halved
from ferry.wire.transform import transform

pytestmark = pytest.mark.unit


@given(offsets=st.sets(st.integers(0, 60), min_size=2, max_size=30).map(sorted), codec=st.integers(0, 4), merged=st.booleans())
def test_two_halves_are_the_whole(kafka: Any, rows_at: Any, offsets: list[int], codec: int, merged: bool) -> None:
    rows = rows_at(offsets)
    batches = [kafka.build([row], codec=codec) for row in rows] if merged else [kafka.build(rows, codec=codec)]
    (unit,) = transform(memoryview(b"".join(batches)), position=0, end=100).batches
    first, second = halved(unit)
    assert kafka.read_units([first, second]) == kafka.read_units([unit]) == rows
    assert (first.count, second.count) == (len(rows) // 2, len(rows) - len(rows) // 2)
    assert (first.upstream_start, second.upstream_end) == (unit.upstream_start, unit.upstream_end)
    assert first.upstream_end == second.upstream_start == rows[first.count].offset
    assert (first.kind, first.last_leader_epoch, second.last_leader_epoch) == ("reframed", -1, unit.last_leader_epoch)
    assert (second.min_timestamp, second.max_timestamp) == (rows[first.count].timestamp, rows[-1].timestamp)


def test_splitting_ends_at_single_records(kafka: Any, rows_at: Any) -> None:
    whole = transform(memoryview(kafka.build(rows_at(range(7)))), position=0, end=100).batches
    units = whole
    while any(unit.count > 1 for unit in units):
        units = [part for unit in units for part in (halved(unit) if unit.count > 1 else (unit,))]
    assert kafka.read_units(units) == rows_at(range(7))
    with pytest.raises(ValueError, match="cannot be split"):
        halved(units[0])


def test_records_whose_offsets_contradict_the_header_are_not_dropped(kafka: Any, rows_at: Any) -> None:
    """A producer with a defect wrote them: the batch is copied as it is, but nobody can divide it."""
    batch = bytearray(kafka.build(rows_at([0, 1])))
    length, attributes, timestamp = batch[HEADER_SIZE : HEADER_SIZE + 3]
    assert (length > 3, attributes, timestamp, batch[HEADER_SIZE + 3]) == (True, 0, 0, 0)
    batch[HEADER_SIZE + 3] = 0x40  # the first record's offset delta
    [unit] = transform(memoryview(kafka.seal(batch)), position=0, end=100).batches
    assert unit.count == 2
    with pytest.raises(MalformedBatch, match="offset 0: only 0 of its records 0 to 0 have the offsets"):
        halved(unit)


def test_a_half_takes_no_more_memory_than_there_is(kafka: Any, rows_at: Any) -> None:
    (unit,) = transform(memoryview(kafka.build(rows_at([0, 1], size=100_000), codec=1)), position=0, end=100).batches
    with pytest.raises(MalformedBatch):
        halved(unit, 100_000)


def test_a_handled_unit_is_divided_near_its_middle(kafka: Any, rows_at: Any) -> None:
    outputs = [1, 1, 1, 5, 1, 1]
    handling = PartitionHandling(lambda record: [record] * outputs[record.offset], "t", 0)
    (unit,) = transform(memoryview(kafka.build(rows_at(range(6)))), position=0, end=100, handling=handling).batches
    first, second = halved(unit)
    assert (first.kind, second.kind, first.count, second.count) == ("handled", "handled", 3, 7)
    single, _ = halved(second)
    with pytest.raises(Indivisible, match="all 5 records that the handler made of the one at offset 3 must"):
        halved(single)


def smallest(unit: ProduceBatch) -> list[ProduceBatch]:
    try:
        halves = halved(unit)
    except Indivisible:
        return [unit]
    return [piece for half in halves for piece in smallest(half)]


def drafted(units: Iterable[ProduceBatch]) -> ReceiptDraft:
    """As if the target had appended them to an empty log."""
    draft = ReceiptDraft(Segment(ReceiptKind.COPIED, 0, 100), 0)
    for unit in units:
        draft.add(unit, draft.counters.records)
    return draft


@given(outputs=st.lists(st.sampled_from([0, 1, 1, 1, 2, 3]), min_size=1, max_size=25), codec=st.integers(0, 4))
def test_a_handled_unit_is_divided_between_source_records_only(kafka: Any, rows_at: Any, outputs: list[int], codec: int) -> None:
    handling = PartitionHandling(lambda record: [record] * outputs[record.offset], "t", 0)
    built = kafka.build(rows_at(range(len(outputs))), codec=codec)
    for unit in transform(memoryview(built), position=0, end=100, handling=handling).batches:
        pieces = smallest(unit)
        assert len(pieces) == sum(number > 0 for number in outputs)
        assert (pieces[0].upstream_start, pieces[-1].upstream_end) == (unit.upstream_start, unit.upstream_end)
        assert all(left.upstream_end == right.upstream_start for left, right in pairwise(pieces))
        assert (sum(piece.dropped for piece in pieces), sum(piece.added for piece in pieces)) == (unit.dropped, unit.added)
        read = [[row[1:] for part in units for row in kafka.read(b"".join(part.encode(9, 1, 0, True)))] for units in (pieces, [unit])]
        assert read[0] == read[1]
        places = [(offset, sum(outputs[:offset])) for offset, number in enumerate(outputs) if number]
        for draft in (drafted([unit]), drafted(pieces)):
            assert [(upstream + step, place + step) for upstream, place, count in draft.runs for step in range(count)] == places
