"""Damaged responses end in a protocol error, which closes the connection, and in nothing else."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaError, KafkaProtocolError
from kafka.protocol.parser import KafkaProtocol
from tests.clusters.net.test_frames import response, waiting
from tests.drills.fuzz.damage import damaged, fuzzed

from ferry.clusters.logs.fetching import FetchPosition, fetched_partitions
from ferry.clusters.logs.producing import BatchesRequest, PartitionAnswer, decode_answer, encode_unsigned
from ferry.clusters.net.frames import MALFORMED, Frame, FrameParser

LEADERS: Any = SimpleNamespace(name_of=lambda name, _: name)

pytestmark = pytest.mark.unit

FETCHED = response(1, b"records" * 9)
# One topic by id, one partition: index, error, base offset, append time, log start; no errors of records, a message, no tags.
ANSWER = b"\x02" + UUID(int=7).bytes + b"\x02" + struct.pack(">ihqqq", 3, 0, 17, -1, 0) + b"\x01" + b"\x03no" + b"\0\0" + bytes(4) + b"\0"


@fuzzed
@given(stream=damaged(st.just(FETCHED)), cut=st.integers(1, 60))
def test_fetch_responses(stream: bytes, cut: int) -> None:
    parser = waiting(1)
    try:
        for at in range(0, len(stream), cut):
            for _, answer in parser.receive_bytes(stream[at : at + cut]):
                fetched_partitions(answer, [FetchPosition("t", 0, 0, -1)], LEADERS)
    except KafkaError:
        return


def test_the_answer_is_what_it_is_meant_to_be() -> None:
    found = decode_answer(memoryview(ANSWER), 13)
    assert found.partitions == [PartitionAnswer(UUID(int=7), 3, 0, 17, "no")]


@fuzzed
@given(data=damaged(st.just(ANSWER)), version=st.integers(9, 13))
def test_produce_answers(data: bytes, version: int) -> None:
    try:
        decode_answer(memoryview(data), version)
    except MALFORMED:
        return


@fuzzed
@given(body=damaged(st.just(ANSWER)), version=st.integers(3, 13), tags=damaged(st.just(b"\0")))
def test_produce_frames(body: bytes, version: int, tags: bytes) -> None:
    parser = FrameParser(KafkaProtocol(client_id="ferry"))
    request = BatchesRequest([("t", UUID(int=7), [(3, (b"batch",))])], None)
    request.API_VERSION = version
    parser.send_request(request)
    payload = struct.pack(">i", 1) + tags + body
    try:
        parser.receive_bytes(struct.pack(">i", len(payload)) + payload)
    except KafkaError:
        return


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1])
def test_no_room_is_made_for_frames_that_no_broker_sends(size: int) -> None:
    with pytest.raises(KafkaError):
        waiting(1).receive_bytes(struct.pack(">i", size) + b"x")


def test_many_tags_cost_no_more_than_their_bytes() -> None:
    parser = waiting(1)
    with pytest.raises(KafkaProtocolError):
        parser.receive_bytes(struct.pack(">ii", 14, 1) + encode_unsigned((1 << 63) - 1) + b"\0")


def test_a_frame_reads_no_further_than_it_goes() -> None:
    frame = Frame(memoryview(b"abc"))
    assert (frame.read(2), frame.read(9), frame.read(1)) == (b"ab", b"c", b"")
