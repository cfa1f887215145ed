"""Produce requests to the target, their answers, and the frames of both.

A request holds one batch per partition, as brokers require. The lane acts on the Action of
`ferry.clusters.net.error_policy`, not on the error code.

A request is a list of buffers, so batches are not copied into one buffer first. Its class and the one of its
answer replace kafka-python's ProduceRequest and ProduceResponse on a connection, because their general codec costs several times what
sending a batch costs. kafka-python handles versions before 9, which had other lengths.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self
from uuid import UUID

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from ferry.clusters.net.error_policy import PERHAPS_APPENDED, PRODUCE, Action
from ferry.clusters.net.leaders import NO_TOPIC_ID, Leaders
from ferry.clusters.net.partitions import grouped
from ferry.wire.varint import Buffer, decode_unsigned, encode_unsigned

# How long the leader waits for its replicas. Well below REQUEST_MILLISECONDS: if they are slow, the broker answers REQUEST_TIMED_OUT, and
# Ferry sends this batch again with its sequence number. If Ferry gave up first, the lane would lose its whole transaction.
ACKNOWLEDGE_MILLISECONDS = 20_000
ACKS = -1  # of all replicas that are in sync
# A broker whose transaction.version is below 2 must not get a newer Produce inside a transaction (KIP-890).
V1_PRODUCE = 11
PRODUCE_KEY = 0
OLDEST, NEWEST = 3, 13  # the first that takes batches of format 2; the newest that is known here
# The first version with compact lengths and tags; the first that names topics by id (KIP-516).
FLEXIBLE, BY_ID = 9, 13
NO_TAGS = b"\0"
_HEADER = struct.Struct(">hhih")
_ACKS_AND_TIMEOUT = struct.pack(">hi", ACKS, ACKNOWLEDGE_MILLISECONDS)
_PARTITION_ANSWER = struct.Struct(">ihqqq")
_INT32 = struct.Struct(">i")
# LogValidator says it of every such record. At the source such records were written before that topic was compacted.
_WITHOUT_KEY = "without key"
_NO_KEY = (
    "the remote topic is compacted, and these records have no key: set cleanup.policy=delete there until they are copied, or leave them "
    "out with ferry.abort.on.send.failure=false"
)

TopicBatches = tuple[str, UUID, list[tuple[int, tuple[Buffer, ...]]]]


class PartitionAnswer(NamedTuple):
    """The answer for one batch; `topic` is the name before version 13, the id from then on."""

    topic: str | UUID
    partition: int
    error_code: int
    base_offset: int
    message: str | None


class BatchesAnswer(NamedTuple):
    partitions: list[PartitionAnswer]
    throttle_time_ms: int


class BatchesRequest:
    """A Produce request. `batches`: topic name, topic id, and for each partition its number and the buffers of one batch."""

    __slots__ = ("API_VERSION", "_max_version", "batches", "header", "transactional_id")
    API_KEY, name = PRODUCE_KEY, "ProduceRequest"
    min_version, max_version, _min_version = OLDEST, NEWEST, None

    def __init__(self, batches: Sequence[TopicBatches], transactional_id: str | None, max_version: int = NEWEST) -> None:
        self.batches, self.transactional_id = batches, transactional_id
        self.API_VERSION: int | None = None  # the connection sets it
        self._max_version = max_version
        self.header: _Exchange

    def expect_response(self) -> bool:
        """True: brokers answer unless acks is 0."""
        return True

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Set the correlation id, which connects the answer to this request."""
        self.header = _Exchange(correlation_id, client_id, self.API_VERSION or 0)

    def encode(self, *, header: bool, framed: bool) -> list[Buffer]:
        """The frame, in the form that our connections take."""
        assert header and framed  # noqa: S101, PT018 - kafka-python only asks for the whole
        version = self.header.version
        if version < FLEXIBLE:
            return [self._by_kafka_python(version)]
        transactional_id = b"\0" if self.transactional_id is None else _compact(self.transactional_id.encode())
        pending = self.header.encode() + transactional_id + _ACKS_AND_TIMEOUT
        pending += encode_unsigned(len(self.batches) + 1)
        frame: list[Buffer] = []
        for name, topic_id, parts in self.batches:
            pending += topic_id.bytes if version >= BY_ID else _compact(name.encode())
            pending += encode_unsigned(len(parts) + 1)
            for index, batch in parts:
                frame += [pending + index.to_bytes(4, "big") + encode_unsigned(sum(map(len, batch)) + 1), *batch]
                pending = NO_TAGS
            pending += NO_TAGS
        frame.append(pending + NO_TAGS)
        return [_INT32.pack(sum(map(len, frame))) + bytes(frame[0]), *frame[1:]]

    def _by_kafka_python(self, version: int) -> bytes:
        topic, partition = ProduceRequest.TopicProduceData, ProduceRequest.TopicProduceData.PartitionProduceData
        topics = [
            topic(name=name, topic_id=topic_id, partition_data=[partition(index=index, records=b"".join(batch)) for index, batch in parts])
            for name, topic_id, parts in self.batches
        ]
        request = ProduceRequest(transactional_id=self.transactional_id, acks=ACKS, timeout_ms=ACKNOWLEDGE_MILLISECONDS, topic_data=topics)
        request.API_VERSION = version
        request.with_header(correlation_id=self.header.correlation_id, client_id=self.header.client_id)
        return bytes(request.encode(header=True, framed=True))


