"""Connect's source offsets: MM2's bytes, whatever order their names have, in log order."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.connect_offsets import (
    SourcePartition,
    decode_source_key,
    decode_source_offset,
    encode_source_key,
    encode_source_offset,
    latest_source_offsets,
)

pytestmark = pytest.mark.unit

ORDERS = SourcePartition("MirrorSourceConnector", "A", "t", 0)
ENTRIES = st.builds(
    SourcePartition, st.sampled_from(["MirrorSourceConnector", "mine"]), st.text(max_size=4), st.just("t"), st.integers(0, 3)
)


class Written(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    epoch: int = -1


def test_mm2s_own_bytes() -> None:
    key = b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]'
    assert (decode_source_key(key), encode_source_key(ORDERS)) == (ORDERS, key)
    assert (decode_source_offset(b'{"offset":5}'), encode_source_offset(5)) == (5, b'{"offset":5}')


@pytest.mark.parametrize(
    "key",
    [
        b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.t","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["c",{"cluster":"A","partition":true,"topic":"t"}]',
        b'["c",{"cluster":"A","partition":0,"topic":"t","more":1}]',
        b'["c",{"cluster":null,"partition":0,"topic":"t"}]',
        b'["c",["cluster"]]',
        b'"c"',
        b"\xff",
        b"",
    ],
)
def test_entries_of_other_connectors(key: bytes) -> None:
    assert decode_source_key(key) is None


@pytest.mark.parametrize(("value", "offset"), [(None, None), (b'{"offset":0}', 0), (b'{"offset":-1}', None)])
def test_removed_offsets(value: bytes | None, offset: int | None) -> None:
    assert decode_source_offset(value) == offset


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{}", "it has no offset: 'offset'"),
        (b"7", "it has no offset: 'int'"),
        (b'{"offset":"7"}', "it has no offset: '7' is no whole number"),
        (b"\xff", "'utf-8' codec"),
        (b'{"offset":true}', "it has no offset: True is no whole number"),
    ],
)
def test_a_damaged_offset_is_named(value: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=rf"mm2-offsets\.A\.internal-3 offset 8: .* t-0: {why}"):
        latest_source_offsets([Written(3, 8, 0, encode_source_key(ORDERS), value)], "mm2-offsets.A.internal")


def test_entries_of_other_connectors_are_passed_over() -> None:
    records = [Written(0, 0, 1, b"other", b"{}"), Written(0, 1, 1, encode_source_key(ORDERS), b'{"offset":5}')]
    assert latest_source_offsets(records, "o") == {ORDERS: 5}


def test_names_are_written_as_utf_8_as_connect_does() -> None:
    assert (
        encode_source_key(ORDERS._replace(cluster="Zürich"))
        == '["MirrorSourceConnector",{"cluster":"Zürich","partition":0,"topic":"t"}]'.encode()
    )


@given(ENTRIES)
def test_every_entry_reads_as_written(entry: SourcePartition) -> None:
    assert decode_source_key(encode_source_key(entry)) == entry


def any_order(entry: SourcePartition, order: list[str], *, blanks: bool) -> bytes:
    fields = entry._asdict()
    document = [entry.connector, {name: fields[name] for name in order}]
    return json.dumps(document, separators=None if blanks else (",", ":")).encode()


@given(
    st.lists(
        st.tuples(
            ENTRIES, st.permutations(["cluster", "topic", "partition"]), st.booleans(), st.none() | st.integers(0, 99), st.integers(0, 5)
        ),
        max_size=30,
    )
)
def test_the_last_in_log_order_counts_whatever_the_order_of_names(
    written: list[tuple[SourcePartition, list[str], bool, int | None, int]],
) -> None:
    """One Connect partition; timestamps say nothing there, as clients write them."""
    records, expected = [], {}
    for offset, (entry, order, blanks, value, timestamp) in enumerate(written):
        encoded = None if value is None else encode_source_offset(value)
        records.append(Written(0, offset, timestamp, any_order(entry, order, blanks=blanks), encoded))
        expected[entry] = value
    assert latest_source_offsets(records, "o") == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((5, 10), (9, 20), 9), ((5, 30), (9, 20), 5), ((5, 20), (9, 20), 5), ((None, 20), (9, 20), None), ((None, 10), (9, 20), 9)],
)
def test_differently_ordered_keys_lie_in_different_partitions(
    one: tuple[int | None, int], other: tuple[int | None, int], expected: int | None
) -> None:
    keys = [encode_source_key(ORDERS), any_order(ORDERS, ["topic", "partition", "cluster"], blanks=False)]
    records = [
        Written(partition, 7, timestamp, keys[partition], None if value is None else encode_source_offset(value))
        for partition, (value, timestamp) in enumerate([one, other])
    ]
    assert latest_source_offsets(records, "o") == latest_source_offsets(records[::-1], "o") == {ORDERS: expected}
