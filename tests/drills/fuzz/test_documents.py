"""Damaged documents of Ferry's and MirrorMaker 2's own topics are read as what they say, or refused by their decoder's error."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.fuzz.damage import damaged, damaged_json, fuzzed

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, NewerFormat, UnreadableRecord
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.loss_index import IndexedShare, LossIndex
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.ledger.run_report import PartitionFailure
from ferry.ledger.runs_topic import RunRecords, fold_run_record
from ferry.ledger.state import (
    Claim,
    CutEnds,
    FlowRecord,
    GroupTaken,
    Head,
    LossAcknowledged,
    OwnedAcl,
    RecoveryRecord,
    Start,
    SyncDone,
    Writer,
    decode_state,
    encode_state,
)
from ferry.verify.comparison import Difference, DifferenceKind, NotCovered, RangeResult, VerifiedRange
from ferry.verify.request import DigestKind, VerifyRequest
from ferry.verify.results_topic import fold_report, fold_results, report_records, result_record
from ferry.verify.verify_report import VerifyReport
from ferry.wire.connect_offsets import SourcePartition, decode_source_key, decode_source_offset, encode_source_key, encode_source_offset
from ferry.wire.internal_records import Checkpoint, Heartbeat, OffsetSync
from ferry.wire.runs import decode_runs, encode_runs

pytestmark = pytest.mark.unit

COUNTERS = Counters(57, 900, 1, 1, 2, 3, 4, 5, 2, 6, MinMeanMax(1, 2.5, 3, 57), MinMeanMax(4, 5.0, 6, 57))
RECEIPT = Receipt(
    ReceiptKind.COPIED, "t", 3, "id", "A.t", "rid", 7, 107, 57, ((7, 0, 50), (60, 50, 7)), COUNTERS, ((50, 57),), 9, 11, 12, 8,
    run_id="run", reason="why", series="series",
)  # fmt: skip
ACL = AclBinding.of_document([AclResource.TOPIC, "t", AclPattern.LITERAL, "User:u", "*", "READ", "ALLOW"])
STATES = (
    Head("t", 1, 5, "id", "A.t", "rid", "lid", 4, "run", "series"),
    Head("t", 1, 5, "id", "A.t", "rid", "lid", remote_end=7),
    FlowRecord("A->B", 8, 100, exactly_once=False),
    Start("t", "id", (5, -1)),
    Start(),
    Writer("ferry-A->B-run", 7),
    FlowRecord("A->B", 8, losses=LossIndex("11111111-1111-1111-1111-111111111111", 9, (IndexedShare(0, 9, 1, (3, 8)),))),
    Claim("A.t", "rid", "A->B"),
    SyncDone("acls", 17, "run"),
    LossAcknowledged("id", 1, 5),
    OwnedAcl(ACL, (ACL,)),
    RecoveryRecord("A->B", "failover 1", "failover 1", "failed-over", "done", 5, 4, "run", "anna", "cluster"),
    GroupTaken("g", "failover 1", (("A.t", 0, 7),), done=True),
    CutEnds("t", "failover 1", (4, 0), "id"),
)
TEXTS, NUMBERS = {"str"}, {"int"}


def assert_typed(entry: Any) -> None:
    """Texts are texts and numbers numbers: what is read elsewhere than a decoder relies on it."""
    for field in fields(entry):
        value = getattr(entry, field.name)
        if field.type in TEXTS:
            assert isinstance(value, str), field.name
            value.encode()  # a lone surrogate could not be written again
        if field.type in NUMBERS:
            assert type(value) is int, field.name


@fuzzed
@given(
    key=damaged_json(st.just(encode_receipt(RECEIPT)[0])), value=damaged_json(st.just(encode_receipt(RECEIPT)[1])), which=st.integers(0, 2)
)
def test_receipts(key: bytes, value: bytes, which: int) -> None:
    valid = encode_receipt(RECEIPT)
    pair = (key if which != 1 else valid[0], value if which != 0 else valid[1])
    try:
        found = decode_receipt(*pair)
    except (UnreadableRecord, NewerFormat):
        return
    assert_typed(found)
    assert decode_receipt(*encode_receipt(found)) == found


@fuzzed
@given(data=st.data(), entry=st.sampled_from(STATES), which=st.integers(0, 2))
def test_state(data: st.DataObject, entry: Any, which: int) -> None:
    key, value = encode_state(entry)
    if which != 1:
        key = data.draw(damaged_json(st.just(key)))
    if which != 0:
        value = data.draw(damaged_json(st.just(value)))
    try:
        found = decode_state(key, value)
    except (UnreadableRecord, NewerFormat):
        return
    assert_typed(found)
    assert decode_state(*encode_state(found)) == found
    hash(found)


RUN_RECORDS = tuple(
    json.dumps({"version": 1, "run_id": "r", **document}).encode()
    for document in (
        {"kind": "opened", "started": "2026-01-01", "bound": "latest", "ledger_ends": {"0": 5}},
        {"kind": "sync", "sync": "acls", "outcome": {"done": 1}},
        {
            "kind": "result",
            "finished": "x",
            "seconds": 1.0,
            "cpu_seconds": 2.0,
            "failed": [{"topic": "t", "partition": 1, "error": "E", "problem": "p"}],
            "skipped": [{"what": "w", "reason": "r"}],
            "superseded": None,
        },
    )
)


@fuzzed
@given(value=damaged_json(st.sampled_from(RUN_RECORDS)))
def test_run_records(value: bytes) -> None:
    try:
        found = fold_run_record(RunRecords(), value, "here")
    except (UnreadableRecord, NewerFormat):
        return
    for entry in (found.opened, found.result, *(found.result.failed if found.result else ())):
        if entry is not None:
            assert_typed(entry)


REQUEST = RunRequest("A->B", "r", topics=("t",)).to_json().encode()


@fuzzed
@given(value=damaged_json(st.just(REQUEST)))
def test_run_requests(value: bytes) -> None:
    try:
        found = RunRequest.from_json(value.decode("latin-1"))
    except ArgumentError:
        return
    assert RunRequest.from_json(found.to_json()) == found
    assert isinstance(found.flow, str)
    assert isinstance(found.run_id, str)


VERIFY_REQUEST = VerifyRequest("A->B", "r", ("t",), (3,), digest=DigestKind.RECORDS).to_json().encode()


@fuzzed
@given(value=damaged_json(st.just(VERIFY_REQUEST)))
def test_verify_requests(value: bytes) -> None:
    try:
        found = VerifyRequest.from_json(value.decode("latin-1"))
    except ArgumentError:
        return
    assert VerifyRequest.from_json(found.to_json()) == found
    assert_typed(found)


DIFFERENCE = Difference("t", 3, "A.t", 7, -1, DifferenceKind.MISSING, "why")
NOT_COVERED = NotCovered("t", 3, 1, 2, "why")
VERIFIED = VerifiedRange("t", 3, "A.t", (5, 10), (7, 12), 1, 1, 5, 1, DigestKind.RECORDS, "ab", "cd")
RESULT = RangeResult("k", "t", 3, 5, 10, 3, {"missing": 1}, (DIFFERENCE,), (NOT_COVERED,), VERIFIED)
FAILED = (PartitionFailure("t", 3, "E", "p"),)
REPORT = VerifyReport("A->B", "r", "x", "y", 1, 0, 5, 10, 3, 1.5, 2.5, {"missing": 1}, (VERIFIED,), (DIFFERENCE,), (NOT_COVERED,), FAILED)


def assert_all_typed(found: RangeResult | VerifyReport) -> None:
    verified = (found.verified,) if isinstance(found.verified, VerifiedRange) else found.verified or ()
    for entry in (found, *found.differences, *found.not_covered, *verified):
        assert_typed(entry)


@fuzzed
@given(value=damaged_json(st.just(result_record(RESULT))))
def test_verify_results(value: bytes) -> None:
    """Of what cannot be read nothing is known, so it is compared anew; the others count."""
    other = replace(RESULT, key="other")
    found = fold_results([value, result_record(other)], "here")
    assert found["other"] == other
    for result in found.values():
        assert_all_typed(result)
        assert fold_results([result_record(result)], "here") == {result.key: result}


@fuzzed
@given(value=damaged_json(st.just(report_records(REPORT)[0])), inner=damaged_json(st.just(json.dumps(REPORT.document()).encode())))
def test_verify_reports(value: bytes, inner: bytes) -> None:
    envelope = json.loads(report_records(REPORT)[0])
    envelope["result"]["text"] = base64.b64encode(zlib.compress(inner)).decode()
    for record in (value, json.dumps(envelope).encode()):
        try:
            found = fold_report([report_records(REPORT)[0], record], "here")
        except NewerFormat:
            continue
        assert found is not None
        assert_all_typed(found)
        assert fold_report(report_records(found), "here") == found


SOURCE = SourcePartition("MirrorSourceConnector", "A", "t", 3)


@fuzzed
@given(key=damaged_json(st.just(encode_source_key(SOURCE))), value=damaged_json(st.just(encode_source_offset(17))))
def test_connect_offsets(key: bytes, value: bytes) -> None:
    found = decode_source_key(key)  # of another connector when it is none of MirrorMaker 2's
    assert found is None or decode_source_key(encode_source_key(found)) == found
    try:
        offset = decode_source_offset(value)
    except ValueError:
        return
    assert offset is None or offset >= 0


MM2_RECORDS = (Heartbeat("A", "B", 1_700_000_000_000), Checkpoint("g", "A.t", 3, 5, 4, "m"), OffsetSync("t", 3, 5, 4))


@fuzzed
@given(data=st.data(), record=st.sampled_from(MM2_RECORDS))
def test_internal_records(data: st.DataObject, record: Any) -> None:
    key = data.draw(damaged(st.just(record.encode_key())) | st.none())
    value = data.draw(damaged(st.just(record.encode_value())) | st.none() | st.just(record.encode_value()))
    try:
        found = type(record).decode(key, value)
    except ValueError:
        return
    assert key is not None
    assert value is not None
    # What follows is ignored, as MirrorMaker 2 ignores it; all else is what was there.
    assert key.startswith(found.encode_key())
    assert value.startswith(found.encode_value())


@pytest.mark.parametrize("record", MM2_RECORDS[:2], ids=lambda record: type(record).__name__)
def test_another_version_is_refused(record: Any) -> None:
    for version in (b"\x00\x01", b"\xff\xff"):
        with pytest.raises(ValueError, match="version"):
            type(record).decode(record.encode_key(), version + record.encode_value()[2:])


RUNS = encode_runs([(5, 0, 3), (10, 5, 300), (1 << 40, 1 << 39, 1)])


@fuzzed
@given(data=damaged(st.just(RUNS)))
def test_runs(data: bytes) -> None:
    try:
        found = decode_runs(data)
    except ValueError:
        return
    assert decode_runs(encode_runs(found)) == found
