"""Digests depend on a range and its log alone: not on responses, and those of records not on batches either."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verify.worlds import TRANSACTIONAL, Stored, World, planned, record, tally_of, worlds

from ferry.verify.comparison import Difference, DifferenceKind, NotCovered, RangeResult, VerifiedRange, VerifyRange
from ferry.verify.log_side import Batch, LogSide
from ferry.verify.request import DigestKind
from ferry.wire.batch import BatchHeader, OversizedBatch
from ferry.wire.runs import encode_runs

pytestmark = pytest.mark.unit

PIECES = st.sampled_from([1, 700, 1 << 30])
SEEDS = st.integers(1, 1 << 12)


def ranges(world: World, kind: DigestKind, piece: int = 1 << 30, **changes: object) -> list[VerifyRange]:
    return [replace(wanted, digest=kind) for wanted in planned(world, piece, **changes)]


def by_hand(world: World, wanted: VerifyRange, *, target: bool) -> str:
    """As whoever reads with a consumer would do it."""
    found = hashlib.sha256()
    low, high = wanted.downstream if target else wanted.upstream
    for stored in world.target if target else world.source:
        for offset, entry in stored.records:
            if low <= offset < high:
                found.update(b"R" + struct.pack(">qi", entry.timestamp, len(entry.payload)) + entry.payload)
    return found.hexdigest()


@given(worlds(), SEEDS, PIECES)
def test_the_digest_of_records_is_the_same_on_both_sides_in_whatever_batches(world: World, seed: int, piece: int) -> None:
    for wanted in ranges(world, DigestKind.RECORDS, piece):
        tally = tally_of(wanted, world, seed)
        digests = {tally.source_digest, tally.target_digest}
        assert digests == {by_hand(world, wanted, target=False), by_hand(world, wanted, target=True)}
        assert len(digests) == 1


@given(st.data(), worlds(), SEEDS, SEEDS, PIECES)
def test_a_stored_digest_does_not_depend_on_responses(data: st.DataObject, world: World, one: int, other: int, piece: int) -> None:
    start = data.draw(st.integers(world.source_start, world.source_end))
    for wanted in ranges(world, DigestKind.STORED, piece, source_start=start):
        assert tally_of(wanted, world, one).source_digest == tally_of(wanted, world, other).source_digest


def stored_digest(batch: Stored) -> str:
    side = LogSide(((batch.base, batch.end),), digest=DigestKind.STORED)
    side.add(batch.batch)
    return side.digest.text()


@pytest.mark.parametrize("codec", [0, 3])
def test_a_stored_digest_is_that_of_the_forwarded_batch_too(codec: int) -> None:
    """Offsets, transactions and producers are not hashed: where only the remote topic is left it can be taken there."""
    entries = [record(number, 1) for number in range(9)]
    here, there = (
        Stored(base, base + 9, tuple((base + place, entry) for place, entry in enumerate(entries)), codec, attributes)
        for base, attributes in ((5, 0), (70, TRANSACTIONAL))
    )
    assert stored_digest(here) == stored_digest(there)
    other = replace(here, records=(*here.records[:-1], (here.records[-1][0], record(9, 1))))
    assert stored_digest(here) != stored_digest(other)


@given(st.data(), worlds(), st.sampled_from(DigestKind))
def test_every_byte_counts(data: st.DataObject, world: World, kind: DigestKind) -> None:
    before = [tally_of(wanted, world).source_digest for wanted in ranges(world, kind)]
    index = data.draw(st.integers(0, len(world.source) - 1))
    stored = world.source[index]
    place = data.draw(st.integers(0, len(stored.records) - 1))
    offset, entry = stored.records[place]
    if data.draw(st.booleans()):
        entry = replace(entry, timestamp=entry.timestamp + 1)
    else:
        # The last byte of the value: what follows it is one header, `h` without a value.
        entry = replace(entry, payload=entry.payload[:-5] + bytes([entry.payload[-5] ^ 1]) + entry.payload[-4:])
    world.source[index] = replace(stored, records=(*stored.records[:place], (offset, entry), *stored.records[place + 1 :]))
    after = [tally_of(wanted, world).source_digest for wanted in ranges(world, kind)]
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_a_range_of_another_digest_is_another_range() -> None:
    wanted = VerifyRange("t", 0, UUID(int=1), "r", UUID(int=2), (0, 1), (0, 1), encode_runs(()), ())
    assert wanted.identity != replace(wanted, digest=DigestKind.RECORDS).identity


@pytest.mark.parametrize("count", [1_000_000, (1 << 31) - 1])
def test_records_that_would_fill_the_memory_are_refused_before_they_are_read(count: int) -> None:
    """Python's objects count: a million empty records decompress to 7 MB and take 140."""
    header = BatchHeader(5, 100, 0, 2, 0, 4, count - 1, 0, 0, -1, -1, -1, count)
    side = LogSide(((0, 1 << 40),), "a1", 100 << 20)
    side.add(Batch(header, memoryview(bytes(112))))
    with pytest.raises(OversizedBatch, match=f"cluster a1: the batch at offset 5: its {count:,} records"):
        side.has_record()


def test_results_are_the_same_after_a_round_trip() -> None:
    verified = VerifiedRange("t", 0, "r", (5, 10), (7, 12), 1, 2, 5, 1, DigestKind.RECORDS, "ab", "cd")
    difference = Difference("t", 0, "r", 5, -1, DifferenceKind.MISSING, "x")
    result = RangeResult("k", "t", 0, 5, 10, 3, {"missing": 1}, (difference,), (NotCovered("t", 0, 1, 2, "why"),), verified)
    assert RangeResult.of_document(json.loads(json.dumps(result.document()))) == result
    nothing = RangeResult("k", "t", 0)
    assert RangeResult.of_document({**json.loads(json.dumps(nothing.document())), "added by a newer one": 1}) == nothing
