"""Where a complete read ends: at the high watermark that ListOffsets tells, never at one that a fetch names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from tests.copying import feed_bench

from ferry.clusters import internal_reader, offset_listing
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.leaders import Leaders
from ferry.clusters.shared_connection import Asked

pytestmark = pytest.mark.unit

UNKNOWN_TOPIC, OFFSET_NOT_AVAILABLE = 3, 78


class NewLeader(feed_bench.Source):
    """Was elected a moment ago: it has all records, but tells a lower high watermark until a follower has fetched."""

    def __init__(self, known_after: int) -> None:
        super().__init__()
        self.loop, self.leaders, self.left = self, Leaders(self), known_after  # type: ignore[assignment, arg-type] - it plays both
        self.metadata, self.epoch, self.width, self.fetches = 0, 4, 1, 0

    def brokers(self) -> tuple[int, ...]:
        return (1,)

    async def send(self, request: Any, *_: object) -> Any:
        self.metadata += 1
        topic = MetadataResponse.MetadataResponseTopic
        led = [
            topic.MetadataResponsePartition(partition_index=number, leader_id=1, leader_epoch=self.epoch) for number in range(self.width)
        ]
        code, topic_id = (0, UUID(int=1)) if self.width else (UNKNOWN_TOPIC, UUID(int=0))
        found = [topic(name=one.name, topic_id=topic_id, error_code=code, partitions=led) for one in request.topics]
        return MetadataResponse[12](topics=found)

    def learn_brokers(self, answer: Any) -> None:
        assert answer.topics

    def submit(self, request: Any, *_: object) -> Any:
        if isinstance(request, MetadataRequest):
            return self.send(request)
        numbers = [
            part.partition_index if isinstance(request, ListOffsetsRequest) else part.partition for part in request.topics[0].partitions
        ]
        return self._ends(numbers) if isinstance(request, ListOffsetsRequest) else self._fetched(numbers)

    async def answer_to(self, submitted: Any) -> Any:
        return await submitted

    async def done_by(self, *_: object) -> bool:
        return True

    async def _ends(self, numbers: list[int]) -> Any:
        self.left -= 1
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        code, end = (OFFSET_NOT_AVAILABLE, -1) if self.left >= 0 else (0, 3)
        parts = [topic.ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=end) for number in numbers]
        return ListOffsetsResponse[7](topics=[topic(name="t", partitions=parts)])

    async def _fetched(self, numbers: list[int]) -> Any:
        self.fetches += 1
        topic = FetchResponse.FetchableTopicResponse
        end, records = (0, b"") if self.left >= 0 else (3, feed_bench.batch(0, 1, 2))
        parts = [topic.PartitionData(partition_index=one, records=records, last_stable_offset=end, high_watermark=end) for one in numbers]
        return FetchResponse[12](responses=[topic(topic="t", partitions=parts)])


def reading(leader: NewLeader, monkeypatch: pytest.MonkeyPatch) -> InternalTopicReader:
    def begin(_: object, ask: Callable[..., Coroutine[Any, Any, Any]], *wanted: object, **__: object) -> Asked[Any]:
        return Asked(lambda: asyncio.run(ask(leader, *wanted)))

    for module in (internal_reader, offset_listing):
        monkeypatch.setattr(module, "begin_asking", begin)
    reader: Any = InternalTopicReader(SimpleNamespace(alias="A"))  # type: ignore[arg-type] - it only names the cluster
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
    for asked in (2, 3):  # at first also for the partitions
        assert len(list(reader.read("t"))) == 3
        assert leader.metadata == asked
    assert len(list(reader.read("t", complete=False))) == 3
    assert leader.metadata == 3


@pytest.mark.parametrize(
    ("changes", "records", "fetches"),
    [({}, 3, 1), ({"epoch": 5}, 3, 2), ({"width": 2}, 6, 2), ({"width": 0}, 0, 1)],
    ids=["the same", "another leader", "more partitions", "the topic is gone"],
)
def test_what_has_changed_since_the_leaders_were_learned(
    changes: dict[str, int], records: int, fetches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(offset_listing, "GONE_SECONDS", 0.0)
    leader = NewLeader(-1)
    reader = reading(leader, monkeypatch)
    assert reader.partitions("t") == (0,)
    leader.__dict__.update(changes)
    assert (len(list(reader.read("t"))), leader.fetches) == (records, fetches)
