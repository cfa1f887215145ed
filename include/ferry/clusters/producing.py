"""Produce requests to the target and what their answers mean.

One batch per partition and request, as brokers demand. Every answer falls into one of five classes; the lane acts by class, never by code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.producer import ProduceRequest

from ferry.clusters.coordination import FENCING
from ferry.clusters.frames import Buffer
from ferry.clusters.leaders import NO_TOPIC_ID, Leaders
from ferry.wire.varint import encode_unsigned

# How long the leader waits for its replicas.
ACKNOWLEDGE_MILLISECONDS = 30_000
# A broker whose transaction.version is below 2 must not get a newer Produce inside a transaction (KIP-890).
V1_PRODUCE = 11

# From here on lengths are compact and tags follow everything; from there on topics go by id (KIP-516).
FLEXIBLE_PRODUCE, PRODUCE_BY_ID = 9, 13
NO_TAGS = b"\0"
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
TopicBatches = tuple[str, UUID, list[tuple[int, tuple[Buffer, ...]]]]

_TOPIC = ProduceRequest.TopicProduceData
_PARTITION = ProduceRequest.TopicProduceData.PartitionProduceData


class Verdict(Enum):
    """What one batch's answer means."""

    ACCEPTED = "accepted"
    RETRIABLE = "retriable"  # not appended, or appended and recognised by its sequence when sent again
    OUT_OF_ORDER = "out of order"  # expected behind a batch that was not accepted
    TOO_LARGE = "too large"
    REFUSED = "refused"  # not appended, and never will be
    FENCED = "fenced"
    UNKNOWN = "unknown"


# org.apache.kafka.common.protocol.Errors
_RETRIABLE = frozenset({3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 51, 56, 72, 74, 75, 76, 89, 100, 103})
_TOO_LARGE = frozenset({10, 18})
REFUSAL_TEXTS = {
    2: "CORRUPT_MESSAGE: the broker finds the batch damaged",
    10: "MESSAGE_TOO_LARGE: raise max.message.bytes of the remote topic",
    17: "INVALID_TOPIC_EXCEPTION: the broker does not let clients write to this topic",
    18: "RECORD_LIST_TOO_LARGE: raise segment.bytes of the remote topic",
    29: "TOPIC_AUTHORIZATION_FAILED: grant Write on the remote topic",
    32: "INVALID_TIMESTAMP: widen message.timestamp.before.max.ms / message.timestamp.after.max.ms of the remote topic",
    44: "POLICY_VIOLATION: a policy of the target refuses it",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED: grant Write on the flow's transactional ids",
    76: "UNSUPPORTED_COMPRESSION_TYPE: the target does not know this codec",
    87: "INVALID_RECORD: the remote topic does not take such records (a compacted topic needs keys)",
}
_OUT_OF_ORDER = 45
_REFUSED = frozenset(REFUSAL_TEXTS) - _TOO_LARGE


class Answer(NamedTuple):
    """The answer for one batch; `base_offset` is the downstream offset of its first record."""

    verdict: Verdict
    base_offset: int
    problem: str


def verdict_of(code: int) -> Verdict:
    """Classify an error code of a Produce answer. What is not listed may have been appended: UNKNOWN."""
    if code == 0:
        return Verdict.ACCEPTED
    if code == _OUT_OF_ORDER:
        return Verdict.OUT_OF_ORDER
    for codes, verdict in (
        (FENCING, Verdict.FENCED),
        (_TOO_LARGE, Verdict.TOO_LARGE),
        (_REFUSED, Verdict.REFUSED),
        (_RETRIABLE, Verdict.RETRIABLE),
    ):
        if code in codes:
            return verdict
    return Verdict.UNKNOWN


class BatchesRequest(ProduceRequest, init=False):  # type: ignore[misc, call-arg]
    """A Produce request whose batches are sent from where they are, not copied into one buffer first.

    `batches`: topic name, topic id, and for each partition its number and the buffers of one batch.
    """

    __slots__ = ("batches",)

    def __init__(self, batches: list[TopicBatches], **fields: Any) -> None:
        super().__init__(topic_data=[], **fields)
        self.batches = batches

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> Any:
        """The frame as a list of buffers, as our connections take it. By kafka-python for versions before 9, which had other lengths."""
        version = self.API_VERSION if version is None else version
        if version is None or version < FLEXIBLE_PRODUCE or not (header and framed):
            return self._copied().encode(version, header=header, framed=framed)
        pending = self.encode_header(flexible=True) + self._before_topics()
        frame: list[Buffer] = []
        for name, topic_id, parts in self.batches:
            pending += topic_id.bytes if version >= PRODUCE_BY_ID else _compact(name.encode())
            pending += encode_unsigned(len(parts) + 1)
            for index, batch in parts:
                frame += [pending + index.to_bytes(4, "big") + encode_unsigned(sum(map(len, batch)) + 1), *batch]
                pending = NO_TAGS
            pending += NO_TAGS
        frame.append(pending + NO_TAGS)
        return [sum(map(len, frame)).to_bytes(4, "big") + bytes(frame[0]), *frame[1:]]

    def _copied(self) -> ProduceRequest:
        """The same as kafka-python has it."""
        topics = [
            _TOPIC(
                name=name, topic_id=topic_id, partition_data=[_PARTITION(index=index, records=b"".join(batch)) for index, batch in parts]
            )
            for name, topic_id, parts in self.batches
        ]
        request = ProduceRequest(transactional_id=self.transactional_id, acks=self.acks, timeout_ms=self.timeout_ms, topic_data=topics)
        request._header = self._header  # noqa: SLF001 - of the same class
        return request

    def _before_topics(self) -> bytes:
        transactional_id = b"\0" if self.transactional_id is None else _compact(self.transactional_id.encode())
        return transactional_id + _ACKS_AND_TIMEOUT.pack(self.acks, self.timeout_ms) + encode_unsigned(len(self.batches) + 1)


def _compact(text: bytes) -> bytes:
    return encode_unsigned(len(text) + 1) + text


def produce_request(
    batches: Iterable[tuple[str, int, tuple[Buffer, ...]]], leaders: Leaders, transactional_id: str | None, *, transactions_v2: bool
) -> ProduceRequest:
    """One request of (remote topic, partition, buffers of a batch) for partitions that one broker leads."""
    by_topic: dict[str, list[tuple[int, tuple[Buffer, ...]]]] = {}
    for topic, partition, batch in batches:
        by_topic.setdefault(topic, []).append((partition, batch))
    capped = {} if transactions_v2 or transactional_id is None else {"max_version": V1_PRODUCE}
    return BatchesRequest(
        [(topic, leaders.topic_id(topic) or NO_TOPIC_ID, parts) for topic, parts in by_topic.items()],
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=ACKNOWLEDGE_MILLISECONDS,
        **capped,
    )


def produce_answers(answer: Any, leaders: Leaders) -> dict[tuple[str, int], Answer]:
    """The answer per remote partition."""
    found = {}
    for topic in answer.responses:
        name = leaders.name_of(getattr(topic, "name", None), getattr(topic, "topic_id", None))
        for part in topic.partition_responses:
            problem = REFUSAL_TEXTS.get(part.error_code) or f"error {part.error_code} {getattr(part, 'error_message', None) or ''}".rstrip()
            found[name, part.index] = Answer(verdict_of(part.error_code), part.base_offset, problem)
    return found
