"""Results of a verify in the runs topic: a second try of the same run id reads what the first one finished and goes on behind it.

They inform, no decision about copied data is made by them, so they are written without a transaction. A user who may only read verifies all
the same, without being able to go on later. The report of a Spark job travels here as well, in parts that fit a record.
"""

from __future__ import annotations

import base64
import json
import logging
import secrets
import time
import zlib
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.errors import FerryError
from ferry.policy.naming import runs_topic
from ferry.proving.model import RangeResult

if TYPE_CHECKING:
    from ferry.config import Flow

log = logging.getLogger(__name__)

RECORD_VERSION = 1
# A writer connects anew each time; this much work is done again after a kill.
WRITE_EVERY_SECONDS = 5.0
# Of compressed text: a record stays far below the usual max.message.bytes of 1 MiB.
PART_BYTES = 500_000


class ResultWriter:
    """Writes results in batches; the rest when it is left."""

    def __init__(self, flow: Flow, run_id: str) -> None:
        self._flow = flow
        self._run_id = run_id
        self._waiting: list[tuple[bytes, bytes]] = []
        self._written = time.monotonic()
        self._refused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._write()

    def add(self, result: RangeResult) -> None:
        """Have `result` written soon. One with a problem is not: the next try looks again."""
        if result.problem is None:
            self._waiting.append((_key(self._run_id), _value("range", result.document())))
        if time.monotonic() - self._written > WRITE_EVERY_SECONDS:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._refused:
            try:
                append_records(self._flow.target, runs_topic(self._flow.source.alias), waiting)
            except FerryError as problem:
                self._refused = True
                log.warning("results are not kept, so another try of %s begins anew: %s", self._run_id, problem)
        self._written = time.monotonic()


def read_finished(flow: Flow, run_id: str) -> dict[str, RangeResult]:
    """Results of earlier tries by range key."""
    found = (RangeResult.of_document(entry["result"]) for entry in _records(flow, run_id) if entry["kind"] == "range")
    return {result.key: result for result in found}


def write_document(flow: Flow, run_id: str, document: Mapping[str, Any]) -> None:
    """Keep the report of this try."""
    text = base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()
    parts = [text[start : start + PART_BYTES] for start in range(0, len(text), PART_BYTES)]
    token = secrets.token_hex(4)
    records = [
        (_key(run_id), _value("report", {"token": token, "part": number, "of": len(parts), "text": part}))
        for number, part in enumerate(parts)
    ]
    append_records(flow.target, runs_topic(flow.source.alias), records, in_order=True)


def read_document(flow: Flow, run_id: str) -> dict[str, Any] | None:
    """The last report that is there as a whole; None when there is none."""
    parts: dict[str, dict[int, str]] = {}
    whole = None
    for entry in _records(flow, run_id):
        if entry["kind"] == "report":
            part = entry["result"]
            found = parts.setdefault(part["token"], {})
            found[part["part"]] = part["text"]
            if len(found) == part["of"]:
                whole = "".join(found[number] for number in range(part["of"]))
    if whole is None:
        return None
    document: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(whole)))
    return document


def _records(flow: Flow, run_id: str) -> list[dict[str, Any]]:
    key = _key(run_id)
    with InternalTopicReader(flow.target) as reader:
        records = reader.read(runs_topic(flow.source.alias))
        return [json.loads(record.value) for record in records if record.key == key and record.value is not None]


def _key(run_id: str) -> bytes:
    return f"verify:{run_id}".encode()


def _value(kind: str, result: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": RECORD_VERSION, "kind": kind, "result": result}, separators=(",", ":")).encode()
