"""What the api-server and a reader process say to each other, over pipes.

A request is a pickle. It holds the flow's settings with their secrets, which therefore never appear in argv, in the environment or in a
file. An answer is JSON, so nothing that a reader process sends can run code in the api-server: a length of four bytes, then so many bytes.
"""

import io
import json
import os
import pickle
import select
import struct
import time
from dataclasses import dataclass
from typing import Any

from ferry.config import Flow
from ferry.page.problem import Problem
from ferry.page.reads import ReadName

LENGTH = struct.Struct(">I")
# An answer may have so many; 10,000 partitions take 2 MB.
ANSWER_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class ReadRequest:
    name: ReadName
    flow: Flow
    argument: str = ""


def read_request(stream: io.BufferedReader) -> ReadRequest | None:
    """The next request; None when the other side has gone."""
    try:
        found: ReadRequest = pickle.load(stream)  # noqa: S301 - from the parent process, over a pipe that nobody else holds
    except EOFError:
        return None
    return found


def answer_frame(data: dict[str, Any] | None, problem: Problem | None) -> bytes:
    body = json.dumps({"data": data, "problem": None if problem is None else problem.document()}, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def decode_answer(body: bytes) -> tuple[dict[str, Any] | None, Problem | None]:
    """Data, or why there is none."""
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
