"""Responses cut into reads in every way come out whole, in order, and where a read goes straight into the frame."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.parser import KafkaProtocol

from ferry.clusters.logs.producing import BatchesRequest
from ferry.clusters.net.frames import DIRECT_MINIMUM_BYTES, FrameParser

pytestmark = pytest.mark.unit

VERSION = 12


def response(correlation_id: int, records: bytes) -> bytes:
    topic, partition = FetchResponse.FetchableTopicResponse, FetchResponse.FetchableTopicResponse.PartitionData
    answer = FetchResponse(
        version=VERSION,
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic(topic="t", partitions=[partition(records=records)])],
    )
    for part in answer.responses[0].partitions:
        part.partition_index, part.error_code, part.high_watermark, part.last_stable_offset = 0, 0, 9, 9
        part.log_start_offset, part.aborted_transactions, part.preferred_read_replica = 0, [], -1
    answer.with_header(correlation_id=correlation_id)
    return bytes(answer.encode(header=True, framed=True))


def waiting(count: int) -> FrameParser:
    """A parser with `count` fetches in flight."""
    parser = FrameParser(KafkaProtocol(client_id="ferry"))
    for _ in range(count):
        parser.send_request(FetchRequest(version=VERSION, max_wait_ms=1, min_bytes=1, topics=[]))
    assert len(parser.send_bytes()) == count
    assert parser.send_bytes() == []
    return parser


def records_of(responses: list[tuple[int, Any]]) -> list[tuple[int, bytes]]:
    return [(number, bytes(answer.responses[0].partitions[0].records)) for number, answer in responses]


@given(payloads=st.lists(st.binary(max_size=200), min_size=1, max_size=5), cuts=st.lists(st.integers(1, 60), min_size=1))
def test_any_cut_gives_the_same_responses(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(response(number, payload) for number, payload in enumerate(payloads, start=1))
    parser, found, at = waiting(len(payloads)), [], 0
    while at < len(stream):
        size = cuts[at % len(cuts)]
        found += records_of(parser.receive_bytes(stream[at : at + size]))
        at += size
    assert found == list(enumerate(payloads, start=1))
    assert parser.bytes_received == len(stream)


@given(steps=st.lists(st.integers(5_000, 200_000), min_size=1))
def test_a_large_response_is_read_into_its_frame(steps: list[int]) -> None:
    payload = bytes(range(256)) * 2_000
    stream = response(1, payload) + response(2, b"after")
    parser, at, found = waiting(2), 100, []
    found += records_of(parser.receive_bytes(stream[:at]))
    turn = 0
    while at < len(stream):
        size, turn = steps[turn % len(steps)], turn + 1
        room = parser.room()
        if room is None:
            found += records_of(parser.receive_bytes(stream[at : at + size]))
            at += size
            continue
        taken = stream[at : at + min(size, len(room))]
        room[: len(taken)] = taken
        parser.received(len(taken))
        at += len(taken)
        found += records_of(parser.receive_bytes(b""))
    assert found == [(1, payload), (2, b"after")]
    assert parser.bytes_received == len(stream)


@pytest.mark.parametrize("version", range(3))
def test_the_first_answer_of_a_connection_is_understood(version: int) -> None:
    """ApiVersions has a header of its own."""
    parser = FrameParser(KafkaProtocol(client_id="ferry"))
    parser.send_request(ApiVersionsRequest(version=version, client_software_name="ferry", client_software_version="1"))
    answer = ApiVersionsResponse(version=version, error_code=35, api_keys=[], throttle_time_ms=0)
    answer.with_header(correlation_id=1)
    ((number, found),) = parser.receive_bytes(answer.encode(header=True, framed=True))
    assert (number, found.error_code) == (1, 35)


def test_a_frame_that_ends_too_early_is_a_protocol_error() -> None:
    whole = response(1, b"x" * 50)
    cut = len(whole) - 30
    with pytest.raises(KafkaProtocolError):
        waiting(1).receive_bytes((cut - 4).to_bytes(4, "big") + whole[4:cut])


def test_there_is_no_room_between_responses_or_for_small_rests() -> None:
    parser = waiting(1)
    assert parser.room() is None
    stream = response(1, bytes(DIRECT_MINIMUM_BYTES))
    parser.receive_bytes(stream[:50])
    room = parser.room()
    assert room is not None
    assert len(room) == len(stream) - 50
    parser.received(len(room) - 10)
    assert parser.room() is None


def test_an_answer_to_another_request_and_a_bad_length_are_errors() -> None:
    with pytest.raises(KafkaProtocolError):
        waiting(1).receive_bytes(response(2, b""))
    with pytest.raises(KafkaProtocolError):
        waiting(1).receive_bytes(b"\xff\xff\xff\xff")


@pytest.mark.parametrize("frame", [b"", b"\0\0", b"\0\0\0\1", b"\0\0\0\1\x80", b"\0\0\0\1\1\1" + b"\xff" * 9 + b"\1"])
def test_bytes_that_are_no_answer_to_produce_are_a_protocol_error(frame: bytes) -> None:
    parser = FrameParser(KafkaProtocol(client_id="ferry"))
    request = BatchesRequest([("t", UUID(int=1), [(0, (b"batch",))])], None)
    request.API_VERSION = 13
    parser.send_request(request)
    with pytest.raises(KafkaProtocolError):
        parser.receive_bytes(len(frame).to_bytes(4, "big") + frame)
