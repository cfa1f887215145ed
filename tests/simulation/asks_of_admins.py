"""Requests as data, like asks.py: about groups, topics and configs, coordinators, and what a cluster shows of transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from tests.simulation.asks import NO_ID, Ask, Memory


@dataclass(frozen=True)
class Commit(Ask):
    group: str
    topic: str
    partition: int = 0
    offset: int = 0
    metadata: str | None = ""
    member: str = ""

    def request(self, memory: Memory) -> OffsetCommitRequest:
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        part = kind.OffsetCommitRequestPartition(
            partition_index=self.partition, committed_offset=self.offset, committed_leader_epoch=-1, committed_metadata=self.metadata
        )
        topics = [kind(name=self.topic, partitions=[part])]
        return OffsetCommitRequest(group_id=self.group, member_id=self.member, topics=topics, max_version=9)


@dataclass(frozen=True)
class Offsets(Ask):
    """OffsetFetch. Without `topic`: all that the group has."""

    group: str
    topic: str = ""
    partitions: tuple[int, ...] = (0,)
    stable: bool = True

    def request(self, memory: Memory) -> OffsetFetchRequest:
        group, partitions = OffsetFetchRequest.OffsetFetchRequestGroup, list(self.partitions)
        old, new = OffsetFetchRequest.OffsetFetchRequestTopic, group.OffsetFetchRequestTopics
        return OffsetFetchRequest(
            group_id=self.group,
            topics=[old(name=self.topic, partition_indexes=partitions)] if self.topic else None,
            groups=[
                group(group_id=self.group, topics=[new(name=self.topic, partition_indexes=partitions)] if self.topic else None),
            ],
            require_stable=self.stable,
            min_version=7,
            max_version=9,
        )


@dataclass(frozen=True)
class Metadata(Ask):
    """`learn` takes the topics' ids."""

    topics: tuple[str, ...]
    operations: bool = False

    def request(self, memory: Memory) -> MetadataRequest:
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in self.topics]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=self.operations)

    def learn(self, memory: Memory, answer: Any) -> None:
        memory.topic_ids.update({topic.name: topic.topic_id for topic in answer.topics if not topic.error_code})


@dataclass(frozen=True)
class CreateTopics(Ask):
    name: str
    partitions: int = 1
    replicas: int = 1
    config: tuple[tuple[str, str], ...] = ()
    only_checked: bool = False

    def request(self, memory: Memory) -> CreateTopicsRequest:
        kind = CreateTopicsRequest.CreatableTopic
        configs = [kind.CreatableTopicConfig(name=name, value=value) for name, value in self.config]
        topic = kind(name=self.name, num_partitions=self.partitions, replication_factor=self.replicas, assignments=[], configs=configs)
        return CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=self.only_checked)

    def learn(self, memory: Memory, answer: Any) -> None:
        for topic in answer.topics:
            if not topic.error_code and not self.only_checked:
                memory.topic_ids[topic.name] = topic.topic_id


@dataclass(frozen=True)
class CreatePartitions(Ask):
    name: str
    count: int

    def request(self, memory: Memory) -> CreatePartitionsRequest:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=self.name, count=self.count, assignments=None)
        return CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)


@dataclass(frozen=True)
class DeleteTopics(Ask):
    name: str

    def request(self, memory: Memory) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=self.name, topic_id=NO_ID)], timeout_ms=30_000, min_version=6
        )


@dataclass(frozen=True)
class DescribeConfigs(Ask):
    name: str
    keys: tuple[str, ...] | None = None
    kind: int = 2

    def request(self, memory: Memory) -> DescribeConfigsRequest:
        keys = None if self.keys is None else list(self.keys)
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=self.kind, resource_name=self.name, configuration_keys=keys)
        return DescribeConfigsRequest(resources=[resource], min_version=1)


@dataclass(frozen=True)
class AlterConfigs(Ask):
    """`operation`: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str
    key: str
    value: str | None
    operation: int = 0

    def request(self, memory: Memory) -> IncrementalAlterConfigsRequest:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = kind.AlterableConfig(name=self.key, config_operation=self.operation, value=self.value)
        resource = kind(resource_type=2, resource_name=self.name, configs=[change])
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


@dataclass(frozen=True)
class FindCoordinators(Ask):
    keys: tuple[str, ...]
    kind: int = 0

    def request(self, memory: Memory) -> FindCoordinatorRequest:
        return FindCoordinatorRequest(key=self.keys[0], key_type=self.kind, coordinator_keys=list(self.keys), max_version=5)


@dataclass(frozen=True)
class DescribeGroups(Ask):
    group: str

    def request(self, memory: Memory) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[self.group])


@dataclass(frozen=True)
class ListGroups(Ask):
    def request(self, memory: Memory) -> ListGroupsRequest:
        return ListGroupsRequest()


@dataclass(frozen=True)
class DeleteGroups(Ask):
    group: str

    def request(self, memory: Memory) -> DeleteGroupsRequest:
        return DeleteGroupsRequest(groups_names=[self.group])


@dataclass(frozen=True)
class DeleteOffsets(Ask):
    group: str
    topic: str
    partition: int = 0

    def request(self, memory: Memory) -> OffsetDeleteRequest:
        kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
        part = kind.OffsetDeleteRequestPartition(partition_index=self.partition)
        return OffsetDeleteRequest(group_id=self.group, topics=[kind(name=self.topic, partitions=[part])])


@dataclass(frozen=True)
class DescribeTransactions(Ask):
    id: str

    def request(self, memory: Memory) -> DescribeTransactionsRequest:
        return DescribeTransactionsRequest(transactional_ids=[self.id])


@dataclass(frozen=True)
class ListTransactions(Ask):
    writers: tuple[str, ...] = ()

    def request(self, memory: Memory) -> ListTransactionsRequest:
        return ListTransactionsRequest(producer_id_filters=[memory.pair(name)[0] for name in self.writers])


@dataclass(frozen=True)
class ApiVersions(Ask):
    def request(self, memory: Memory) -> ApiVersionsRequest:
        return ApiVersionsRequest(client_software_name="test", client_software_version="1", max_version=4)
