"""One blocking connection to a broker that sends kafka-python's request objects: for asking, not for speed."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

# A broker that does not answer for this long is gone: without it the benchmark would hang.
ANSWER_SECONDS = 60.0
_SIZE = struct.Struct(">i")


def encode(request: Any) -> bytes:
    """A request with its header and length, ready to send (again and again)."""
    request.with_header(correlation_id=0, client_id="benchmark")
    return bytes(request.encode(header=True, framed=True))


def connect(bootstrap: str) -> socket.socket:
    """A connection to `host:port` without Nagle's delay."""
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Connection:
    """Asks and waits for the answer. ConnectionError when the broker hangs up, TimeoutError when it is silent."""

    def __init__(self, bootstrap: str) -> None:
        self._socket = connect(bootstrap)

    def ask(self, framed_request: bytes, response: Any, version: int) -> Any:
        """Send what `encode` made; the decoded answer."""
        self._socket.sendall(framed_request)
        head = self._receive(_SIZE.size)
        frame = head + self._receive(_SIZE.unpack(head)[0])
        return response.decode(frame, version=version, header=True, framed=True)

    def _receive(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        at = 0
        while at < size:
            got = self._socket.recv_into(view[at:])
            if not got:
                raise ConnectionError("the broker closed the connection")
            at += got
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()