class _Exchange(NamedTuple):
    """A request in flight: its header and that of its answer, and the decoder of the answer."""

    correlation_id: int
    client_id: str
    version: int

    def encode(self) -> bytes:
        client_id = self.client_id.encode()
        return _HEADER.pack(PRODUCE_KEY, self.version, self.correlation_id, len(client_id)) + client_id + NO_TAGS

    def get_response_class(self) -> Self:
        return self

    def parse_header(self, frame: Any) -> Self:
        """The answer's header; afterwards `frame` is at the body."""
        received = self._replace(correlation_id=_INT32.unpack(frame.read(_INT32.size))[0])
        if self.version >= FLEXIBLE:
            start, data = frame.tell(), frame.read()
            frame.seek(start + _after_tags(data, 0))
        return received

    def decode(self, frame: Any) -> BatchesAnswer:
        return decode_answer(frame.read(), self.version) if self.version >= FLEXIBLE else _old_answer(frame, self.version)


def decode_answer(data: memoryview, version: int) -> BatchesAnswer:
    """A Produce answer of version 9 or later. ValueError or struct.error if it is truncated."""
    found: list[PartitionAnswer] = []
    topics, at = _length(data, 0)
    for _ in range(topics):
        topic: str | UUID | None
        if version >= BY_ID:
            topic, at = UUID(bytes=bytes(data[at : at + 16])), at + 16
        else:
            topic, at = _text(data, at)
        parts, at = _length(data, at)
        for _ in range(parts):
            index, code, base_offset, _, _ = _PARTITION_ANSWER.unpack_from(data, at)
            at = _after_record_errors(data, at + _PARTITION_ANSWER.size)
            message, at = _text(data, at)
            at = _after_tags(data, at)
            found.append(PartitionAnswer(topic or "", index, code, base_offset, message))
        at = _after_tags(data, at)
    return BatchesAnswer(found, _INT32.unpack_from(data, at)[0])


def _old_answer(frame: Any, version: int) -> BatchesAnswer:
    answer = ProduceResponse[version].decode(frame)
    partitions = [
        PartitionAnswer(topic.name, part.index, part.error_code, part.base_offset, part.error_message)
        for topic in answer.responses
        for part in topic.partition_responses
    ]
    return BatchesAnswer(partitions, answer.throttle_time_ms)


def _after_record_errors(data: memoryview, at: int) -> int:
    count, at = _length(data, at)
    for _ in range(count):
        _, at = _text(data, at + _INT32.size)
        at = _after_tags(data, at)
    return at


def _after_tags(data: memoryview, at: int) -> int:
    """The index after the tagged fields, which Ferry ignores."""
    count, at = decode_unsigned(data, at)
    for _ in range(count):
        _, at = decode_unsigned(data, at)
        size, at = decode_unsigned(data, at)
        at += size
    return at


def _length(data: memoryview, at: int) -> tuple[int, int]:
    count, at = decode_unsigned(data, at)
    return max(count - 1, 0), at


def _text(data: memoryview, at: int) -> tuple[str | None, int]:
    count, at = decode_unsigned(data, at)
    if count == 0:
        return None, at
    end = at + count - 1
    if end > len(data):
        raise ValueError(f"{count - 1} bytes of text at byte {at} of {len(data)}")
    return str(data[at:end], "utf-8"), end


def _compact(text: bytes) -> bytes:
    return encode_unsigned(len(text) + 1) + text


class Answer(NamedTuple):
    """The answer for one batch."""

    action: Action
    base_offset: int  # the downstream offset of its first record
    problem: str
    right: str = ""  # the missing right if it is DENIED, with `{topic}` and the transactional `{id}` to fill in
    unclear: bool = False  # the log may hold the batch


def produce_request(
    batches: Iterable[tuple[str, int, tuple[Buffer, ...]]], leaders: Leaders, transactional_id: str | None, *, transactions_v2: bool
) -> BatchesRequest:
    """One request of (remote topic, partition, buffers of a batch) for partitions that one broker leads."""
    by_topic = grouped((topic, (partition, batch)) for topic, partition, batch in batches)
    named = [(topic, leaders.topic_id(topic) or NO_TOPIC_ID, parts) for topic, parts in by_topic.items()]
    newest = NEWEST if all(topic_id != NO_TOPIC_ID for _, topic_id, _ in named) else BY_ID - 1
    return BatchesRequest(named, transactional_id, newest if transactions_v2 or transactional_id is None else V1_PRODUCE)


def produce_answers(answer: BatchesAnswer, leaders: Leaders) -> dict[tuple[str, int], Answer]:
    """The answer for each remote partition."""
    found = {}
    for topic, index, code, base_offset, message in answer.partitions:
        name = topic if isinstance(topic, str) else leaders.name_of(None, topic)
        action, told, _ = PRODUCE.meaning(code)
        said = _NO_KEY if message and _WITHOUT_KEY in message else message
        problem = "" if code == 0 else PRODUCE.told(code) if told or not said else f"{PRODUCE.told(code)}: {said}"
        found[name, index] = Answer(action, base_offset, problem, told if action is Action.DENIED else "", code in PERHAPS_APPENDED)
    return found
