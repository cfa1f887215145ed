"""Produce requests to the target and what their answers mean.

One batch per partition and request, as brokers demand. The lane acts by what `ferry.clusters.answers` says of a code, never by the code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ferry.clusters.answers import PERHAPS_APPENDED, PRODUCE, Action
from ferry.clusters.frames import Buffer
from ferry.clusters.leaders import NO_TOPIC_ID, Leaders
from ferry.clusters.produce_frames import NEWEST, BatchesAnswer, BatchesRequest

# How long the leader waits for its replicas. Well below REQUEST_MILLISECONDS: when they are slow, the broker answers REQUEST_TIMED_OUT, and
# this one batch is sent again with its sequence. A client that gave up first would lose the lane's whole transaction.
ACKNOWLEDGE_MILLISECONDS = 20_000
# A broker whose transaction.version is below 2 must not get a newer Produce inside a transaction (KIP-890).
V1_PRODUCE = 11


class Answer(NamedTuple):
    """The answer for one batch; `base_offset` is the downstream offset of its first record.

    `right`: what is missing where it is DENIED, with places for `{topic}` and the transactional `{id}`. `unclear`: the log may hold it.
    """

    action: Action
    base_offset: int
    problem: str
    right: str = ""
    unclear: bool = False


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
        action, told, _ = PRODUCE.meaning(code)
        problem = "" if code == 0 else PRODUCE.told(code) if told or not message else f"{PRODUCE.told(code)}: {message}"
        found[name, index] = Answer(action, base_offset, problem, told if action is Action.DENIED else "", code in PERHAPS_APPENDED)
    return found
