"""The slower form of a connection: bytes. Frames leave as Ferry and kafka-python encode them, and arrive in pieces of any size.

A broker decodes each request with kafka-python's classes, so Ferry's own encoder of Produce is held against them; its answer is encoded,
and read by Ferry's own parser of frames. Everything else is as without bytes, and the same seed must go the same way.
"""

from __future__ import annotations

import io
from functools import cache
from random import Random
from typing import Any

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from tests.simulation.wires import Exchange, WorldConnections, WorldTransport

from ferry.clusters.logs.producing import BY_ID, BatchesAnswer, BatchesRequest
from ferry.clusters.net.frames import SIZE_BYTES
from ferry.clusters.net.transports import _parser
from ferry.wire.varint import Buffer

# The header of a request: key, version, correlation id.
_KEY, _VERSION, _NUMBER = slice(0, 2), slice(2, 4), slice(4, 8)


@cache
def _requests() -> dict[int, type[ApiMessage]]:
    """kafka-python's requests, and those that Ferry defines beside them, by key."""
    found, left = dict[int, type[ApiMessage]](), list(ApiMessage.__subclasses__())
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if getattr(kind, "_json", None) is not None and kind.is_request() and kind._class_version is None:
            found.setdefault(kind.API_KEY, kind)
    return found


class FramedTransport(WorldTransport):
    """Bytes in both directions. How an answer is cut into pieces has a chance of its own."""

    meter = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sent, self._pieces = bytearray(), Random(0)
        self._versions: dict[int, int] = {}  # by correlation id

    def write(self, data: Buffer | list[Buffer]) -> None:
        for buffer in data if isinstance(data, list) else [data]:
            self._sent += buffer
        whole: list[Exchange] = []
        while len(self._sent) >= SIZE_BYTES and len(self._sent) >= (end := SIZE_BYTES + int.from_bytes(self._sent[:SIZE_BYTES], "big")):
            whole.append(self._read(bytes(self._sent[SIZE_BYTES:end])))
            del self._sent[:end]
        super().write(whole)

    def _read(self, frame: bytes) -> Exchange:
        """A request as the broker reads it: every byte of the frame belongs to it."""
        key, version, number = (int.from_bytes(frame[part], "big") for part in (_KEY, _VERSION, _NUMBER))
        self._versions[number] = version
        kind = _requests()[key]
        rest = io.BytesIO(frame)
        RequestHeader.decode(rest, flexible=kind.flexible_version_q(version))
        body = rest.read()
        request = kind.decode(body, version=version)
        request._header = None  # decoding leaves it unset
        request.API_VERSION = version
        assert request.encode() == body, f"{request.name} v{version} has bytes that do not belong to it"
        return number, _batches(request) if isinstance(request, ProduceRequest) else request

    def _take(self, exchange: Exchange) -> None:
        number, answer = exchange
        version = self._versions.pop(number)
        message = _produced(answer, version) if isinstance(answer, BatchesAnswer) else answer
        message.API_VERSION = version
        message.with_header(correlation_id=number)
        data = message.encode(header=True, framed=True)
        while data and self._open:
            count = self._pieces.randrange(1, len(data) + 1)
            piece, data = data[:count], data[count:]
            self._receive(piece)

    def _receive(self, piece: bytes) -> None:
        """As a socket's transport does: into the room of a large frame, if the parser has one."""
        self.last_activity = self._world.now
        parser = _parser(self)
        room = parser.room()
        if room is None:
            self._protocol.data_received(piece)
            return
        count = min(len(room), len(piece))
        room[:count] = piece[:count]
        parser.received(count)
        self._protocol.data_received(b"")
        if count < len(piece):
            self._receive(piece[count:])


class FramedConnections(WorldConnections):
    """Ferry's connections, over transports of bytes."""

    transport = FramedTransport


def _batches(request: ProduceRequest) -> BatchesRequest:
    topics = [
        (topic.name, topic.topic_id, [(part.index, [bytes(part.records)]) for part in topic.partition_data]) for topic in request.topic_data
    ]
    found = BatchesRequest(topics, request.transactional_id)
    found.API_VERSION = request.API_VERSION
    return found


def _produced(answer: BatchesAnswer, version: int) -> ProduceResponse:
    topic, partition = ProduceResponse.TopicProduceResponse, ProduceResponse.TopicProduceResponse.PartitionProduceResponse
    found: dict[Any, list[Any]] = {}
    for part in answer.partitions:
        told = partition(index=part.partition, error_code=part.error_code, base_offset=part.base_offset, error_message=part.message)
        found.setdefault(part.topic, []).append(told)
    named = "topic_id" if version >= BY_ID else "name"
    responses = [topic(**{named: name}, partition_responses=parts) for name, parts in found.items()]
    return ProduceResponse(responses=responses, throttle_time_ms=answer.throttle_time_ms)
