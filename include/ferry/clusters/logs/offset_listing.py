"""The first and last offsets of many partitions, and offsets of times: one ListOffsets request for all partitions that a broker leads.

With kafka-python, because librdkafka makes an object for every partition, and a plan asks about all partitions of both clusters. If a
leader is dead or has just changed, Ferry asks again until another leader is elected. Each partition has its own error.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError
from kafka.future import Future
from kafka.protocol.consumer import ListOffsetsRequest

from ferry import clock
from ferry.clusters.net.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import LIST_OFFSETS, Action
from ferry.clusters.net.event_loop import Question, together
from ferry.clusters.net.leaders import ELECTION_SECONDS, GONE_SECONDS, metadata_request
from ferry.clusters.net.partitions import TopicPartition, chunks, grouped, partitions_of
from ferry.clusters.net.shared_connection import Asked, ConnectedCluster
from ferry.config import ClientRole

T = TypeVar("T")

# The last: the record with the largest time (KIP-734).
EARLIEST, LATEST, NEWEST = -2, -1, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# Few round trips, and a broker answers each in a fraction of a second.
PARTITIONS_A_REQUEST = 5_000
# All partitions wait for a broker that hangs, until its partitions get other leaders. A busy broker gets more time with each attempt.
FIRST_ANSWER_MILLISECONDS = 5_000
ANSWER_MILLISECONDS = 30_000
# A broker with remote storage may search for a time as long as the request allows. It must answer before Ferry gives up.
BROKER_SHARE = 0.75
LEADER_PAUSE_SECONDS = 0.2
# Of several questions about one partition in a row, only the first waits for its leader. After this time it may be another outage.
HOPELESS_SECONDS = 30.0
# After this Ferry decides whether a topic exists without the brokers that have not answered.
VOTE_MILLISECONDS = 3_000


class Listed(NamedTuple):
    """One answer: an offset (-1: there is none), and for a time or NEWEST the record's time in ms, otherwise -1."""

    offset: int
    moment: int


Codes = dict[TopicPartition, KafkaError]
Found = tuple[dict[TopicPartition, int], Codes]
# Requests that are under way, each with its partitions.
Submitted = list[tuple[Sequence[TopicPartition], Future]]


