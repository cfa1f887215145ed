"""Two clusters of one broker each, played by this process: as many partitions as no two cores could run.

They answer what a plan asks, with Kafka's own formats, and nothing else: every other request ends the connection. An answer is encoded once
and kept, so that what is measured is the command and not the play.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

from ferry.clusters.logs.internal_batches import KeyValue, internal_batches
from ferry.config import Flow
from ferry.ledger.state import FlowRecord, Head, encode_state

# Each request with the newest version that is played.
REQUESTS = {
    request.API_KEY: (request, newest)
    for request, newest in (
        (FetchRequest, 12),
        (ListOffsetsRequest, 7),
        (MetadataRequest, 12),
        (OffsetFetchRequest, 8),
        (FindCoordinatorRequest, 4),
        (ApiVersionsRequest, 3),
        (OffsetForLeaderEpochRequest, 4),
        (DescribeConfigsRequest, 4),
    )
}
# Requests that Ferry must know to be there, although a plan sends none of them: the key and the version.
ALSO_THERE = {0: 9, 22: 4, 24: 3, 25: 3, 26: 3, 28: 3, 61: 0, 65: 0, 66: 0}
RECORDS, EPOCH = 3, 0
CONFIG = {"message.timestamp.type": "CreateTime", "max.message.bytes": "1048588"}


@dataclass(frozen=True)
class Topic:
    """`ends`: the end offset of each partition. `batches`: of partition 0, as they lie in its log."""

    name: str
    number: int
    ends: tuple[int, ...]
    batches: tuple[tuple[int, bytes], ...] = ()
    cleanup_policy: str = "delete"

    @property
    def topic_id(self) -> UUID:
        return UUID(int=self.number)


@dataclass
class PlayedCluster:
    """`positions`: the offsets that the one group has committed, by topic."""

    name: str
    topics: Mapping[str, Topic]
    positions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    port: int = 0

    def start(self) -> None:
        """Answer on a port of 127.0.0.1 until the process ends."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._all(12)

        def accept() -> None:
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        received = connection.makefile("rb")
        with connection, received:
            while size := received.read(4):
                data = received.read(struct.unpack(">i", size)[0])
                key, version, correlation = struct.unpack_from(">hhi", data)
                request = REQUESTS[key][0].decode(data, version=version, header=True)
                answer = self._answers[key](request, version)
                whole = answer if isinstance(answer, bytes) else _encoded(answer)
                connection.sendall(whole[:4] + struct.pack(">i", correlation) + whole[8:])

    @cached_property
    def _answers(self) -> dict[int, Callable[[Any, int], Any]]:
        return {
            FetchRequest.API_KEY: self._fetch,
            ListOffsetsRequest.API_KEY: self._offsets,
            MetadataRequest.API_KEY: self._metadata,
            OffsetFetchRequest.API_KEY: self._positions,
            FindCoordinatorRequest.API_KEY: self._coordinators,
            ApiVersionsRequest.API_KEY: self._versions,
            OffsetForLeaderEpochRequest.API_KEY: self._epochs,
            DescribeConfigsRequest.API_KEY: self._configs,
        }

    def _versions(self, _: Any, __: int) -> Any:
        kind, feature = ApiVersionsResponse.ApiVersion, ApiVersionsResponse.FinalizedFeatureKey
        newest = {key: version for key, (_, version) in REQUESTS.items()} | ALSO_THERE
        keys = [kind(api_key=key, min_version=0, max_version=version) for key, version in sorted(newest.items())]
        return ApiVersionsResponse[3](
            error_code=0, api_keys=keys, finalized_features=[feature(name="transaction.version", max_version_level=2, min_version_level=0)]
        )

    def _metadata(self, request: Any, version: int) -> Any:
        return self._all(version) if request.topics is None else self._described([topic.name for topic in request.topics], version)

    def _all(self, version: int) -> bytes:
        if version not in self._kept:
            self._kept[version] = _encoded(self._described(list(self.topics), version))
        return self._kept[version]

    @cached_property
    def _kept(self) -> dict[int, bytes]:
        return {}

    def _described(self, names: list[str], version: int) -> Any:
        broker, kind = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
        part = kind.MetadataResponsePartition
        topics = []
        for name in names:
            topic = self.topics.get(name)
            parts = [
                part(partition_index=number, leader_id=1, leader_epoch=EPOCH, replica_nodes=[1], isr_nodes=[1])
                for number in range(len(topic.ends) if topic else 0)
            ]
            found = topic.topic_id if topic else UUID(int=0)
            topics.append(kind(error_code=0 if topic else 3, name=name, topic_id=found, partitions=parts))
        brokers = [broker(node_id=1, host="127.0.0.1", port=self.port)]
        return MetadataResponse[version](brokers=brokers, cluster_id=self.name, controller_id=1, topics=topics)

    def _offsets(self, request: Any, version: int) -> Any:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        part = kind.ListOffsetsPartitionResponse
        topics = []
        for asked in request.topics:
            ends = self.topics[asked.name].ends
            parts = [
                part(
                    partition_index=one.partition_index, offset=0 if one.timestamp == -2 else ends[one.partition_index], leader_epoch=EPOCH
                )
                for one in asked.partitions
            ]
            topics.append(kind(name=asked.name, partitions=parts))
        return ListOffsetsResponse[version](topics=topics)

    def _positions(self, request: Any, version: int) -> Any:
        group = OffsetFetchResponse.OffsetFetchResponseGroup
        topic = group.OffsetFetchResponseTopics
        part = topic.OffsetFetchResponsePartitions
        topics = [
            topic(
                name=name,
                partitions=[
                    part(partition_index=number, committed_offset=offset, committed_leader_epoch=-1, metadata="", error_code=0)
                    for number, offset in enumerate(offsets)
                ],
            )
            for name, offsets in self.positions.items()
        ]
        return OffsetFetchResponse[version](groups=[group(group_id=one.group_id, topics=topics, error_code=0) for one in request.groups])

    def _coordinators(self, request: Any, version: int) -> Any:
        found = FindCoordinatorResponse.Coordinator
        return FindCoordinatorResponse[version](
            coordinators=[found(key=key, node_id=1, host="127.0.0.1", port=self.port, error_code=0) for key in request.coordinator_keys]
        )

    def _epochs(self, request: Any, version: int) -> Any:
        kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        part = kind.EpochEndOffset
        return OffsetForLeaderEpochResponse[version](
            topics=[
                kind(
                    topic=asked.topic,
                    partitions=[
                        part(
                            error_code=0,
                            partition=one.partition,
                            leader_epoch=EPOCH,
                            end_offset=self.topics[asked.topic].ends[one.partition],
                        )
                        for one in asked.partitions
                    ],
                )
                for asked in request.topics
            ]
        )

    def _configs(self, request: Any, version: int) -> Any:
        found = DescribeConfigsResponse.DescribeConfigsResult
        entry = found.DescribeConfigsResourceResult

        def entries(name: str) -> list[Any]:
            policy = {"cleanup.policy": self.topics[name].cleanup_policy} if name in self.topics else {}
            configs = {**CONFIG, **policy}.items()
            return [entry(name=key, value=value, read_only=False, config_source=5, is_sensitive=False) for key, value in configs]

        return DescribeConfigsResponse[version](
            results=[
                found(error_code=0, resource_type=one.resource_type, resource_name=one.resource_name, configs=entries(one.resource_name))
                for one in request.resources
            ]
        )

    def _fetch(self, request: Any, version: int) -> Any:
        kind = FetchResponse.FetchableTopicResponse
        topics = []
        for asked in request.topics:
            topic = self.topics[asked.topic]
            parts = []
            for one in asked.partitions:
                end, found = topic.ends[one.partition], b""
                for start, batch in topic.batches if one.partition == 0 else ():
                    if start >= one.fetch_offset and (not found or len(found) + len(batch) <= one.partition_max_bytes):
                        found += batch
                parts.append(kind.PartitionData(partition_index=one.partition, high_watermark=end, last_stable_offset=end, records=found))
            topics.append(kind(topic=asked.topic, partitions=parts))
        return FetchResponse[version](responses=topics)


