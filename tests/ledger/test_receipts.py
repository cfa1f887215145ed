"""Receipts survive the ledger unchanged; what is damaged or newer is refused by name; a split receipt says the same."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import UnreadableRecord
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.receipts import (
    REFUSED,
    RUNS_PER_RECEIPT,
    SETTLING,
    Receipt,
    ReceiptKind,
    covered,
    decode_receipt,
    encode_receipt,
    holds_more,
    is_loss,
    split_receipt,
)

pytestmark = pytest.mark.unit


def split(receipt: Receipt, limit: int) -> tuple[Receipt, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ferry.ledger.receipts.RUNS_PER_RECEIPT", limit)
        return split_receipt(receipt)


OFFSETS = st.integers(0, 2**62)


DELAYS = {"record_age_ms": MinMeanMax(1, 2.5, 4, 3), "replication_latency_ms": MinMeanMax(5, 6.5, 8, 2)}


@st.composite
def receipts(draw: st.DrawFn) -> Receipt:
    start = draw(st.integers(0, 2**40))
    upstream, downstream, runs = start, draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(0, 12))):
        upstream += draw(st.integers(1, 1000))  # a gap on one side at least: joined runs would be one
        downstream += draw(st.integers(0, 1000))
        count = draw(st.integers(1, 5_000))
        runs.append((upstream, downstream, count))
        upstream, downstream = upstream + count, downstream + count
    return Receipt(
        kind=draw(st.sampled_from(list(ReceiptKind))),
        topic=draw(st.text(max_size=20)),
        partition=draw(st.integers(0, 100_000)),
        source_topic_id=draw(st.text(max_size=5)),
        remote_topic=draw(st.text(max_size=20)),
        remote_topic_id=draw(st.text(max_size=5)),
        upstream_start=start,
        upstream_end=upstream + draw(st.integers(0, 9)),
        downstream_end=downstream if runs else -1,
        runs=tuple(runs),
        counters=Counters(
            records=sum(run[2] for run in runs),
            bytes=draw(OFFSETS),
            forwarded=draw(st.integers(0, 9)),
            reframed=draw(st.integers(0, 9)),
            transactions=draw(st.integers(0, 9)),
            from_target=draw(st.integers(0, 3)),
            dropped=draw(st.integers(0, 2)),
            **draw(st.sampled_from([{}, {}, DELAYS])),
        ),
        min_timestamp=draw(st.integers(-1, 2**62)),
        max_timestamp=draw(st.integers(-1, 2**62)),
        source_epoch=draw(st.integers(-1, 2**31 - 1)),
        remote_epoch=draw(st.sampled_from([-1, -1, 0, 2**31 - 1])),
        run_id=draw(st.text(max_size=9)),
        reason=draw(st.text(max_size=9)),
        series=draw(st.sampled_from(["", "", "run-7"])),
        found=draw(st.integers(-1, 3)),
    )


COUNTERS = Counters(records=4, transactions=1)
KEY, VALUE = encode_receipt(
    Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 5, 9, downstream_end=11, runs=((5, 7, 4),), counters=COUNTERS, run_id="x")
)


@given(receipts())
def test_round_trip(receipt: Receipt) -> None:
    assert decode_receipt(*encode_receipt(receipt)) == receipt


@given(receipts(), receipts())
def test_the_key_is_the_same_only_for_the_same_start_kind_and_series(first: Receipt, second: Receipt) -> None:
    def identity(entry: Receipt) -> tuple[object, ...]:
        return entry.source_topic_id, entry.topic, entry.partition, entry.upstream_start, entry.kind, entry.series

    assert (encode_receipt(first)[0] == encode_receipt(second)[0]) == (identity(first) == identity(second))


def test_a_newer_version_is_refused_and_says_what_to_do() -> None:
    newer = json.dumps({**json.loads(VALUE), "version": FORMAT_VERSION + 1}).encode()
    with pytest.raises(UnreadableRecord, match=f"format version {FORMAT_VERSION + 1}.*upgrade this one"):
        decode_receipt(KEY, newer)


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"end": None},
        {"runs": "%%"},
        {"runs": "A%Q=="},
        {"runs": base64.b64encode(b"\x09\x01").decode()},
        {"runs": base64.b64encode(b"\x01\xff").decode()},
        {"timestamps": [1]},
        {"timestamps": 3},
        {"records": "many"},
    ],
)
def test_a_damaged_value_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRecord):
        decode_receipt(KEY, json.dumps({**json.loads(VALUE), **change}).encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", VALUE),
        (b"[]", VALUE),
        (b"null", VALUE),
        (KEY, b"not json"),
        (KEY, b"[]"),
        (KEY, b"\xff\xfe"),
        (KEY.replace(b"copied", b"stolen"), VALUE),
    ],
)
def test_what_is_no_receipt_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode_receipt(key, value)


@given(receipts(), st.integers(1, 5))
def test_a_split_receipt_says_the_same(receipt: Receipt, limit: int) -> None:
    pieces = split(receipt, limit)
    assert sum((piece.runs for piece in pieces), ()) == receipt.runs
    assert [piece.upstream_start for piece in pieces[1:]] == [piece.upstream_end for piece in pieces[:-1]]
    assert (pieces[0].upstream_start, pieces[-1].upstream_end) == (receipt.upstream_start, receipt.upstream_end)
    assert pieces[-1].downstream_end == receipt.downstream_end
    assert {(piece.counters.record_age_ms, piece.counters.replication_latency_ms) for piece in pieces[1:]} <= {(None, None)}
    assert len(pieces) == max(1, -(-len(receipt.runs) // limit))
    for name in ("records", "bytes", "forwarded", "reframed", "transactions", "from_target"):
        assert sum(getattr(piece.counters, name) for piece in pieces) == getattr(receipt.counters, name)
    for piece in pieces:
        assert len(piece.runs) <= limit
        assert all(piece.upstream_start <= start and start + count <= piece.upstream_end for start, _, count in piece.runs)
    assert len({encode_receipt(piece)[0] for piece in pieces}) == len(pieces)


def test_the_largest_receipt_stays_far_below_the_usual_limit() -> None:
    runs = tuple((number * 4_000_000, number * 3_000_000_000, 2_000_000) for number in range(RUNS_PER_RECEIPT))
    end = runs[-1][0] + runs[-1][2]
    _, value = encode_receipt(Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 0, end, runs=runs))
    assert len(value) < 400_000


def test_receipts_of_one_partition_share_a_ledger_partition() -> None:
    assert len({TopicPartition("topic", 7).share(5) for _ in range(3)}) == 1
    assert {TopicPartition("topic", number).share(5) for number in range(5)} == set(range(5))
    assert [TopicPartition("orders", number).share(50) for number in range(3)] == [12, 13, 14]


def test_receipts_of_handled_records_and_of_an_older_ferry() -> None:
    handled = Receipt(
        ReceiptKind.COPIED, "t", 0, "id", "A.t", "remote", 0, 9, 20, ((1, 10, 1), (3, 14, 2)), Counters(6, handled=2, dropped=6, added=3)
    )
    handled = replace(handled, written=((10, 16),))
    key, value = encode_receipt(handled)
    assert decode_receipt(key, value) == handled
    older = json.loads(encode_receipt(replace(handled, counters=COUNTERS))[1])
    assert "handled" not in older
    assert decode_receipt(key, json.dumps(older).encode()).counters.dropped == 0
    first, second = split(handled, 1)
    assert (first.downstream_end, first.counters) == (14, Counters(4, handled=2, dropped=6, added=3))
    assert (second.downstream_end, second.counters) == (20, Counters(2))


def test_pieces_of_handled_records_count_no_records_of_others_between_them() -> None:
    """Where names stay as they are, producers of the remote topic write between the batches of one transaction."""
    runs = ((0, 0, 2), (3, 7, 2), (6, 14, 1), (7, 17, 1), (9, 26, 2))
    handled = replace(
        Receipt(ReceiptKind.COPIED, "t", 0, "id", "t", "remote", 0, 11, 29, runs, Counters(11, handled=5, added=3)),
        written=((14, 18), (26, 29)),
    )
    pieces = split(handled, 2)
    assert [(piece.counters.records, piece.counters.added, piece.downstream_end) for piece in pieces] == [(4, 0, 9), (4, 2, 18), (3, 1, 29)]
    assert [piece.written for piece in pieces] == [(), (), handled.written]
    alone = split(handled, 1)
    assert [(piece.counters.records, piece.counters.added, piece.downstream_end) for piece in alone] == [
        (2, 0, 2),
        (2, 0, 9),
        (3, 2, 17),
        (1, 0, 18),
        (3, 1, 29),
    ]


@pytest.mark.parametrize(
    ("kind", "reason", "loss"),
    [
        (ReceiptKind.LOSS, "", True),
        (ReceiptKind.SKIPPED, f"{REFUSED}: too large", True),
        (ReceiptKind.SKIPPED, "not there", False),
        (ReceiptKind.COPIED, f"{REFUSED}: too large", False),
        (ReceiptKind.COPIED, "", False),
    ],
)
def test_what_is_a_loss(kind: ReceiptKind, reason: str, loss: bool) -> None:
    assert is_loss(Receipt(kind, "t", 0, "s", "A.t", "r", 5, 9, reason=reason)) == loss


@pytest.mark.parametrize(
    ("reason", "by_operator"),
    [("operator: seeds.csv", True), ("start policy earliest", False), ("MirrorMaker 2: connector operator: x", False), ("", False)],
)
def test_what_an_operator_wrote(reason: str, by_operator: bool) -> None:
    """Ledgers hold these words: they may not change from release to release."""
    assert Receipt(ReceiptKind.SEED, "t", 0, "s", "A.t", "r", 5, 5, reason=reason).by_operator == by_operator


def test_the_same_receipt_has_the_same_bytes() -> None:
    """Compaction and tombstones go by the key: it may not change from release to release."""
    assert KEY == b'{"id":"s","kind":"copied","partition":0,"start":5,"topic":"t"}'
    assert VALUE.startswith(b'{"bytes":0,"downstream_end":11,"end":9,"forwarded":0,"reason":"","records":4,')
    assert encode_receipt(Receipt(ReceiptKind.SEED, "t", 0, "s", "A.t", "r", 5, 5))[1].count(b'"runs":""') == 1
    with pytest.raises(UnreadableRecord, match="the ledger: record b'' is not a receipt"):
        decode_receipt(b"", VALUE)


def test_fields_of_a_newer_ferry_are_noticed_in_key_and_value() -> None:
    """Also where a receipt has every field that this Ferry knows: nothing is left out then."""
    counters = Counters(records=2, handled=1, from_target=1, **DELAYS)
    whole = Receipt(ReceiptKind.COPIED, "t", 0, "i", "A.t", "r", 0, 9, counters=counters, found=3, series="s")
    key, value = encode_receipt(replace(whole, written=((0, 1),)))
    for one, other in ((key, value), encode_receipt(Receipt(ReceiptKind.SEED, "t", 0, "i", "A.t", "r", 0, 0))):
        assert not holds_more(one, other)
        more = {name: json.dumps({**json.loads(data), "more": 1}).encode() for name, data in (("key", one), ("value", other))}
        assert holds_more(more["key"], other)
        assert holds_more(one, more["value"])


def test_what_is_usual_is_not_written_down() -> None:
    key, value = encode_receipt(Receipt(ReceiptKind.COPIED, "t", 3, "i", "A.t", "r", 5, 9))
    assert key == b'{"id":"i","kind":"copied","partition":3,"start":5,"topic":"t"}'
    assert not {"handled", "from_target", "found", "written", "delays"} & json.loads(value).keys()
    half = Receipt(ReceiptKind.COPIED, "t", 3, "i", "A.t", "r", 5, 9, counters=Counters(record_age_ms=DELAYS["record_age_ms"]))
    assert decode_receipt(*encode_receipt(half)).counters.record_age_ms is None
    both = replace(half, counters=Counters(**DELAYS))
    assert decode_receipt(*encode_receipt(both)) == both


def test_as_many_runs_as_fit_stay_one_receipt() -> None:
    runs = tuple((10 * index, 10 * index, 2) for index in range(6))
    receipt = Receipt(ReceiptKind.COPIED, "t", 0, "i", "A.t", "r", 0, 99, downstream_end=52, runs=runs, counters=Counters(12))
    assert split(receipt, 6) == (receipt,)
    found = [(piece.upstream_start, piece.upstream_end, piece.downstream_end) for piece in split(receipt, 3)]
    assert found == [(0, 30, 22), (30, 99, 52)]


def test_the_place_of_a_damaged_record_is_named() -> None:
    with pytest.raises(UnreadableRecord, match=r"^cluster B: topic t holds a record without a format version"):
        decode_receipt(b"{}", b"{}", "cluster B: topic t")


SETTLED = st.lists(
    st.builds(
        lambda kind, start, length: Receipt(kind, "t", 0, "s", "A.t", "r", start, start + length),
        st.sampled_from(list(ReceiptKind)),
        st.integers(0, 40),
        st.integers(0, 12),
    ),
    max_size=12,
)


@given(SETTLED)
def test_covered_is_the_union_in_order_and_with_gaps_between(receipts: list[Receipt]) -> None:
    settling = [receipt for receipt in receipts if receipt.kind in SETTLING]
    ranges = covered(receipts)
    assert {offset for start, end in ranges for offset in range(start, end)} == {
        offset for receipt in settling for offset in range(receipt.upstream_start, receipt.upstream_end)
    }
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(set(edges))


def test_seeds_cover_nothing() -> None:
    assert covered([Receipt(ReceiptKind.SEED, "t", 0, "s", "A.t", "r", 5, 9)]) == ()
