"""Where a complete read ends: at the high watermark that ListOffsets tells, never at one that a fetch names. And leaders that change."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import kafka.errors as kafka_errors
import pytest
from kafka.future import Future
from kafka.protocol.consumer import FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from tests.copying import feed_bench

from ferry.clusters.logs import internal_reader, offset_listing
from ferry.clusters.logs.fetch_round import ANSWER_BYTES, FetchRound
from ferry.clusters.logs.internal_reader import InternalTopicReader
from ferry.clusters.net.connections import RequestLost
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders, metadata_request
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked

pytestmark = pytest.mark.unit

UNKNOWN_TOPIC, NOT_LEADER, OFFSET_NOT_AVAILABLE = 3, 6, 78


class NewLeader:
    """Was elected a moment ago: it has all records, but tells a lower high watermark until a follower has fetched."""

    alias = "A"

    def __init__(self, loop: EventLoop, known_after: int) -> None:
        self.loop, self.leaders, self.left = loop, Leaders(self), known_after  # type: ignore[arg-type] - it plays the connection
        self.metadata, self.epoch, self.width, self.fetches = 0, 4, 1, 0
        self.refusals: list[int | Exception] = []  # the codes or errors of the first fetches
        self.sizes: list[int] = []  # how many bytes each fetch asked for
        self.logs: list[tuple[bytes, int]] = []  # what the next fetches find instead: records, and the end of the log
        self.gone_meanwhile = False  # somebody else learns while a fetch is answered that the topic is gone

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

    async def answers_of_two(self, request: Any) -> list[Any]:
        return [await self.send(request)]

    def learn_brokers(self, answer: Any) -> None:
        assert answer.topics

    def submit(self, request: Any, *_: object) -> Future:
        if isinstance(request, MetadataRequest):
            return self.loop.start(self.send, request)
        if isinstance(request, ListOffsetsRequest):
            return self.loop.start(self._ends, [part.partition_index for part in request.topics[0].partitions])
        self.sizes.append(request.max_bytes)
        return self.loop.start(self._fetched, [part.partition for part in request.topics[0].partitions])

    async def answer_to(self, submitted: Future) -> Any:
        try:
            return await submitted
        except kafka_errors.KafkaError as problem:
            raise RequestLost(str(problem)) from problem

    async def _ends(self, numbers: list[int]) -> Any:
        self.left -= 1
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        code, end = (OFFSET_NOT_AVAILABLE, -1) if self.left >= 0 else (0, 3)
        parts = [topic.ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=end) for number in numbers]
        return ListOffsetsResponse[7](topics=[topic(name="t", partitions=parts)])

    async def _fetched(self, numbers: list[int]) -> Any:
        self.fetches += 1
        refusal = self.refusals.pop(0) if self.refusals else 0
        if isinstance(refusal, Exception):
            raise refusal
        if self.gone_meanwhile:
            self.width = 0
            self.leaders.take(await self.send(metadata_request(["t"])))
        topic = FetchResponse.FetchableTopicResponse
        end, records = (0, b"") if self.left >= 0 or refusal else (3, feed_bench.batch(0, 1, 2))
        if self.logs:
            records, end = self.logs.pop(0)
        told = {"error_code": refusal, "records": records, "last_stable_offset": end, "high_watermark": end}
        return FetchResponse[12](
            responses=[topic(topic="t", partitions=[topic.PartitionData(partition_index=one, **told) for one in numbers])]
        )


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def reading(leader: NewLeader) -> InternalTopicReader:
    def begin(ask: Callable[..., Coroutine[Any, Any, Any]], *wanted: object, **__: object) -> Asked[Any]:
        return Asked(lambda: leader.loop.run(ask, leader, *wanted))

    cluster: Any = SimpleNamespace(alias="A", begin_asking=begin, cluster=SimpleNamespace(alias="A"))
    return InternalTopicReader(cluster)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_new_leader_that_does_not_know_the_high_watermark_yet(rounds: int, loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    assert [record.offset for record in reading(NewLeader(loop, rounds)).read("t")] == [0, 1, 2]


def test_a_complete_read_asks_for_the_leader_anew(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is remembered may have been replaced without knowing it."""
    leader = NewLeader(loop, 0)
    reader = reading(leader)
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
    changes: dict[str, int], records: int, fetches: int, loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(offset_listing, "GONE_SECONDS", 0.0)
    leader = NewLeader(loop, -1)
    reader = reading(leader)
    assert reader.partitions("t") == (0,)
    leader.__dict__.update(changes)
    assert (len(list(reader.read("t"))), leader.fetches) == (records, fetches)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("refusal", "second"),
    [
        (NOT_LEADER, ANSWER_BYTES),
        (kafka_errors.KafkaConnectionError("reset"), ANSWER_BYTES),
        (kafka_errors.RequestTimedOutError("10 s"), ANSWER_BYTES // 4),
    ],
    ids=["it leads no more", "it died", "it is slow"],
)
def test_a_leader_that_changes_in_the_middle_of_a_read(
    refusal: int | Exception, second: int, complete: bool, loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next round asks for the leaders, and waits for the answer. Only who is slow is asked for less."""
    pauses = list[float]()
    monkeypatch.setattr(internal_reader, "clock", SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append))
    leader = NewLeader(loop, -1)
    leader.refusals.append(refusal)
    assert [record.offset for record in reading(leader).read("t", complete=complete)] == [0, 1, 2]
    assert (leader.sizes, len(pauses)) == ([ANSWER_BYTES, second], 1)


def test_a_leader_that_is_slow_is_told_from_one_that_is_not_known(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, wanted = NewLeader(loop, -1), {TopicPartition("t", 0): 0}
    monkeypatch.setattr(leader, "_fetched", lambda _: Future())
    told = loop.run(FetchRound(wanted, 1, 0, seconds=0.1).ask, leader)  # type: ignore[arg-type] - it plays the connection
    assert (list(told.fetched), told.late) == ([], True)
    leader.leaders.forget(["t"])
    monkeypatch.setattr(leader, "send", lambda *_: Future())
    told = loop.run(FetchRound(wanted, 1, 0, seconds=0.1).ask, leader)  # type: ignore[arg-type] - as above
    assert (list(told.fetched), told.late) == ([], False)


def test_a_partition_is_answered_once_though_its_topic_goes_meanwhile(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = NewLeader(loop, -1)
    leader.gone_meanwhile = True
    assert [record.offset for record in reading(leader).read("t", complete=False)] == [0, 1, 2]


def test_a_read_goes_on_to_where_the_log_ends_meanwhile(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction has removed record 1 because record 3 has its key. The read began when the log ended at 3."""
    leader = NewLeader(loop, -1)
    leader.logs = [(feed_bench.batch(0) + feed_bench.batch(2), 4), (feed_bench.batch(3), 4)]
    assert [record.offset for record in reading(leader).read("t")] == [0, 2, 3]
    assert leader.fetches == 2


def test_another_broker_names_a_newer_leader(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader that was known was cut off: what it told does not count."""
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    leader = NewLeader(loop, -1)
    leader.logs = [(feed_bench.batch(0, 1), 2), (feed_bench.batch(0, 1, 2), 3)]

    async def two(request: Any) -> list[Any]:
        old = await leader.send(request)
        leader.epoch = 5
        return [await leader.send(request), old]

    monkeypatch.setattr(leader, "answers_of_two", two)
    assert [record.offset for record in reading(leader).read("t")] == [0, 1, 2]
    assert leader.fetches == 2


def test_a_leader_that_lacks_what_the_caller_wrote_is_not_believed(loop: EventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was cut off from the other brokers, and does not know that another one leads now."""
    monkeypatch.setattr(internal_reader, "PAUSE_SECONDS", 0.0)
    leader = NewLeader(loop, -1)  # it tells that the log ends at 3
    leader.logs = [(feed_bench.batch(0, 1, 2), 3), (b"", 3), (feed_bench.batch(3, 4), 5)]
    assert [record.offset for record in reading(leader).read("t", least={TopicPartition("t", 0): 5})] == [0, 1, 2, 3, 4]
