"""State of the releases before this one is read, and means what it meant; what is written now is written as they read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.copying.request import RunRequest
from ferry.errors import NewerFormat, UnreadableRecord
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.losses import acknowledgement
from ferry.ledger.receipts import KEY_FIELDS, VALUE_FIELDS, Receipt, ReceiptKind, covered, decode_receipt, encode_receipt, holds_more
from ferry.ledger.runs_topic import RECORD_VERSION, RunRecords, fold_run_record
from ferry.ledger.state import Claim, FlowRecord, Head, LossAcknowledged, OwnedAcl, SyncDone, decode_state, encode_state, fold_state
from ferry.pipeline.report_reading import report_of
from ferry.translation.offset_map import LogBounds, OffsetMap

pytestmark = pytest.mark.unit

RELEASE: dict[str, Any] = json.loads(Path(__file__).with_name("0.1.0.json").read_text(encoding="utf-8"))
LOST, ORDERS = "16a5b331-1d20-4238-862a-9a49c9b6e365", "030eec43-5499-4f77-a891-3542f4e8319e"
LEDGER_ID, LOST_THERE, ORDERS_THERE = (
    "9699fc70-6c8b-4580-a053-a841f9861060",
    "589119fe-b2fc-4d1a-9ba4-a16bc99f0132",
    "7e2ae39b-4615-4f38-a743-846d03281437",
)


def pairs(entries: list[dict[str, Any]]) -> list[tuple[bytes, bytes]]:
    return [(entry["key"].encode(), entry["value"].encode()) for entry in entries]


LEDGER, STATE, RUNS = (pairs(RELEASE["topics"][kind]) for kind in ("ledger", "state", "runs"))
RECEIPTS = [decode_receipt(*pair) for pair in LEDGER]
# Fields that this release had not got.
ADDED = {"remote_epoch", "repeated", "rerouted"}
EVERYTHING = [*LEDGER, *pairs(RELEASE["constructed"]["ledger"])]


def of(topic: str, partition: int) -> list[Receipt]:
    return [receipt for receipt in RECEIPTS if (receipt.topic, receipt.partition) == (topic, partition)]


def run_records(run_id: str) -> RunRecords:
    found = RunRecords()
    for key, value in RUNS:
        if key == run_id.encode():
            found = fold_run_record(found, value, "topic runs")
    return found


def test_receipts_say_what_was_done() -> None:
    said = [
        (one.kind.value, one.upstream_start, one.upstream_end, one.runs, one.counters.records, one.run_id, one.series)
        for one in of("orders", 1)
    ]
    assert said == [
        ("seed", 10, 10, (), 0, "run-1", ""),
        ("backfilled", 0, 10, ((0, 0, 10),), 10, "run-3", ""),
        ("seed", 5, 5, (), 0, "seed-1", ""),
        ("copied", 5, 10, ((5, 11, 5),), 5, "run-4", "seed-1"),
    ]
    assert covered(of("orders", 0)) == ((0, 17),)
    assert covered(of("lost", 0)) == ((0, 20),)
    (loss,) = (one for one in RECEIPTS if one.kind is ReceiptKind.LOSS)
    assert (loss.upstream_start, loss.upstream_end, loss.source_topic_id, loss.remote_topic_id) == (10, 15, LOST, LOST_THERE)
    assert of("orders", 0)[1].counters.replication_latency_ms == MinMeanMax(8323, 8323.0, 8323, 5)


def test_offsets_are_translated() -> None:
    """Two offsets of `orders` went to an aborted transaction; records 0-9 were appended behind the others."""
    told = OffsetMap(of("orders", 0), LogBounds(0, 0, 17, 17, exactly_once=True))
    assert told.translate(12).image == 0
    assert told.translate(16).image == 4
    assert told.invert(6).image == 0


def test_state_holds_every_position() -> None:
    state = fold_state(STATE)
    assert state.heads == {
        ("lost", 0): Head("lost", 0, 20, LOST, "A.lost", LOST_THERE, LEDGER_ID, 0, "run-2"),
        ("orders", 0): Head("orders", 0, 17, ORDERS, "A.orders", ORDERS_THERE, LEDGER_ID, 0, "run-3"),
        ("orders", 1): Head("orders", 1, 10, ORDERS, "A.orders", ORDERS_THERE, LEDGER_ID, 0, "run-4", "seed-1"),
    }
    assert state.flow == FlowRecord("A->B", 8, tidied=0, exactly_once=True)
    assert state.claims == {
        topic: Claim(topic, identity, "A->B") for topic, identity in (("A.lost", LOST_THERE), ("A.orders", ORDERS_THERE))
    }
    assert state.acknowledged == {LossAcknowledged(LOST, 0, 10)} == {acknowledgement(one) for one in of("lost", 0)[2:3]}
    assert state.syncs == {"topics": SyncDone("topics", 1795277004894, "run-4"), "configs": SyncDone("configs", 1795277005412, "run-4")}


def test_a_run_is_reported() -> None:
    records = run_records("run-2")
    assert records.opened is not None
    assert records.opened.ledger_ends == {0: 3, 1: 0, 2: 2, 3: 2, 4: 0}
    own = [receipt for receipt in RECEIPTS if receipt.run_id == "run-2"]
    report = report_of("A->B", RunRequest("A->B", "run-2"), records, own, fold_state(()))
    assert [(one.topic, one.partition, one.upstream_start, one.upstream_end, one.counters.records) for one in report.partitions] == [
        ("lost", 0, 15, 20, 5),
        ("orders", 0, 10, 17, 5),
    ]
    assert [loss.where for loss in report.losses] == ["lost-0 offsets 10 to 14"]
    assert (report.seconds, report.cpu_seconds, report.failed) == (0.752, 1.21, ())
    assert set(run_records("run-4").syncs) == {"topics", "configs"}


def test_every_kind_and_field_of_a_receipt() -> None:
    _, rich, *kinds, found = [decode_receipt(*pair) for pair in pairs(RELEASE["constructed"]["ledger"])]
    assert [(one.kind, one.reason) for one in kinds] == [(kind, f"why {kind.value}") for kind in ReceiptKind]
    assert (found.kind, found.found, found.series) == (ReceiptKind.SEED, 42, "run-3")
    assert (rich.topic, rich.partition, rich.upstream_start, rich.upstream_end, rich.downstream_end) == ("t", 3, 100, 200, 900)
    assert (rich.runs, rich.written) == (((100, 700, 40), (150, 745, 50)), ((740, 745), (795, 900)))
    assert rich.counters == Counters(
        records=93,
        bytes=4096,
        transactions=2,
        forwarded=2,
        reframed=1,
        handled=4,
        dropped=5,
        added=3,
        from_target=7,
        record_age_ms=MinMeanMax(5, 7.5, 10, 93),
        replication_latency_ms=MinMeanMax(6, 8.5, 11, 93),
    )
    assert (rich.source_epoch, rich.series) == (6, "run-0")
    assert (rich.min_timestamp, rich.max_timestamp) == (1_700_000_000_000, 1_700_000_100_000)


def test_an_acl_that_ferry_created() -> None:
    (pair,) = pairs(RELEASE["constructed"]["state"])
    acl = ("User:reader", "*", "READ", "ALLOW")
    wanted = OwnedAcl(
        AclBinding(AclResource.TOPIC, "A.t", AclPattern.LITERAL, *acl), (AclBinding(AclResource.TOPIC, "t", AclPattern.LITERAL, *acl),)
    )
    assert decode_state(*pair) == wanted


def test_while_the_version_is_the_same_the_same_bytes_are_written() -> None:
    """The release reads what is written now: a change of these bytes is a change of the format."""
    assert FORMAT_VERSION == RECORD_VERSION == 1
    assert [encode_receipt(decode_receipt(*pair)) for pair in EVERYTHING] == EVERYTHING
    assert [encode_state(decode_state(*pair)) for pair in STATE] == STATE
    assert {name for key, _ in EVERYTHING for name in json.loads(key)} == KEY_FIELDS.keys()
    assert {name for _, value in EVERYTHING for name in json.loads(value)} == VALUE_FIELDS.keys() - ADDED


@given(st.sampled_from(EVERYTHING), st.text(min_size=1), st.integers() | st.text())
def test_fields_that_a_newer_release_adds_to_a_receipt(pair: tuple[bytes, bytes], name: str, content: object) -> None:
    key, value = pair
    known = json.loads(value)
    assume(name in known or name not in VALUE_FIELDS)  # an optional field of this release is no addition
    added = json.dumps({name: content, **known}).encode()
    assert decode_receipt(key, added) == decode_receipt(key, value)
    assert holds_more(key, added) == (name not in VALUE_FIELDS)


@given(st.sampled_from(STATE), st.integers() | st.text())
def test_fields_that_a_newer_release_adds_to_the_state(pair: tuple[bytes, bytes], content: object) -> None:
    key, value = pair
    assert decode_state(key, json.dumps({"added": content, **json.loads(value)}).encode()) == decode_state(key, value)


@given(st.sampled_from(RUNS), st.integers() | st.text())
def test_fields_that_a_newer_release_adds_to_a_run(pair: tuple[bytes, bytes], content: object) -> None:
    _, value = pair
    added = json.dumps({"added": content, **json.loads(value)}).encode()
    assert fold_run_record(RunRecords(), added, "runs") == fold_run_record(RunRecords(), value, "runs")


@pytest.mark.parametrize("version", [2, 99])
def test_a_newer_version_is_refused_by_topic_and_version(version: int) -> None:
    message = rf"cluster B: topic x holds format version {version}, and this Ferry \(.*\) understands versions up to 1: .* upgrade"

    def newer(value: bytes) -> bytes:
        return json.dumps({**json.loads(value), "version": version}).encode()

    for key, value in EVERYTHING:
        with pytest.raises(NewerFormat, match=message):
            decode_receipt(key, newer(value), "cluster B: topic x")
    for key, value in STATE:
        with pytest.raises(NewerFormat, match=message):
            decode_state(key, newer(value), "cluster B: topic x")
    for _, value in RUNS:
        with pytest.raises(NewerFormat, match=message):
            fold_run_record(RunRecords(), newer(value), "cluster B: topic x")


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"version":true}', b'{"version":0}', b'{"version":1}', b'{"version":1,"kind":"new"}']
)
def test_what_is_no_record_of_a_run_is_damaged(value: bytes) -> None:
    with pytest.raises(UnreadableRecord, match="topic x") as found:
        fold_run_record(RunRecords(), value, "cluster B: topic x")
    assert not isinstance(found.value, NewerFormat)