class OffsetListing:
    """Asks one cluster. Not for several threads."""

    def __init__(self, cluster: ConnectedCluster, role: ClientRole, contact_milliseconds: float = BOOTSTRAP_MILLISECONDS) -> None:
        """`contact_milliseconds`: after this time a cluster that has never answered is unreachable."""
        self._cluster, self._role, self._contact_milliseconds = cluster, role, contact_milliseconds
        self._hopeless: dict[TopicPartition, float] = {}  # partitions whose last question had no answer, and when Ferry gave up

    def _begin(self, question: Question[T], *arguments: Any) -> Asked[T]:
        return self._cluster.begin_asking(question, *arguments, role=self._role, milliseconds=self._contact_milliseconds)

    def offsets(self, partitions: Iterable[TopicPartition], at: int, *, committed: bool) -> Found:
        """Offsets (-1: there is none), and the errors of the other partitions. ClusterUnreachable if no broker answers at all.

        `at`: EARLIEST, LATEST (with `committed` the last stable offset), or a time of records in ms.
        """
        [found] = self.ask(partitions, [(at, committed)]).answer()
        return found

    def ask(self, partitions: Iterable[TopicPartition], questions: Iterable[tuple[int, bool]]) -> Asked[list[Found]]:
        """The answers of `offsets` to several questions `(at, committed)`. A broker answers those about its partitions in this order."""
        keys = list(dict.fromkeys(partitions))
        asked = [(at, READ_COMMITTED if committed else READ_UNCOMMITTED) for at, committed in questions]

        def offsets(answers: Iterable[tuple[dict[TopicPartition, Listed], Codes]]) -> list[Found]:
            return [({key: listed.offset for key, listed in found.items()}, problems) for found, problems in answers]

        return self._begin(self._all, keys, asked).then(offsets) if keys else Asked(lambda: [({}, {}) for _ in asked])

    def overlooked(self, partitions: Iterable[TopicPartition], at: int, *, committed: bool) -> dict[TopicPartition, Listed]:
        """Partitions whose leader overlooks a (`committed`) record of the time `at` or later, each with its newest record.

        When compaction removes all records of a producer's last batch, it keeps the empty batch with its time. A leader that searches for
        that time, or an earlier one, finds the segment with that batch but no record in it, and does not search the next segment.
        """
        keys = list(partitions)
        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        newest, _ = self._begin(self._offsets, keys, NEWEST, isolation).answer() if keys else ({}, {})
        doubtful = {key: listed for key, listed in newest.items() if listed.moment >= at}
        starts, _ = self.offsets(doubtful, EARLIEST, committed=False)  # a leader may still name a record that DeleteRecords removed
        ends, _ = self.offsets(doubtful, LATEST, committed=committed)
        readable = [key for key, listed in doubtful.items() if starts.get(key, 0) <= listed.offset < ends.get(key, 0)]
        # The leader may now find a record that was written or committed after the first request.
        found, _ = self.offsets(readable, at, committed=committed)
        return {key: doubtful[key] for key, offset in found.items() if offset < 0}

    def partitions(self, topic: str) -> tuple[int, ...] | KafkaError:
        """The partition numbers of `topic`. UNKNOWN_TOPIC_OR_PART if no broker that answers knows it. ClusterUnreachable as above."""
        return self._begin(_partitions, topic).answer()

    async def _all(
        self, connection: ClusterConnection, keys: list[TopicPartition], asked: list[tuple[int, int]]
    ) -> list[tuple[dict[TopicPartition, Listed], Codes]]:
        loop = connection.loop
        if len(asked) > 1:
            with suppress(RequestNotSent, RequestLost):  # otherwise each question would ask for the leaders itself
                await connection.leaders.known({key.topic for key in keys})
        return await together([loop.start(self._offsets, connection, keys, at, isolation) for at, isolation in asked])

    async def _offsets(
        self, connection: ClusterConnection, keys: list[TopicPartition], at: int, isolation: int
    ) -> tuple[dict[TopicPartition, Listed], Codes]:
        found: dict[TopicPartition, Listed] = {}
        problems: Codes = {}
        wanted: Sequence[TopicPartition] = keys
        begun, milliseconds = clock.monotonic(), FIRST_ANSWER_MILLISECONDS
        while wanted:
            failed = await self._ask_all(connection, wanted, found, (at, isolation, milliseconds))
            problems = {key: error for key, error in (problems | failed).items() if key not in found}
            passed = clock.monotonic() - begun
            milliseconds = min(max(milliseconds, round(passed * 1_000)), ANSWER_MILLISECONDS)
            wanted = [key for key, error in failed.items() if passed < _patience(error) and not self._is_hopeless(key)]
            if wanted:
                await connection.loop.sleep(LEADER_PAUSE_SECONDS)
        for key in found:
            self._hopeless.pop(key, None)
        self._hopeless.update(dict.fromkeys(problems, clock.monotonic()))
        return found, problems

    def _is_hopeless(self, key: TopicPartition) -> bool:
        return clock.monotonic() - self._hopeless.get(key, -math.inf) < HOPELESS_SECONDS

    async def _ask_all(
        self, connection: ClusterConnection, keys: Sequence[TopicPartition], found: dict[TopicPartition, Listed], how: tuple[int, int, int]
    ) -> Codes:
        """One round: adds answers to `found`; the errors of the other partitions. `how`: time, isolation, milliseconds for an answer."""
        problems = await _without_leader(connection, keys)
        problems |= await take_listing(connection, submit_listing(connection, [key for key in keys if key not in problems], how), found)
        connection.leaders.forget({key.topic for key in problems})
        return problems


def submit_listing(connection: ClusterConnection, keys: Iterable[TopicPartition], how: tuple[int, int, int]) -> Submitted:
    """Ask the leaders that are known, with few requests. `how`: time, isolation, milliseconds for an answer."""
    at, isolation, milliseconds = how
    return [
        (
            chunk,
            connection.submit(
                list_offsets_request(dict.fromkeys(chunk, -1), at, isolation, round(milliseconds * BROKER_SHARE)), node, milliseconds
            ),
        )
        for node, members in connection.leaders.by_node(keys).items()
        for chunk in chunks(members, PARTITIONS_A_REQUEST)
    ]


