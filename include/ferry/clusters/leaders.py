"""Which broker leads each partition, and which topic id a name has today."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from ferry.clusters.connections import ClusterConnection

NO_TOPIC_ID = UUID(int=0)  # what clusters older than 2.8 answer


class Leader(NamedTuple):
    """Leader of one partition: broker id (-1: none now) and leader epoch (-1: unknown)."""

    node: int
    epoch: int


NO_LEADER = Leader(-1, -1)


class Leaders:
    """Leaders of some topics of one cluster; refreshed when a broker says that it is not the leader."""

    def __init__(self, connection: ClusterConnection, topics: Iterable[str]) -> None:
        self._connection = connection
        self._topics = sorted(set(topics))
        self._leaders: dict[tuple[str, int], Leader] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}

    async def refresh(self) -> None:
        """Ask again. Topics that are gone lose their entries."""
        answer = await self._connection.send(
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in self._topics], allow_auto_topic_creation=False
            )
        )
        self._leaders = {
            (topic.name, partition.partition_index): Leader(partition.leader_id, getattr(partition, "leader_epoch", -1))
            for topic in answer.topics
            if topic.error_code == 0
            for partition in topic.partitions
        }
        self._topic_ids = {topic.name: topic.topic_id or NO_TOPIC_ID for topic in answer.topics if topic.error_code == 0}
        self._names = {topic_id: name for name, topic_id in self._topic_ids.items()}

    def of(self, topic: str, partition: int) -> Leader:
        """The leader, or NO_LEADER."""
        return self._leaders.get((topic, partition), NO_LEADER)

    def topic_id(self, topic: str) -> UUID | None:
        """Today's id of `topic`; None when it does not exist."""
        return self._topic_ids.get(topic)

    def name_of(self, topic: str | None, topic_id: UUID | None) -> str:
        """The topic's name from an answer that gives either name or id."""
        return topic or self._names.get(topic_id or NO_TOPIC_ID, "")
