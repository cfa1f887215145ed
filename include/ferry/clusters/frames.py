"""Frames of Kafka's protocol, without copies of what they carry.

kafka-python copies the bytes of a response five times between the socket and the records. Here a response is received straight into the
frame that it is decoded from, and a request may be several buffers, which are sent one after the other.
"""

from __future__ import annotations

import struct
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol.parser import KafkaProtocol

SIZE_BYTES = 4
# Smaller rests of a frame are worth no read of their own: what follows them is read along.
DIRECT_MINIMUM_BYTES = 64 * 1024

# What decoders raise for bytes that are no response.
MALFORMED = (ValueError, struct.error, OverflowError, IndexError, TypeError, AttributeError)

Buffer = bytes | bytearray | memoryview


class Meter:
    """Bytes of responses that are in memory: those that arrive, and those that anything still refers to."""

    def __init__(self) -> None:
        self.held = 0


class _Room(bytearray):
    """A response's bytes; they count until nobody refers to them any more."""

    __slots__ = ("_meter",)

    def __init__(self, size: int, meter: Meter) -> None:
        super().__init__(size)
        self._meter = meter
        meter.held += size

    def __del__(self) -> None:
        self._meter.held -= len(self)


class Frame:
    """One whole response as kafka-python reads it: the header as a file, then all the rest."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def read(self, count: int | None = None) -> Buffer:
        """The next bytes; without a count all that are left, not copied."""
        start = self._at
        self._at = len(self._view) if count is None else min(start + count, len(self._view))
        rest = self._view[start : self._at]
        return rest if count is None else bytes(rest)

    def seek(self, at: int) -> None:
        """Go to a position."""
        self._at = at

    def tell(self) -> int:
        """The position."""
        return self._at


class FrameParser(KafkaProtocol):  # type: ignore[misc]
    """Takes the place of a connection's parser, with its requests in flight."""

    def __init__(self, replaced: KafkaProtocol, meter: Meter | None = None) -> None:
        self.__dict__.update(replaced.__dict__)
        self._meter = Meter() if meter is None else meter
        self.bytes_to_send: list[Any] = replaced.bytes_to_send
        self._head = bytearray()
        self._frame: memoryview | None = None
        self._filled = 0

    def send_bytes(self) -> list[Buffer]:
        """The buffers of all requests that wait."""
        waiting: list[Buffer | list[Buffer]] = self.bytes_to_send
        self.bytes_to_send = []
        return [buffer for request in waiting for buffer in (request if isinstance(request, list) else (request,))]

    def room(self) -> memoryview | None:
        """Where the rest of a large response belongs; None when the next bytes may be anything."""
        if self._frame is None or len(self._frame) - self._filled < DIRECT_MINIMUM_BYTES:
            return None
        return self._frame[self._filled :]

    def received(self, count: int) -> None:
        """So many bytes were read into the room."""
        self._filled += count

    def receive_bytes(self, data: Buffer) -> list[tuple[int, Any]]:
        """The responses that `data` completes; empty `data` after the room was filled."""
        responses: list[tuple[int, Any]] = []
        view, at = memoryview(data), 0
        while True:
            if self._frame is not None:
                taken = view[at : at + len(self._frame) - self._filled]
                self._frame[self._filled : self._filled + len(taken)] = taken
                self._filled += len(taken)
                at += len(taken)
                if self._filled < len(self._frame):
                    return responses
                frame, self._frame = self._frame, None
                responses.append(self._decoded(frame))
            head = view[at : at + SIZE_BYTES - len(self._head)]
            self._head += head
            at += len(head)
            if len(self._head) < SIZE_BYTES:
                return responses
            size = int.from_bytes(self._head, "big", signed=True)
            self._validate_frame_size(size)
            self._head.clear()
            self._frame, self._filled = memoryview(_Room(size, self._meter)), 0

    def _decoded(self, frame: memoryview) -> tuple[int, Any]:
        try:
            response: tuple[int, Any] = self._process_response(Frame(frame))
        except MALFORMED as problem:  # anything but a protocol error would leave the connection deaf
            raise KafkaProtocolError(f"response of {len(frame)} bytes: {problem}") from problem
        return response