async def take_listing(connection: ClusterConnection, submitted: Submitted, found: dict[TopicPartition, Listed]) -> Codes:
    """Add the answers to `found`; the errors of the other partitions."""
    problems: Codes = {}
    for chunk, future in submitted:
        try:
            answer = await connection.answer_to(future)
        except (RequestNotSent, RequestLost) as problem:
            problems |= dict.fromkeys(chunk, KafkaError(KafkaError._TRANSPORT, str(problem)))  # noqa: SLF001 - a public name
        else:
            told = dict(partitions_of(answer.topics))
            for key in chunk:
                code = told[key].error_code if key in told else KafkaError.UNKNOWN_TOPIC_OR_PART
                if code:
                    problems[key] = KafkaError(code)
                else:
                    found[key] = Listed(told[key].offset, told[key].timestamp)
    return problems


async def _without_leader(connection: ClusterConnection, keys: Sequence[TopicPartition]) -> Codes:
    """The errors of those partitions whose leader is not known; asks for it where it may have changed."""
    leaders = connection.leaders
    try:
        await leaders.known(key.topic for key in keys)
    except (RequestNotSent, RequestLost) as problem:
        return dict.fromkeys(keys, KafkaError(KafkaError._TRANSPORT, str(problem)))  # noqa: SLF001 - a public name
    problems: Codes = {}
    numbers = {topic: frozenset(leaders.partitions(topic)) for topic in {key.topic for key in keys}}
    for key in keys:
        if leaders.code(key.topic) or key.partition not in numbers[key.topic]:
            problems[key] = KafkaError(leaders.code(key.topic) or KafkaError.UNKNOWN_TOPIC_OR_PART)
        elif leaders.of(*key).node < 0:
            problems[key] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    return problems


async def _partitions(connection: ClusterConnection, topic: str) -> tuple[int, ...] | KafkaError:
    begun, leaders = clock.monotonic(), connection.leaders
    while True:
        try:
            await leaders.known([topic])
            if leaders.is_missing(topic):
                await vote(connection, topic)
            found = leaders.partitions(topic) or KafkaError(leaders.code(topic) or KafkaError.LEADER_NOT_AVAILABLE)
        except (RequestNotSent, RequestLost) as problem:
            found = KafkaError(KafkaError._TRANSPORT, str(problem))  # noqa: SLF001 - a public name
        gone = isinstance(found, KafkaError) and found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if not isinstance(found, KafkaError) or gone or clock.monotonic() - begun > _patience(found):
            return found
        await connection.loop.sleep(LEADER_PAUSE_SECONDS)


async def vote(connection: ClusterConnection, topic: str) -> None:
    """Take the answer of any broker that knows the topic: a broker that has just started may not know it yet."""
    for vote in [connection.submit(metadata_request([topic]), node, VOTE_MILLISECONDS) for node in connection.brokers()]:
        with suppress(RequestNotSent, RequestLost):
            connection.leaders.take(await connection.answer_to(vote))
            if not connection.leaders.is_missing(topic):
                return


def _patience(error: KafkaError) -> float:
    """How many seconds Ferry asks again after this error."""
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return GONE_SECONDS
    return ELECTION_SECONDS if LIST_OFFSETS.action(error.code()) is Action.LEADER else 0.0


def list_offsets_request(epochs: Mapping[TopicPartition, int], at: int, isolation: int, milliseconds: int) -> ListOffsetsRequest:
    """The request for partitions that one broker leads, each with its leader epoch (-1: unknown). `milliseconds`: the broker may take."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    by_topic = grouped(
        (key.topic, topic.ListOffsetsPartition(partition_index=key.partition, current_leader_epoch=epoch, timestamp=at))
        for key, epoch in epochs.items()
    )
    topics = [topic(name=name, partitions=parts) for name, parts in by_topic.items()]
    return ListOffsetsRequest(isolation_level=isolation, topics=topics, timeout_ms=milliseconds)
