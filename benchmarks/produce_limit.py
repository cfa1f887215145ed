"""Appends prepared requests as fast as one client can: how source topics are filled, and the limit that a copier is measured against.

One connection, requests back to back, answers read by a second thread; no producer id, no transaction, acks=all. A copier that also reads,
decides and commits cannot be faster than this on the same brokers.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator

from kafka.protocol.producer import ProduceResponse

from benchmarks.batches import PRODUCE_VERSION, encoded_requests, prepared_batches
from benchmarks.connection import ANSWER_SECONDS, connect
from benchmarks.shapes import Shape

# How many requests wait for answers: enough that the broker never waits, few enough that its buffers stay small.
IN_FLIGHT = 32
_SIZE = struct.Struct(">i")


class AppendFailed(Exception):
    """A broker refused a prepared batch or closed the connection."""


def append(bootstrap: str, topics: list[str], shape: Shape) -> float:
    """Append the whole shape to `topics` (which exist, on one broker, empty); the seconds from the first byte to the last answer."""
    rounds = [encoded_requests(topics, shape.partitions, batch) for batch in prepared_batches(shape)]
    requests = _requests(rounds, shape.batches_per_partition)
    with connect(bootstrap) as connection:
        return _Exchange(connection).run(requests, len(rounds[0]) * shape.batches_per_partition)


def _requests(rounds: list[list[bytes]], count: int) -> Iterator[bytes]:
    for round_requests in itertools.islice(itertools.cycle(rounds), count):
        yield from round_requests


class _Exchange:
    """Sends in the calling thread; a second thread reads the answers."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._room = threading.Semaphore(IN_FLIGHT)
        self._problems: deque[Exception] = deque()

    def run(self, requests: Iterator[bytes], count: int) -> float:
        """Send all; AppendFailed when an answer is not a success."""
        started = time.perf_counter()
        reader = threading.Thread(target=self._read, args=(count,), daemon=True)
        reader.start()
        for request in requests:
            if not self._room.acquire(timeout=ANSWER_SECONDS) or self._problems:
                break
            self._connection.sendall(request)
        reader.join()
        if self._problems:
            raise AppendFailed(f"appending prepared batches failed: {self._problems[0]}")
        return time.perf_counter() - started

    def _read(self, count: int) -> None:
        try:
            with self._connection.makefile("rb", buffering=1 << 16) as answers:
                for _ in range(count):
                    head = answers.read(_SIZE.size)
                    if len(head) < _SIZE.size:
                        raise AppendFailed("the broker closed the connection")  # noqa: TRY301 - one way out of the thread
                    _check(head + answers.read(_SIZE.unpack(head)[0]))
                    self._room.release()
        except (OSError, AppendFailed) as problem:
            self._problems.append(problem)
            self._room.release()


def _check(frame: bytes) -> None:
    response = ProduceResponse.decode(frame, version=PRODUCE_VERSION, header=True, framed=True)
    refused = [
        (topic.name, part.index, part.error_code) for topic in response.responses for part in topic.partition_responses if part.error_code
    ]
    if refused:
        raise AppendFailed(f"(topic, partition, error code) {refused[:3]}")
