"""Records of a verify in the runs topic: what cannot be used is left out and said, and nothing fills the memory."""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from ferry.errors import NewerFormat
from ferry.verify import results_topic
from ferry.verify.comparison import RangeResult
from ferry.verify.results_topic import counts, fold_report, fold_results, is_range_result, report_records, result_record
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.unit

REPORT = VerifyReport("A->B", "r", "2026-01-01", "2026-01-02", counts={})
RESULT = RangeResult("k", "t", 0, 5)


def changed(value: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(value), **fields}).encode()


def packed(document: Mapping[str, Any] | bytes) -> bytes:
    """A report of one part."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    text = base64.b64encode(zlib.compress(data)).decode()
    return changed(report_records(REPORT)[0], result={"token": "x", "part": 0, "of": 1, "text": text})


@pytest.mark.parametrize(
    "record",
    [
        changed(result_record(RESULT), version=2),
        changed(result_record(RESULT), version=None),
        changed(result_record(RESULT), result={"key": "k"}),  # as the release before digests wrote it
        b"\xff",
        b"[]",
    ],
)
def test_a_result_that_cannot_be_used_is_compared_anew(record: bytes, caplog: pytest.LogCaptureFixture) -> None:
    other = RangeResult("other", "t", 1)
    with caplog.at_level(logging.WARNING):
        assert fold_results([record, result_record(other), *report_records(REPORT)], "topic x") == {"other": other}
    (said,) = caplog.messages
    assert said.startswith("topic x: 1 results of an earlier try cannot be used")


def test_a_result_of_a_range_is_known_by_its_first_bytes_in_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_range_result(result_record(RESULT))
    assert not any(map(is_range_result, report_records(REPORT)))
    monkeypatch.setattr(results_topic, "RECORD_VERSION", 12)
    assert is_range_result(result_record(RESULT))


@pytest.mark.parametrize(("hours", "stands"), [(0, True), (23, True), (25, False), (24 * 300, False), (-1, False)])
def test_old_results_are_compared_again(hours: int, stands: bool) -> None:
    now = 1_800_000_000_000
    assert counts(now - hours * 3_600_000, now) is stands


def test_a_newer_report_is_refused() -> None:
    for record in (changed(report_records(REPORT)[0], version=2), packed({**REPORT.document(), "version": 2})):
        with pytest.raises(NewerFormat, match="topic x holds format version 2"):
            fold_report([record], "topic x")


def test_the_last_whole_report_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_topic, "PART_BYTES", 40)
    later = VerifyReport("A->B", "again", "2026-01-01", "2026-01-02", counts={})
    first, second = report_records(REPORT), report_records(later)
    assert len(first) > 3
    interleaved = [*first[:2], *second, *first[2:-1]]
    assert fold_report(interleaved, "here") == later
    assert fold_report([*interleaved, first[-1]], "here") == REPORT
    assert fold_report(first[1:], "here") is None


def test_a_report_that_inflates_beyond_its_limit_is_not_read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(results_topic, "REPORT_BYTES", 100_000)
    good = report_records(REPORT)
    assert fold_report([*good, packed(b" " * 90_000 + b"7")], "here") == REPORT
    with caplog.at_level(logging.WARNING):
        assert fold_report([*good, packed({**REPORT.document(), "padding": " " * 100_000})], "here") == REPORT
    assert "does not end within 100,000 bytes" in caplog.text
