"""Where many partitions begin and end: one ListOffsets request for all that a broker leads.

Over the raw data path: librdkafka makes an object of its own for every partition, and a plan asks about all partitions of both clusters.
A partition without a leader, or whose leader has just changed, is asked for again for a short while; what goes wrong is told of each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from ferry.clusters.answers import LIST_OFFSETS, Action
from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.clusters.partitions import TopicPartition

if TYPE_CHECKING:
    from ferry.config import Cluster

EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# Few round trips, and a broker answers one in a fraction of a second.
PARTITIONS_A_REQUEST = 5_000
# A broker that hangs: the others' partitions wait for it.
ANSWER_MILLISECONDS = 30_000
# A topic that was just created, and a partition whose leader just changed, are not answered for a moment; longer is worth naming.
LEADER_SECONDS = 3.0
LEADER_PAUSE_SECONDS = 0.2

Found = tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]
Codes = dict[TopicPartition, KafkaError]


class OffsetListing:
    """Asks one cluster over a connection of its own, which is opened by the first question. Not for several threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._loop = EventLoop()
        self._connection: ClusterConnection | None = None
        self._leaders: dict[TopicPartition, int] = {}

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._loop.close()

    def offsets(self, partitions: Iterable[TopicPartition], at: int, *, committed: bool) -> Found:
        """Offsets (-1: there is none), and errors of the others. ClusterUnreachable when no broker answers at all.

        `at`: EARLIEST, LATEST (with `committed` the last stable offset), or a time of records in ms.
        """
        keys = list(dict.fromkeys(partitions))
        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        return self._loop.run(self._offsets, keys, at, isolation) if keys else ({}, {})

    async def _offsets(self, keys: list[TopicPartition], at: int, isolation: int) -> Found:
        connection = await self._opened()
        found: dict[TopicPartition, int] = {}
        problems: Codes = {}
        deadline = time.monotonic() + LEADER_SECONDS
        wanted = keys
        while True:
            failed = await self._ask_all(connection, wanted, found, at, isolation)
            passing = {key: error for key, error in failed.items() if LIST_OFFSETS.action(error.code()) is Action.LEADER}
            problems.update({key: error for key, error in failed.items() if key not in passing})
            if not passing or time.monotonic() > deadline:
                return found, problems | passing
            wanted = list(passing)
            await self._loop.sleep(LEADER_PAUSE_SECONDS)

    async def _ask_all(
        self, connection: ClusterConnection, keys: Sequence[TopicPartition], found: dict[TopicPartition, int], at: int, isolation: int
    ) -> Codes:
        """One round: adds to `found`; the errors of the others."""
        problems = await self._learn_leaders(connection, [key for key in keys if key not in self._leaders])
        by_node: dict[int, list[TopicPartition]] = {}
        for key in keys:
            if key in self._leaders:
                by_node.setdefault(self._leaders[key], []).append(key)
        asked = [(chunk, node) for node, members in by_node.items() for chunk in _chunks(members)]
        waiting = [(chunk, connection.submit(_request(chunk, at, isolation), node, ANSWER_MILLISECONDS)) for chunk, node in asked]
        for chunk, future in waiting:
            try:
                answer = await future
            except Exception as problem:
                failure = connection.classified(problem)
                if not isinstance(failure, RequestNotSent | RequestLost):
                    raise failure from problem
                problems |= dict.fromkeys(chunk, KafkaError(KafkaError._TRANSPORT, str(failure)))  # noqa: SLF001 - a public name
            else:
                _take(answer, chunk, found, problems)
        for key in problems:
            self._leaders.pop(key, None)
        return problems

    async def _learn_leaders(self, connection: ClusterConnection, keys: Sequence[TopicPartition]) -> Codes:
        """Ask who leads these; the errors of those whose leader is not known."""
        topic = MetadataRequest.MetadataRequestTopic
        if not keys:  # of no topics would mean of all
            return {}
        try:
            answer = await connection.send(
                MetadataRequest(topics=[topic(name=name) for name in {key.topic for key in keys}], allow_auto_topic_creation=False)
            )
        except (RequestNotSent, RequestLost) as problem:
            return dict.fromkeys(keys, KafkaError(KafkaError._TRANSPORT, str(problem)))  # noqa: SLF001 - see above
        errors = {entry.name: entry.error_code for entry in answer.topics}
        nodes = {(entry.name, part.partition_index): part.leader_id for entry in answer.topics for part in entry.partitions}
        problems: Codes = {}
        for key in keys:
            node = nodes.get(key)
            if errors.get(key.topic) or node is None:
                problems[key] = KafkaError(errors.get(key.topic) or KafkaError.UNKNOWN_TOPIC_OR_PART)
            elif node < 0:
                problems[key] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
            else:
                self._leaders[key] = node
        return problems

    async def _opened(self) -> ClusterConnection:
        from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

        if self._connection is None:
            connection = ClusterConnection(self._loop, self._cluster, ClientRole.ADMIN)
            try:
                await connection.open()
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _chunks(keys: Sequence[TopicPartition]) -> Iterable[Sequence[TopicPartition]]:
    return (keys[start : start + PARTITIONS_A_REQUEST] for start in range(0, len(keys), PARTITIONS_A_REQUEST))


def _request(keys: Iterable[TopicPartition], at: int, isolation: int) -> ListOffsetsRequest:
    topic = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[int]] = {}
    for name, number in keys:
        by_topic.setdefault(name, []).append(number)
    wanted = topic.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            topic(name=name, partitions=[wanted(partition_index=number, current_leader_epoch=-1, timestamp=at) for number in numbers])
            for name, numbers in by_topic.items()
        ],
        timeout_ms=ANSWER_MILLISECONDS,
    )


def _take(answer: Any, asked: Iterable[TopicPartition], found: dict[TopicPartition, int], problems: Codes) -> None:
    codes: Mapping[tuple[str, int], tuple[int, int]] = {
        (entry.name, part.partition_index): (part.error_code, part.offset) for entry in answer.topics for part in entry.partitions
    }
    for key in asked:
        code, offset = codes.get(key, (KafkaError.UNKNOWN_TOPIC_OR_PART, -1))
        if code:
            problems[key] = KafkaError(code)
        else:
            found[key] = offset
