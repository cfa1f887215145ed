from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.batch import crc_is_valid, read_header
from ferry.wire.produce_batch import ProduceBatch

pytestmark = pytest.mark.unit


def forward(view: memoryview, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes, memoryview]:
    return ProduceBatch("forwarded", view, 0, (), 0, 0, -1, -1, -1).encode(producer_id, epoch, base_sequence, transactional)


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("codec", range(5))
def test_only_the_header_changes(kafka: Any, rows_at: Any, codec: int, transactional: bool) -> None:
    source = kafka.build(rows_at(range(100, 150)), codec=codec, attributes=0x10, producer_id=3)
    sent = b"".join(forward(memoryview(source), 77, 5, 1234, transactional))
    assert sent[61:] == source[61:]
    header = read_header(memoryview(sent))
    assert header._replace(crc=0) == read_header(memoryview(source))._replace(
        crc=0,
        base_offset=0,
        leader_epoch=-1,
        attributes=codec | (0x10 if transactional else 0),
        producer_id=77,
        producer_epoch=5,
        base_sequence=1234,
    )
    assert kafka.read(sent) == [row._replace(offset=index) for index, row in enumerate(rows_at(range(100, 150)))]


def test_golden_header(kafka: Any) -> None:
    source = kafka.build([kafka.Row(9, 1000, None, b"x")], producer_id=8, attributes=0x10)
    batch = "0000000000000000 00000039 ffffffff 02 1d262d4d 0010 00000000 00000000000003e8 00000000000003e8"
    producer = "0000000000000001 0002 00000003"
    records = "00000001 0e 00 00 00 01 02 78 00"
    assert b"".join(forward(memoryview(source), 1, 2, 3, True)) == bytes.fromhex(batch + producer + records)


@given(attributes=st.integers(0, 0x7FFF), producer_id=st.integers(-1, 2**63 - 1), epoch=st.integers(-1, 2**15 - 1))
def test_no_attribute_but_codec_and_transaction_survives(kafka: Any, attributes: int, producer_id: int, epoch: int) -> None:
    source = kafka.build([kafka.Row(0, 0)], attributes=attributes & ~7)
    sent = b"".join(forward(memoryview(source), producer_id, epoch, 0, False))
    header = read_header(memoryview(sent))
    assert (header.attributes, header.producer_id, header.producer_epoch) == (0, producer_id, epoch)
    assert crc_is_valid(memoryview(sent))
    assert bytes(source) == bytes(kafka.build([kafka.Row(0, 0)], attributes=attributes & ~7))
