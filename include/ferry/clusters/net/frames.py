"""Frames of Kafka's protocol, without copies of their content.

kafka-python copies the bytes of a response five times between the socket and the records. Here a response is received straight into the
frame that it is decoded from, and a request may be several buffers, which are sent one after the other.
"""

import struct
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol.parser import KafkaProtocol

from ferry.wire.varint import Buffer

SIZE_BYTES = 4
# A smaller rest of a frame gets no read of its own: the same read also takes the bytes behind it.
DIRECT_MINIMUM_BYTES = 64 * 1024

# Errors that decoders raise for bytes that are not a response.
MALFORMED = (ValueError, struct.error, OverflowError, IndexError, TypeError, AttributeError)


class Meter:
    """Counts the bytes of responses in memory: of those that are arriving, and of those that something still refers to.

    `reserved`: for responses that were asked for. `own`: of batches that lanes hold and wrote themselves, by lane.
    """

    def __init__(self) -> None:
        self.held = self.reserved = 0
        self.own: dict[int, int] = {}

    @property
    def all_held(self) -> int:
        return self.held + sum(self.own.values())


class _Room(bytearray):
    """A response's bytes. The meter counts them until nothing refers to them."""

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
        self._at = at

    def tell(self) -> int:
        return self._at


class FrameParser(KafkaProtocol):  # type: ignore[misc]
    """Replaces a connection's parser and takes over its requests in flight."""

    def __init__(self, replaced: KafkaProtocol, meter: Meter | None = None) -> None:
        self.__dict__.update(replaced.__dict__)
        self._meter = Meter() if meter is None else meter
        self.bytes_to_send: list[Any] = replaced.bytes_to_send
        self._head = bytearray()
        self._frame: memoryview | None = None
        self._filled = 0
        self.bytes_received = 0  # of responses, also of one that is not whole yet

    def abandon(self) -> None:
        """The connection is closed: the response that was arriving is no longer held."""
        self._frame = None

    def send_bytes(self) -> list[Buffer]:
        """The buffers of all requests that wait."""
        waiting: list[Buffer | list[Buffer]] = self.bytes_to_send
        self.bytes_to_send = []
        return [buffer for request in waiting for buffer in (request if isinstance(request, list) else (request,))]

    def room(self) -> memoryview | None:
        """The buffer for the rest of a large response; None if the next bytes may belong to something else."""
        if self._frame is None or len(self._frame) - self._filled < DIRECT_MINIMUM_BYTES:
            return None
        return self._frame[self._filled :]

    def received(self, count: int) -> None:
        """The caller read so many bytes into that buffer."""
        self._filled += count
        self.bytes_received += count

    def receive_bytes(self, data: Buffer) -> list[tuple[int, Any]]:
        """The responses that `data` completes. After a read into `room`, `data` is empty."""
        responses: list[tuple[int, Any]] = []
        view, at = memoryview(data), 0
        self.bytes_received += len(view)
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
        except MALFORMED as problem:  # after any other error the connection would stop reading
            raise KafkaProtocolError(f"response of {len(frame)} bytes: {problem}") from problem
        return response
