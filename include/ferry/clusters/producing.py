"""Produce requests to the target and what their answers mean.

One batch per partition and request, as brokers demand. Every answer falls into one of these classes; the lane acts by class, never by code.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ferry.clusters.coordination import FENCING
from ferry.clusters.frames import Buffer
from ferry.clusters.leaders import NO_TOPIC_ID, Leaders
from ferry.clusters.produce_frames import NEWEST, BatchesAnswer, BatchesRequest

# How long the leader waits for its replicas. Well below REQUEST_MILLISECONDS: when they are slow, the broker answers REQUEST_TIMED_OUT, and
# this one batch is sent again with its sequence. A client that gave up first would lose the lane's whole transaction.
ACKNOWLEDGE_MILLISECONDS = 20_000
# A broker whose transaction.version is below 2 must not get a newer Produce inside a transaction (KIP-890).
V1_PRODUCE = 11


class Verdict(Enum):
    """What one batch's answer means."""

    ACCEPTED = "accepted"
    RETRIABLE = "retriable"  # not appended, or appended and recognised by its sequence when sent again
    OUT_OF_ORDER = "out of order"  # expected behind a batch that was not accepted
    TOO_LARGE = "too large"
    RECORD_REFUSED = "record refused"  # not appended, because of a record in it
    REFUSED = "refused"  # not appended, and never will be, whatever the records
    DENIED = "denied"  # not appended, for want of a right
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
    32: "INVALID_TIMESTAMP: widen message.timestamp.before.max.ms / message.timestamp.after.max.ms of the remote topic",
    44: "POLICY_VIOLATION: a policy of the target refuses it",
    76: "UNSUPPORTED_COMPRESSION_TYPE: the target does not know this codec",
    87: "INVALID_RECORD: the remote topic does not take such records (a compacted topic needs keys)",
}
DENIED = {29: "TOPIC_AUTHORIZATION_FAILED", 53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}
_OUT_OF_ORDER = 45
_RECORD_REFUSED = frozenset({32, 44, 87})
_REFUSED = frozenset(REFUSAL_TEXTS) - _TOO_LARGE - _RECORD_REFUSED


class Answer(NamedTuple):
    """The answer for one batch; `base_offset` is the downstream offset of its first record."""

    verdict: Verdict
    base_offset: int
    problem: str

    @property
    def of_transaction(self) -> bool:
        """Whether it is about the transactional id, not about the partition."""
        return self.problem == DENIED[53]


def verdict_of(code: int) -> Verdict:
    """Classify an error code of a Produce answer. What is not listed may have been appended: UNKNOWN."""
    if code == 0:
        return Verdict.ACCEPTED
    if code == _OUT_OF_ORDER:
        return Verdict.OUT_OF_ORDER
    for codes, verdict in (
        (FENCING, Verdict.FENCED),
        (frozenset(DENIED), Verdict.DENIED),
        (_TOO_LARGE, Verdict.TOO_LARGE),
        (_RECORD_REFUSED, Verdict.RECORD_REFUSED),
        (_REFUSED, Verdict.REFUSED),
        (_RETRIABLE, Verdict.RETRIABLE),
    ):
        if code in codes:
            return verdict
    return Verdict.UNKNOWN


def produce_request(
    batches: Iterable[tuple[str, int, tuple[Buffer, ...]]], leaders: Leaders, transactional_id: str | None, *, transactions_v2: bool
) -> BatchesRequest:
    """One request of (remote topic, partition, buffers of a batch) for partitions that one broker leads."""
    by_topic: dict[str, list[tuple[int, tuple[Buffer, ...]]]] = {}
    for topic, partition, batch in batches:
        by_topic.setdefault(topic, []).append((partition, batch))
    return BatchesRequest(
        [(topic, leaders.topic_id(topic) or NO_TOPIC_ID, parts) for topic, parts in by_topic.items()],
        transactional_id,
        acks=-1,
        timeout_ms=ACKNOWLEDGE_MILLISECONDS,
        max_version=NEWEST if transactions_v2 or transactional_id is None else V1_PRODUCE,
    )


def produce_answers(answer: BatchesAnswer, leaders: Leaders) -> dict[tuple[str, int], Answer]:
    """The answer per remote partition."""
    found = {}
    for topic, index, code, base_offset, message in answer.partitions:
        name = topic if isinstance(topic, str) else leaders.name_of(None, topic)
        problem = "" if code == 0 else DENIED.get(code) or REFUSAL_TEXTS.get(code) or f"error {code} {message or ''}".rstrip()
        found[name, index] = Answer(verdict_of(code), base_offset, problem)
    return found
