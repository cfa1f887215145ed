"""Where a complete read ends: at the high watermark that ListOffsets tells, never at one that a fetch names."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse
from tests.copying import feed_bench

from ferry.clusters import internal_reader
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.leaders import Leaders

pytestmark = pytest.mark.unit

OFFSET_NOT_AVAILABLE = 78


class NewLeader(feed_bench.Source):
    """Was elected a moment ago: it has all records, but tells a lower high watermark until a follower has fetched."""

    def __init__(self, known_after: int) -> None:
        super().__init__()
        self.loop, self.leaders, self.left = self, Leaders(self), known_after  # type: ignore[assignment, arg-type] - it plays both
        self.metadata = 0

    async def send(self, request: Any) -> Any:
        self.metadata += 1
        topic = MetadataResponse.MetadataResponseTopic
        led = topic.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=4)
        return MetadataResponse[12](topics=[topic(name=one.name, topic_id=UUID(int=1), partitions=[led]) for one in request.topics])

    def learn_brokers(self, answer: Any) -> None:
        assert answer.topics

    def submit(self, request: Any, *_: object) -> Any:
        return self._end() if isinstance(request, ListOffsetsRequest) else self._fetched()

    async def answer_to(self, submitted: Any) -> Any:
        return await submitted

    async def done_by(self, *_: object) -> bool:
        return True

    async def _end(self) -> Any:
        self.left -= 1
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        code, end = (OFFSET_NOT_AVAILABLE, -1) if self.left >= 0 else (0, 3)
        part = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=end)
        return ListOffsetsResponse[7](topics=[topic(name="t", partitions=[part])])

    async def _fetched(self) -> Any:
        topic = FetchResponse.FetchableTopicResponse
        end, records = (0, b"") if self.left >= 0 else (3, feed_bench.batch(0, 1, 2))
        part = topic.PartitionData(partition_index=0, records=records, last_stable_offset=end, high_watermark=end)
        return FetchResponse[12](responses=[topic(topic="t", partitions=[part])])


def reading(leader: NewLeader, monkeypatch: pytest.MonkeyPatch) -> InternalTopicReader:
    monkeypatch.setattr(internal_reader, "ask_cluster", lambda _, ask, *wanted, **__: asyncio.run(ask(leader, *wanted)))
    reader: Any = InternalTopicReader(SimpleNamespace(alias="A"))  # type: ignore[arg-type] - it only names the cluster
    reader._offsets._ask = lambda ask, *wanted: asyncio.run(ask(leader, *wanted))
    found: InternalTopicReader = reader
    return found


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_new_leader_that_does_not_know_the_high_watermark_yet(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    assert [record.offset for record in reading(NewLeader(rounds), monkeypatch).read("t")] == [0, 1, 2]


def test_a_complete_read_asks_for_the_leader_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is remembered may have been replaced without knowing it."""
    leader = NewLeader(0)
    reader = reading(leader, monkeypatch)
    for asked in (1, 2):
        assert len(list(reader.read("t"))) == 3
        assert leader.metadata == asked
    assert len(list(reader.read("t", complete=False))) == 3
    assert leader.metadata == 2
