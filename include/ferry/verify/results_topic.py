"""Results of a verify in the runs topic: another try with the same run id reads them, and compares only the other ranges.

No decision about copied data depends on them, so they are written without a transaction. A user who may only read can verify too, but
cannot continue later. The report of a Spark job is here as well, in parts that fit into records.

A result only saves work. Ferry ignores a result that is damaged, older than a day, or in the format of another release, and compares the
range again. (In a day a log may change.) Ferry ignores a damaged report too. A report of a newer format is an error, because there is no
other one.
"""

import base64
import json
import logging
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from ferry import clock
from ferry.clusters.logs.internal_producer import append_records, ask_identity
from ferry.errors import FerryError, NewerFormat, UnreadableRecord
from ferry.ledger.formats import place_of, require_version
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.runs_topic import VERIFY_PREFIX
from ferry.verify.comparison import RangeResult
from ferry.verify.verify_report import REPORT_VERSION, VerifyReport
from ferry.wire.strict_json import number, read_as, read_document, text

log = logging.getLogger(__name__)

RECORD_VERSION = 1
# Each write costs a round trip. After a kill the work of at most this time is repeated.
WRITE_EVERY_SECONDS = 5.0
# Compressed text in one record, which must be well below the usual max.message.bytes of 1 MiB.
PART_BYTES = 500_000
# Older results do not count: a person may clear an old run in Airflow.
RESULT_MILLISECONDS = 24 * 3600 * 1000
# A report of 100,000 ranges has some 50 MB; a damaged record must not fill the reader's memory.
REPORT_BYTES = 256 << 20

_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, zlib.error)


class ResultWriter:
    """Writes results in batches, and the rest at the end. A context manager."""

    def __init__(self, opened: OpenFlow, run_id: str) -> None:
        self._opened = opened
        self._run_id = run_id
        self._waiting: list[tuple[bytes, bytes]] = []
        self._written = clock.monotonic()
        self._refused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._write()

    def add(self, result: RangeResult) -> None:
        """Write `result` soon. A result with a problem is not written, so another try compares the range again."""
        if result.problem is None:
            self._waiting.append((_key(self._run_id), result_record(result)))
        if clock.monotonic() - self._written > WRITE_EVERY_SECONDS:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._refused:
            try:
                append_records(self._opened.target, {self._opened.flow.runs_topic: waiting})
            except FerryError as problem:
                self._refused = True
                log.warning("results could not be written, so another try of %s begins anew: %s", self._run_id, problem)
        self._written = clock.monotonic()


def read_finished(opened: OpenFlow, run_id: str) -> dict[str, RangeResult]:
    """Results of earlier tries on the last day, by range key."""
    now = clock.time_ms()
    current = (value for moment, value in _values(opened, run_id) if counts(moment, now))
    return fold_results(current, place_of(opened.flow.target, opened.flow.runs_topic))


def counts(moment: int, now: int) -> bool:
    """Whether a result of time `moment` still counts at `now`, both in ms (pure). A time in the future does not count: it gives no age."""
    return now - RESULT_MILLISECONDS < moment <= now


def read_report(opened: OpenFlow, run_id: str) -> VerifyReport | None:
    """The last complete report; None: there is none. NewerFormat."""
    return fold_report((value for _, value in _values(opened, run_id)), place_of(opened.flow.target, opened.flow.runs_topic))


def fold_results(values: Iterable[bytes], where: str) -> dict[str, RangeResult]:
    """The results among a verify's records by range key (pure). `where`: as of formats.place_of."""
    found, problems = {}, []
    for value in values:
        try:
            entry = read_document(value)
            if entry["kind"] == "range":
                require_version(entry, where, RECORD_VERSION)
                result = RangeResult.of_document(entry["result"])
                found[result.key] = result
        except (UnreadableRecord, NewerFormat, *_DAMAGED) as problem:
            problems.append(problem)
    if problems:
        log.warning("%s: %d results of an earlier try cannot be used: %r", where, len(problems), problems[0])
    return found


def fold_report(values: Iterable[bytes], where: str) -> VerifyReport | None:
    """The last complete report among a verify's records (pure). NewerFormat. `where`: as of formats.place_of."""
    parts: dict[str, dict[int, str]] = {}
    found = None
    for value in values:
        try:
            entry = read_document(value)
            if entry["kind"] != "report":
                continue
            require_version(entry, where, RECORD_VERSION)
            part = entry["result"]
            known, count = parts.setdefault(text(part["token"]), {}), number(part["of"])
            known[number(part["part"])] = text(part["text"])
            if len(known) == count:
                document = _inflated("".join(known[place] for place in range(count)))
                require_version(document, where, REPORT_VERSION)
                found = read_as(VerifyReport, document)
        except NewerFormat:
            raise
        except (UnreadableRecord, *_DAMAGED) as problem:
            log.warning("%s: a report is not readable: %r", where, problem)
    return found


def write_report(opened: OpenFlow, report: VerifyReport) -> None:
    records = [(_key(report.run_id), value) for value in report_records(report)]
    append_records(opened.target, {opened.flow.runs_topic: records}, identity=ask_identity(opened.target))


def report_records(report: VerifyReport) -> list[bytes]:
    """The report as values of records, in order. A random token distinguishes the parts of two reports."""
    packed = base64.b64encode(zlib.compress(json.dumps(report.document()).encode())).decode()
    parts = [packed[start : start + PART_BYTES] for start in range(0, len(packed), PART_BYTES)]
    token = clock.token_hex(4)
    return [_value("report", {"token": token, "part": place, "of": len(parts), "text": part}) for place, part in enumerate(parts)]


def result_record(result: RangeResult) -> bytes:
    return _value("range", result.document())


def _inflated(packed: str) -> Any:
    stream = zlib.decompressobj()
    data = stream.decompress(base64.b64decode(packed, validate=True), REPORT_BYTES)
    if not stream.eof or stream.unused_data:
        raise ValueError(f"a report that does not end within {REPORT_BYTES:,} bytes")
    return read_document(data)


def _values(opened: OpenFlow, run_id: str) -> list[tuple[int, bytes]]:
    """Time (ms) and value of each record of the verify."""
    key = _key(run_id)
    records = opened.target.reader().read(opened.flow.runs_topic)
    return [(record.timestamp, record.value) for record in records if record.key == key and record.value is not None]


def _key(run_id: str) -> bytes:
    return VERIFY_PREFIX + run_id.encode()


def is_range_result(value: bytes) -> bool:
    """Whether the value of a record is the result of a single range, by its first bytes: in any version, and without decoding it."""
    return b'"kind":"range"' in value[:40]


def _value(kind: str, result: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": RECORD_VERSION, "kind": kind, "result": result}, separators=(",", ":")).encode()
