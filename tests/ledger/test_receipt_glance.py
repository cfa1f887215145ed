"""A glance at a receipt says what reading it whole says, or there is none; what it lets readers pass over does not matter to them."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.copying import guard_reading
from ferry.copying.loop_guard import GuardDraft
from ferry.errors import FerryError
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.receipts import KEY_FIELDS, VALUE_FIELDS, Glance, Receipt, ReceiptKind, decode_receipt, encode_receipt, glance, holds_more
from ferry.ledger.topic_ids import PartitionPair

pytestmark = pytest.mark.unit

TOPICS = st.sampled_from(["t", "A.t", "of-nobody", 'od"d', "\u00fc"])
ID = str(UUID(int=7))


@st.composite
def receipts(draw: st.DrawFn) -> Receipt:
    count, handled = draw(st.integers(0, 9)), draw(st.sampled_from([0, 0, 3]))
    delays = MinMeanMax(1, 2.5, 4e30, 3) if draw(st.booleans()) else None
    return Receipt(
        kind=draw(st.sampled_from(list(ReceiptKind))),
        topic=draw(TOPICS),
        partition=draw(st.integers(0, 2)),
        source_topic_id=draw(st.sampled_from([ID, "another"])),
        remote_topic=draw(TOPICS),
        remote_topic_id=draw(st.sampled_from([ID, "another"])),
        upstream_start=draw(st.integers(0, 2**62)),
        upstream_end=100,
        downstream_end=draw(st.integers(-1, 9)),
        runs=((5, 7, count),) if count else (),
        counters=Counters(
            records=count,
            bytes=draw(st.integers(0, 2**62)),
            handled=handled,
            from_target=draw(st.sampled_from([0, 0, 2])),
            rerouted=draw(st.sampled_from([0, 0, 3])),
            record_age_ms=delays,
            replication_latency_ms=delays,
        ),
        written=((7, 7 + handled),) if handled else (),
        found=draw(st.sampled_from([-1, -1, 8])),
        remote_epoch=draw(st.sampled_from([-1, -1, 0, 8])),
        run_id=draw(st.text(max_size=3)),
        reason=draw(st.sampled_from(["", "", 'said "records":99', "gone"])),
        series=draw(st.sampled_from(["", "run-7"])),
        repeated=draw(st.sampled_from([(), (), ((3, 5), (6, 7))])),
    )


EVERY_FIELD = Receipt(
    **{field.name: 1 for field in fields(Receipt) if field.type is int},
    **{field.name: "x" for field in fields(Receipt) if field.type is str},
    kind=ReceiptKind.BACKFILLED,
    runs=((5, 7, 4),),
    written=((7, 9),),
    repeated=((3, 5),),
    counters=Counters(*[1] * len(Counters()[:-2]), MinMeanMax(1, 2.5, 4, 3), MinMeanMax(1, 2.5, 4, 3)),
)


def test_a_receipt_with_every_field_is_read_at_a_glance() -> None:
    assert glance(*encode_receipt(replace(EVERY_FIELD, found=-1))) == Glance("backfilled", "x", 1, "x", 1, "x", "x", 1, 1, "x")
    key, value = encode_receipt(EVERY_FIELD)
    assert json.loads(key).keys() == KEY_FIELDS.keys()
    assert json.loads(value).keys() == VALUE_FIELDS.keys()
    assert not holds_more(key, value)
    assert decode_receipt(key, value) == EVERY_FIELD


PLAIN = Receipt(
    ReceiptKind.COPIED,
    "t",
    3,
    ID,
    "A.t",
    ID,
    5,
    9,
    downstream_end=11,
    runs=((5, 7, 4),),
    counters=Counters(records=4, bytes=70),
    run_id="x",
)


def test_what_runs_write_has_a_glance() -> None:
    assert glance(*encode_receipt(PLAIN)) == Glance("copied", "t", 3, "A.t", 11, ID, ID, 5, 9, "")


@given(receipts())
def test_it_says_what_reading_it_whole_says(receipt: Receipt) -> None:
    seen = glance(*encode_receipt(receipt))
    if seen is not None:
        assert seen == tuple(getattr(receipt, name) for name in Glance._fields)
        assert receipt.found < 0


@given(st.data())
def test_one_damaged_byte_changes_no_answer(data: st.DataObject) -> None:
    pair = [bytearray(part) for part in encode_receipt(PLAIN)]
    part = pair[data.draw(st.integers(0, 1))]
    part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    key, value = (bytes(part) for part in pair)
    seen = glance(key, value)
    try:
        whole = decode_receipt(key, value)
    except FerryError:
        # What a glance does not look into: the runs, which nobody needs who passes over the receipt.
        assert seen is None or len(value.split(b'"runs":"')[1].split(b'"')[0]) > 0
    else:
        assert seen is None or seen == tuple(getattr(whole, name) for name in Glance._fields)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({}, {"version": FORMAT_VERSION + 1}),
        ({}, {"found": 3}),
        ({}, {"more": 1}),
        ({"kind": "newer"}, {}),
        ({"more": 1}, {}),
        ({}, {"records": "4"}),
        ({"topic": "\u00fc"}, {}),
    ],
)
def test_anything_else_is_read_whole(key: dict[str, Any], value: dict[str, Any]) -> None:
    changed = [
        json.dumps({**json.loads(part), **more}, separators=(",", ":"), sort_keys=True).encode()
        for part, more in zip(encode_receipt(PLAIN), (key, value), strict=True)
    ]
    assert glance(changed[0], changed[1]) is None


@given(receipts(), st.integers(0, 9))
def test_the_guard_against_loops_passes_over_nothing_that_it_needs(receipt: Receipt, low: int) -> None:
    record = InternalRecord(0, 0, 0, *encode_receipt(receipt))
    pairs = {name: PartitionPair(name, 0, UUID(ID), "t", UUID(ID)) for name in ("A.t", 'od"d')}
    drafts = {(name, number): GuardDraft(low) for name in pairs for number in (0, 1)}
    found = guard_reading.concerned(record, pairs, drafts, "there")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard_reading, "glance", lambda *_: None)
        assert guard_reading.concerned(record, pairs, drafts, "there") == found
