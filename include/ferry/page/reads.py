"""The reads of the page: their names, the function of each, and the messages between the api-server and a reader process over pipes.

A request is a pickle. It holds the flow's settings with their secrets. So these never appear in argv, in the environment or in a file. An
answer is JSON, so nothing that a reader process sends can run code in the api-server. It begins with its length in four bytes.
"""

import io
import json
import os
import pickle
import select
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pkgutil import resolve_name
from typing import Any

from ferry.config import Flow
from ferry.page.problem import Problem

LENGTH = struct.Struct(">I")
# The most bytes of an answer; 10,000 partitions take 2 MB.
ANSWER_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16


class ReadName(StrEnum):
    OVERVIEW = "overview"
    RUNS = "runs"
    PROGRESS = "progress"
    COVERAGE = "coverage"
    GROUPS = "groups"
    GROUP = "group"
    DRIFT = "drift"


@dataclass(frozen=True)
class ReadEntry:
    """`function` (module:name) takes the flow, and the argument (a topic or group, never empty) if it has one.

    `fresh_seconds`: the page does not read again before that. `limit_seconds`: the page ends a read that takes longer.
    """

    function: str
    fresh_seconds: float
    limit_seconds: float


# Limits: several times what reads of 10,000 partitions or 2,000 groups took on two busy cores.
READS: Mapping[ReadName, ReadEntry] = {
    ReadName.OVERVIEW: ReadEntry("ferry.page.flow_reading:read_overview", 15.0, 180.0),
    ReadName.RUNS: ReadEntry("ferry.monitoring.runs_reading:read_runs", 10.0, 60.0),
    ReadName.PROGRESS: ReadEntry("ferry.page.progress_reading:read_progress", 2.0, 60.0),
    ReadName.COVERAGE: ReadEntry("ferry.page.coverage_reading:read_coverage_of", 10.0, 60.0),
    ReadName.GROUPS: ReadEntry("ferry.page.groups_reading:read_groups", 30.0, 120.0),
    ReadName.GROUP: ReadEntry("ferry.page.groups_reading:read_group", 10.0, 60.0),
    ReadName.DRIFT: ReadEntry("ferry.page.flow_reading:read_drift", 60.0, 120.0),
}


def carry_out(name: ReadName, flow: Flow, argument: str) -> dict[str, Any]:
    """Do one read. FerryError."""
    found: Callable[..., dict[str, Any]] = resolve_name(READS[name].function)
    return found(flow, argument) if argument else found(flow)


@dataclass(frozen=True)
class ReadRequest:
    name: ReadName
    flow: Flow
    argument: str = ""


def read_request(stream: io.BufferedReader) -> ReadRequest | None:
    """The next request; None when the other side has gone, also in the middle of a request."""
    try:
        found: ReadRequest = pickle.load(stream)  # noqa: S301 - from the parent process, over a pipe that nobody else holds
    except (EOFError, pickle.UnpicklingError):
        return None
    return found


def answer_frame(data: dict[str, Any] | None, problem: Problem | None) -> bytes:
    body = json.dumps({"data": data, "problem": problem and asdict(problem)}, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def decode_answer(body: bytes) -> tuple[dict[str, Any] | None, Problem | None]:
    answer = json.loads(body)
    problem = answer["problem"]
    return answer["data"], None if problem is None else Problem(**problem)


def receive(descriptor: int, deadline: float) -> bytes:
    """One frame's body by `deadline` (time.monotonic). TimeoutError; EOFError: the other side ended; ValueError: it is too large."""
    size = LENGTH.unpack(_exactly(descriptor, LENGTH.size, deadline))[0]
    if size > ANSWER_BYTES:
        raise ValueError(f"an answer of {size:,} bytes")
    return _exactly(descriptor, size, deadline)


def _exactly(descriptor: int, size: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < size:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise TimeoutError
        chunk = os.read(descriptor, min(CHUNK_BYTES, size - len(found)))
        if not chunk:
            raise EOFError
        found += chunk
    return bytes(found)
