"""Damaged record batches are refused as such, never read otherwise; and what is sealed anew with a valid checksum breaks no decoder."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.fuzz.damage import damaged, fuzzed
from tests.wire.conftest import Row, build, control, message_set, read, seal, squeeze
from tests.wire.logs import limited

from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.wire import compression, varint
from ferry.wire.aborted import control_type
from ferry.wire.batch import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, MalformedBatch, OversizedBatch, crc_is_valid, iterate_batches
from ferry.wire.legacy import opened
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.split import halved

pytestmark = pytest.mark.unit

MEBIBYTE = 1 << 20
END = 1 << 62
ROWS = [Row(5, 1_000, b"k", b"v" * 90), Row(6, 1_001, None, b"w" * 90, (("h", None),)), Row(9, 990, b"key", None)]
MODERN = tuple(
    build(rows, codec=codec, attributes=attributes, producer_id=4)
    for codec in range(5)
    for rows, attributes in ((ROWS, 0), (ROWS[:2], 0), (ROWS, 0x10), (ROWS, 0x08), (ROWS[:1], 0x40))
)
OLD = (*(message_set(ROWS, magic, codec) for magic in (0, 1) for codec in range(4)), message_set(ROWS, 1, 1, append_time=7))
# Plain messages are entries of their own.
SINGLE = (
    *MODERN,
    *(message_set(ROWS, magic, codec) for magic in (0, 1) for codec in (1, 2, 3)),
    message_set(ROWS[:1], 0),
    message_set(ROWS[:1], 1),
)
MARKERS = (control(10, 4, 0), control(10, 4, 1))
RECORDS = build(ROWS)[HEADER_SIZE:]
ENTRIES = st.sampled_from(MODERN + OLD + MARKERS)


def transformed(data: bytes, *, apart: bool, handled: bool = False) -> list[ProduceBatch]:
    """As a lane asks for it. `apart`: every batch is opened, though it could be forwarded."""
    found = limited(
        memoryview(data),
        dict.fromkeys(("FORWARD_BYTES", "FORWARD_RECORDS"), 1 << 30 if apart else 0),
        position=0,
        end=END,
        aborted=[(4, 0)] if len(data) % 7 == 0 else [],
        max_opened_bytes=MEBIBYTE,
        handling=PartitionHandling(lambda record: [record], "t", 0) if handled else None,
    )
    assert 0 <= found.next_position <= END
    at = 0
    for unit in found.batches:
        assert at <= unit.upstream_start < unit.upstream_end
        at = unit.upstream_end
    return list(found.batches)


def resealed(entry: bytes) -> bytes:
    """With length and checksum made right, as a faulty writer would."""
    return entry if len(entry) < HEADER_SIZE or entry[16] != 2 else seal(bytearray(entry))


@fuzzed
@given(entry=st.sampled_from(SINGLE), bit=st.integers(0, 1 << 20), apart=st.booleans(), before=st.booleans())
def test_a_flipped_bit_is_refused(entry: bytes, bit: int, apart: bool, before: bool) -> None:
    """Offset, length and leader epoch stand outside the checksum; everything else does not."""
    checked_from = 16 if entry[16] == 2 else LENGTH_OVERHEAD
    bit = checked_from * 8 + bit % ((len(entry) - checked_from) * 8)
    broken = bytearray(entry)
    broken[bit // 8] ^= 1 << (bit % 8)
    first = build([Row(0, 5), Row(1, 6)]) if before else b""
    if before:
        units = transformed(first + bytes(broken), apart=apart)
        assert [unit.runs for unit in units] == [((0, 2),)]
    else:
        with pytest.raises(MalformedBatch):
            transformed(bytes(broken), apart=apart)


@fuzzed
@given(data=damaged(ENTRIES), apart=st.booleans(), handled=st.booleans())
def test_damaged_entries(data: bytes, apart: bool, handled: bool) -> None:
    try:
        units = transformed(data, apart=apart, handled=handled)
    except (MalformedBatch, HandlerStopped):
        return
    for unit in units:
        assert len(read(b"".join(unit.encode(9, 1, 0, True)))) == unit.count


@fuzzed
@given(data=damaged(ENTRIES).map(resealed), apart=st.booleans(), handled=st.booleans())
def test_damaged_entries_with_a_valid_checksum(data: bytes, apart: bool, handled: bool) -> None:
    try:
        units = transformed(data, apart=apart, handled=handled)
    except (MalformedBatch, HandlerStopped):
        return
    for unit in units:
        whole = b"".join(unit.encode(9, 1, 0, True))
        assert crc_is_valid(memoryview(whole))
        try:
            halves = halved(unit, MEBIBYTE)
        except ValueError:
            continue
        assert sum(half.count for half in halves) == unit.count


@fuzzed
@given(
    plain=damaged(st.sampled_from([build(ROWS)[HEADER_SIZE:]])), count=st.integers(0, 4) | st.just((1 << 31) - 1), codec=st.integers(0, 4)
)
def test_damaged_records_in_a_sound_batch(plain: bytes, count: int, codec: int) -> None:
    """What a faulty producer compressed: the damage lies behind codec and checksum."""
    batch = bytearray(build(ROWS)[:HEADER_SIZE] + squeeze(codec, plain))
    struct.pack_into(">hi", batch, 21, codec, max(count - 1, 4))
    struct.pack_into(">i", batch, 57, count)
    for handled in (False, True):
        try:
            transformed(seal(batch), apart=True, handled=handled)
        except (MalformedBatch, HandlerStopped):
            continue


@fuzzed
@given(data=damaged(ENTRIES))
def test_headers_openings_and_markers(data: bytes) -> None:
    try:
        for header, view in iterate_batches(memoryview(data)):
            assert header.size == len(view)
            found, records = opened(header, view, MEBIBYTE)
            assert isinstance(found, BatchHeader)
            assert len(records) <= MEBIBYTE
            control_type(view)
    except MalformedBatch:
        return


@fuzzed
@given(codec=st.integers(0, 7), data=st.data())
def test_compressed_bytes(codec: int, data: st.DataObject) -> None:
    valid = squeeze(codec, b"some text, some more text, and some more " * 20) if codec < 5 else b""
    try:
        plain = compression.decompress(codec, data.draw(damaged(st.just(valid))), MEBIBYTE)
    except MalformedBatch:
        return
    assert len(plain) <= MEBIBYTE


@pytest.mark.parametrize("codec", range(1, 5))
def test_bombs(codec: int) -> None:
    with pytest.raises(OversizedBatch):
        compression.decompress(codec, squeeze(codec, bytes(64 * MEBIBYTE)), MEBIBYTE)


@fuzzed
@given(data=damaged(st.integers(-(1 << 63), (1 << 63) - 1).map(varint.encode)), at=st.integers(0, 12))
def test_variable_length_integers(data: bytes, at: int) -> None:
    for decode in (varint.decode, varint.decode_unsigned):
        try:
            found, after = decode(data, at)
        except ValueError:
            continue
        assert at < after <= at + 10
        assert -(1 << 63) <= found < 1 << 64


@pytest.mark.parametrize("timestamp", [-(1 << 63), (1 << 63) - 1])
def test_old_messages_whose_times_lie_too_far_apart(timestamp: int) -> None:
    messages = message_set([Row(3, timestamp), Row(4, -2 if timestamp > 0 else 0)], 1, 1)
    assert transformed(messages, apart=True)