def _encoded(answer: Any) -> bytes:
    answer.with_header(correlation_id=0)
    return bytes(answer.encode(header=True, framed=True))


def played(flow: Flow, topics: int, width: int, changed: int) -> tuple[PlayedCluster, PlayedCluster]:
    """Source and target of `flow` after a run, since which `changed` partitions got records, each in a topic of its own."""
    names = [f"t{number:06d}" for number in range(topics)]
    there = {name: Topic(name, number, (RECORDS + (number <= changed), *[RECORDS] * (width - 1))) for number, name in enumerate(names, 1)}
    rules = flow.topic_rules
    copies = [rules.remote_topic(name) for name in names]
    remote = {name: Topic(name, topics + number, (RECORDS,) * width) for number, name in enumerate(copies, 1)}
    ledger = Topic(flow.ledger_topic, 3 * topics + 1, (0,) * flow.ledger_partitions, cleanup_policy="compact")
    heads = [
        encode_state(
            Head(
                name,
                number,
                RECORDS,
                str(there[name].topic_id),
                place,
                str(remote[place].topic_id),
                str(ledger.topic_id),
                EPOCH,
                "run",
                "",
                100,
            )
        )
        for name, place in zip(names, remote, strict=True)
        for number in range(width)
    ]
    state = _log([encode_state(FlowRecord(flow.name, 8)), *heads])
    own = {
        flow.ledger_topic: ledger,
        flow.state_topic: Topic(flow.state_topic, 3 * topics + 2, (1 + len(heads),), state, "compact"),
        flow.runs_topic: Topic(flow.runs_topic, 3 * topics + 3, (0,)),
    }
    positions = dict.fromkeys(remote, (RECORDS,) * width)
    return PlayedCluster("played-source", there), PlayedCluster("played-target", {**remote, **own}, positions)


def _log(records: list[KeyValue]) -> tuple[tuple[int, bytes], ...]:
    found, at = [], 0
    for batch in internal_batches(records, time.time_ns() // 1_000_000):
        encoded = bytearray(batch.encode(-1, -1, -1, False)[0])
        struct.pack_into(">q", encoded, 0, at)
        found.append((at, bytes(encoded)))
        at += batch.count
    return tuple(found)
