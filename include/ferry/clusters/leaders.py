"""Which broker leads each partition, and which topic id a name has today.

If the topic id of a name is not the expected one, its partitions have no leaders here. So a run neither reads nor writes a topic that was
deleted and created again in the meantime.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from ferry.clusters.answers import METADATA, Action
from ferry.clusters.connections import ClusterConnection
from ferry.clusters.partitions import TopicPartition, grouped
from ferry.clusters.pauses import doubling

NO_TOPIC_ID = UUID(int=0)  # what clusters older than 2.8 answer
# A lane without a leader asks again and again. Brokers that elect thousands of leaders must not answer every lane ten times a second.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
# After so long without a refresh, the pauses begin again with the first.
QUIET_SECONDS = 5.0
# A broker that has just started, or does not know a new topic yet, reports it as missing. For this long such an answer proves nothing.
GONE_SECONDS = 5.0
# An election takes as long as the session of a dead broker: 9 s (broker.session.timeout.ms), with ZooKeeper 18 s. In addition, Ferry must
# have given up the request to that broker.
ELECTION_SECONDS = 40.0


class Leader(NamedTuple):
    """Leader of one partition: broker id (-1: none now) and leader epoch (-1: unknown)."""

    node: int
    epoch: int


NO_LEADER = Leader(-1, -1)


def metadata_request(topics: Iterable[str]) -> MetadataRequest:
    """Asks for these topics; without topics for all."""
    topic_type = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(topics=[topic_type(name=topic) for topic in topics], allow_auto_topic_creation=False)


class Leaders:
    """Leaders of some topics of one cluster; refreshed when a broker says that it is not the leader."""

    def __init__(self, connection: ClusterConnection, topics: Iterable[str], expected: Mapping[str, UUID] | None = None) -> None:
        self._connection = connection
        self._topics = sorted(set(topics))
        self._expected = {topic: topic_id for topic, topic_id in (expected or {}).items() if topic_id != NO_TOPIC_ID}
        self._leaders: dict[tuple[str, int], Leader] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}
        self._gone_since: dict[str, float] = {}
        self._refused: dict[str, int] = {}
        self._pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._pause, self._asked = 0.0, float("-inf")

    @property
    def rested(self) -> bool:
        """Whether the pause since the last refresh is over. The pauses double while leaders are missing."""
        return time.monotonic() - self._asked >= self._pause

    async def refresh(self) -> None:
        """Ask now. Topics that do not exist lose their entries; the connection learns the brokers. RequestNotSent, RequestLost."""
        now = time.monotonic()
        if now - self._asked > QUIET_SECONDS:
            self._pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._pause, self._asked = next(self._pauses), now
        answer = await self._connection.send(metadata_request(self._topics))
        self._connection.learn_brokers(answer)
        now = time.monotonic()
        before, gone_before = self._topic_ids, self._gone_since
        self._leaders, self._topic_ids, self._refused, self._gone_since = {}, {}, {}, {}
        for topic in answer.topics:
            action = METADATA.action(topic.error_code)
            if action is Action.GO_ON:
                self._take(topic.name, topic.topic_id or NO_TOPIC_ID, topic.partitions)
            elif action is Action.GONE:
                self._gone_since[topic.name] = gone_before.get(topic.name, now)
            elif topic.name in before:  # nobody says whether it exists
                self._topic_ids[topic.name] = before[topic.name]
            if action in {Action.DENIED, Action.REFUSED}:
                self._refused[topic.name] = topic.error_code
        self._names = {topic_id: name for name, topic_id in (*self._topic_ids.items(), *self._expected.items())}

    def _take(self, name: str, topic_id: UUID, partitions: Iterable[Any]) -> None:
        self._topic_ids[name] = topic_id
        if topic_id in {self._expected.get(name, topic_id), NO_TOPIC_ID}:
            for part in partitions:
                self._leaders[name, part.partition_index] = Leader(part.leader_id, getattr(part, "leader_epoch", -1))

    def of(self, topic: str, partition: int) -> Leader:
        """The leader, or NO_LEADER."""
        return self._leaders.get((topic, partition), NO_LEADER)

    def by_node(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The partitions by the broker that leads them; without those that have no leader."""
        found = grouped((self.of(key.topic, key.partition).node, key) for key in partitions)
        found.pop(NO_LEADER.node, None)
        return found

    def topic_id(self, topic: str) -> UUID | None:
        """The current id of `topic`; None if it does not exist."""
        return self._topic_ids.get(topic)

    def width(self, topic: str) -> int:
        """How many partitions the topic has; 0 if that is not known."""
        return sum(name == topic for name, _ in self._leaders)

    def is_missing(self, topic: str) -> bool:
        """Whether the last refresh said that there is no such topic."""
        return topic in self._gone_since

    def is_gone(self, topic: str) -> bool:
        """Whether every refresh of the last GONE_SECONDS said that there is no such topic."""
        since = self._gone_since.get(topic)
        return since is not None and time.monotonic() - since > GONE_SECONDS

    def refused(self, topic: str) -> int:
        """The code with which a broker denied or refused to name the leaders of `topic` at the last refresh (see METADATA); 0: none did."""
        return self._refused.get(topic, 0)

    def name_of(self, topic: str | None, topic_id: UUID | None) -> str:
        """The topic's name from an answer that gives either name or id."""
        return topic or self._names.get(topic_id or NO_TOPIC_ID, "")
