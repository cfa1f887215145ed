"""Our frames of Produce are byte by byte what kafka-python encodes, and mean what it decodes."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from ferry.clusters.groups.coordination import TRANSACTION_MILLISECONDS
from ferry.clusters.logs.fetching import FETCH_WAIT_MILLISECONDS, LIST_OFFSETS_MILLISECONDS
from ferry.clusters.logs.producing import (
    ACKNOWLEDGE_MILLISECONDS,
    Answer,
    BatchesAnswer,
    PartitionAnswer,
    decode_answer,
    produce_answers,
    produce_request,
)
from ferry.clusters.net.connections import REQUEST_MILLISECONDS
from ferry.clusters.net.error_policy import Action
from ferry.clusters.net.frames import Frame

pytestmark = pytest.mark.unit

TOPICS = {"A.orders": UUID(int=1 << 100 | 7), "A.t": UUID(int=3)}
LEADERS: Any = SimpleNamespace(topic_id=TOPICS.get)
BATCHES = st.lists(
    st.tuples(st.sampled_from(sorted(TOPICS)), st.integers(0, 300), st.lists(st.binary(max_size=300), max_size=3)), max_size=6
)


def expected(batches: list[tuple[str, int, tuple[bytes, ...]]], transactional_id: str | None, version: int) -> bytes:
    by_topic: dict[str, list[Any]] = {}
    partition = ProduceRequest.TopicProduceData.PartitionProduceData
    for topic, index, buffers in batches:
        by_topic.setdefault(topic, []).append(partition(index=index, records=b"".join(buffers)))
    topics = [ProduceRequest.TopicProduceData(name=name, topic_id=TOPICS[name], partition_data=parts) for name, parts in by_topic.items()]
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=ACKNOWLEDGE_MILLISECONDS, topic_data=topics)
    return framed(request, version)


def framed(request: Any, version: int) -> bytes:
    request.API_VERSION = version
    request.with_header(correlation_id=12, client_id="ferry")
    encoded = request.encode(header=True, framed=True)
    return b"".join(encoded) if isinstance(encoded, list) else bytes(encoded)


@given(drawn=BATCHES, transactional_id=st.none() | st.text(max_size=200), version=st.integers(3, 13))
def test_frames_are_what_kafka_python_encodes(
    drawn: list[tuple[str, int, list[bytes]]], transactional_id: str | None, version: int
) -> None:
    batches = [(topic, index, tuple(buffers)) for topic, index, buffers in drawn]
    request = produce_request(batches, LEADERS, transactional_id, transactions_v2=True)
    assert framed(request, version) == expected(batches, transactional_id, version)


def test_large_batches_are_not_copied() -> None:
    batch = memoryview(bytes(1 << 20))
    request: Any = produce_request([("A.t", 0, (b"head", batch))], LEADERS, "id", transactions_v2=True)
    request.API_VERSION = 13
    request.with_header(1, "ferry")
    assert any(buffer is batch for buffer in request.encode(header=True, framed=True))


ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(sorted(TOPICS)),
        st.lists(
            st.tuples(
                st.integers(0, 300),
                st.integers(-1, 130),
                st.integers(-1, 1 << 62),
                st.none() | st.text(max_size=200),
                st.lists(st.none() | st.text(max_size=5), max_size=2),
                st.booleans(),
            ),
            max_size=4,
        ),
    ),
    max_size=3,
)


@given(drawn=ANSWERS, version=st.integers(9, 13), throttled=st.integers(0, 1_000))
def test_answers_are_read_as_kafka_python_wrote_them(drawn: list[Any], version: int, throttled: int) -> None:
    topic_type = ProduceResponse.TopicProduceResponse
    part_type = topic_type.PartitionProduceResponse
    expected_answers, topics = [], []
    for name, parts in drawn:
        shown: Any = TOPICS[name] if version >= 13 else name
        written = []
        for index, code, base, message, errors, moved in parts:
            leader = {"current_leader": part_type.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)} if moved and version >= 10 else {}
            record_errors = [
                part_type.BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=text) for at, text in enumerate(errors)
            ]
            written.append(
                part_type(index=index, error_code=code, base_offset=base, error_message=message, record_errors=record_errors, **leader)
            )
            expected_answers.append(PartitionAnswer(shown, index, code, base, message))
        topics.append(topic_type(name=name, topic_id=TOPICS[name], partition_responses=written))
    encoded = ProduceResponse[version](responses=topics, throttle_time_ms=throttled).encode()
    assert decode_answer(memoryview(bytes(encoded)), version) == BatchesAnswer(expected_answers, throttled)
    for cut in range(0, len(encoded) - 1, 7):
        with pytest.raises((ValueError, struct.error, IndexError)):
            decode_answer(memoryview(bytes(encoded[:cut])), version)


@pytest.mark.parametrize("version", range(3, 14))
def test_an_exchange_reads_its_answer(version: int) -> None:
    request = produce_request([("A.t", 4, (b"batch",))], LEADERS, "id", transactions_v2=True)
    request.API_VERSION = version
    request.with_header(7, "ferry")
    topic_type = ProduceResponse.TopicProduceResponse
    part = topic_type.PartitionProduceResponse(index=4, error_code=0, base_offset=99)
    answer = ProduceResponse[version](responses=[topic_type(name="A.t", topic_id=TOPICS["A.t"], partition_responses=[part])])
    answer.with_header(correlation_id=7)
    frame = Frame(memoryview(bytes(answer.encode(header=True))))
    reader = request.header.get_response_class()
    assert reader.parse_header(frame).correlation_id == 7
    found = reader.decode(frame)
    leaders: Any = SimpleNamespace(name_of=lambda _, topic_id: {TOPICS["A.t"]: "A.t"}[topic_id])
    assert produce_answers(found, leaders) == {("A.t", 4): Answer(Action.GO_ON, 99, "")}


@pytest.mark.parametrize(
    ("waits", "margin"),
    [
        (ACKNOWLEDGE_MILLISECONDS, 10_000),
        (FETCH_WAIT_MILLISECONDS, 10_000),
        (LIST_OFFSETS_MILLISECONDS, 5_000),
        pytest.param(30_000, 5_000, id="request.timeout.ms of a broker: a coordinator waits so long for the replicas of its log"),
    ],
)
def test_the_broker_answers_before_the_client_gives_up(waits: int, margin: int) -> None:
    assert waits + margin <= REQUEST_MILLISECONDS < TRANSACTION_MILLISECONDS
