"""Requests whose batches are not copied are byte by byte what kafka-python encodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest

from ferry.clusters.producing import produce_request

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
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics)
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
    request.with_header()
    assert any(buffer is batch for buffer in request.encode(header=True, framed=True))
