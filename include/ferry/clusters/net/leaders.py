"""Which broker leads each partition, and which topic id a name has today.

If the topic id of a name is not the expected one, its partitions have no leaders here. So a run neither reads nor writes a topic that was
deleted and created again in the meantime.

A broker that is cut off from the others goes on as leader, and answers what it knows. So a leader counts only if its leader epoch is not
lower than a known one of the same topic id (KIP-320). To learn what other processes have written, Ferry asks two brokers
(`ask_two`): of two, one at most is cut off alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from ferry import clock
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.error_policy import METADATA, Action
from ferry.clusters.net.partitions import TopicPartition, grouped

NO_TOPIC_ID = UUID(int=0)  # what clusters answer whose topics have none: before 2.8, also by inter.broker.protocol.version
# A lane without a leader asks again and again. Brokers that elect thousands of leaders must not answer every lane ten times a second.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
# After this time without a refresh, the pauses begin again with the first.
QUIET_SECONDS = 5.0
# A broker that is cut off from the others goes on as leader. A client that asks only this broker does not learn of the new leader.
KNOWN_SECONDS = 10.0
# A broker that has just started, or does not know a new topic yet, reports it as missing. For this long such an answer proves nothing.
GONE_SECONDS = 5.0
# An election takes as long as the session of a dead broker: 9 s (broker.session.timeout.ms), with ZooKeeper 18 s. In addition, Ferry must
# have given up the request to that broker.
ELECTION_SECONDS = 40.0


class Leader(NamedTuple):
    """Leader of one partition: broker id (-1: none now) and leader epoch (-1: unknown)."""

    node: int
    epoch: int


class AnswersMetadata(Protocol):
    """What a Metadata request is sent over: a connection to a cluster."""

    async def send(self, request: Any) -> Any:
        """The answer. RequestNotSent, RequestLost."""

    async def answers_of_two(self, request: Any) -> list[Any]:
        """The answers of two brokers, or of one. RequestNotSent, RequestLost."""

    def learn_brokers(self, answer: Any) -> None:
        """Take the brokers from a Metadata answer."""


NO_NODE = -1
NO_LEADER = Leader(NO_NODE, -1)


def metadata_request(topics: Iterable[str] | None, **more: Any) -> MetadataRequest:
    """Asks for these topics; None: for all that the user may describe. `more`: other fields."""
    topic_type = MetadataRequest.MetadataRequestTopic
    wanted = None if topics is None else [topic_type(name=topic) for topic in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False, **more)


class Leaders:
    """Leaders of topics of one cluster, from Metadata. A lane refreshes them when a broker says that it is not the leader.

    Short questions share the ones of their connection (`known`): they ask only for topics that are not known, and forget a topic after an
    error that may come from a leader that has changed, and after KNOWN_SECONDS.
    """

    def __init__(self, connection: AnswersMetadata, topics: Iterable[str] = (), expected: Mapping[str, UUID] | None = None) -> None:
        self._connection = connection
        self._topics = sorted(set(topics))
        self._expected = {topic: topic_id for topic, topic_id in (expected or {}).items() if topic_id != NO_TOPIC_ID}
        self._leaders: dict[str, dict[int, Leader]] = {}
        self._newest: dict[UUID, dict[int, Leader]] = {}  # by topic id: of each partition, the leader with the highest epoch
        self._topic_ids: dict[str, UUID] = {}
        self._names = {topic_id: topic for topic, topic_id in self._expected.items()}
        self._gone_since: dict[str, float] = {}
        self._codes: dict[str, int] = {}
        self._told: dict[str, float] = {}
        self._pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._pause, self._asked = 0.0, float("-inf")

    @property
    def rested(self) -> bool:
        """Whether the pause since the last refresh is over. The pauses double while leaders are missing."""
        return clock.monotonic() - self._asked >= self._pause

    @property
    def age(self) -> float:
        """Seconds since the last refresh."""
        return clock.monotonic() - self._asked

    async def refresh(self) -> None:
        """Ask now. Topics that do not exist lose their entries; the connection learns the brokers. RequestNotSent, RequestLost."""
        now = clock.monotonic()
        if now - self._asked > QUIET_SECONDS:
            self._pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._pause, self._asked = next(self._pauses), now
        await self.ask(self._topics)

    async def known(self, topics: Iterable[str]) -> None:
        """Ask for those of `topics` that lack a known leader. RequestNotSent, RequestLost."""
        since = clock.monotonic() - KNOWN_SECONDS
        unknown = sorted(
            topic
            for topic in set(topics)
            if self._told.get(topic, since) <= since or NO_NODE in {leader.node for leader in self._of_topic(topic)}
        )
        if unknown:
            await self.ask(unknown)

    def forget(self, topics: Iterable[str]) -> None:
        """The next `known` asks for them again."""
        for topic in topics:
            self._leaders.pop(topic, None)

    async def ask(self, topics: Iterable[str]) -> None:
        """Ask for all of `topics`, known or not. RequestNotSent, RequestLost."""
        self._learn(await self._connection.send(metadata_request(topics)))

    async def ask_two(self, topics: Iterable[str]) -> None:
        """The same of two brokers side by side; of each partition, the leader with the higher epoch counts."""
        for answer in sorted(await self._connection.answers_of_two(metadata_request(topics)), key=_how_new):
            self._learn(answer)

    def _learn(self, answer: Any) -> None:
        self._connection.learn_brokers(answer)
        self.take(answer)

    def take(self, answer: Any) -> None:
        """Take the topics of a Metadata answer."""
        now = clock.monotonic()
        for topic in answer.topics:
            name = topic.name
            self._leaders.pop(name, None)
            self._codes[name], self._told[name] = topic.error_code, now
            action = METADATA.action(topic.error_code)
            if action is Action.GO_ON:
                self._take(name, topic.topic_id or NO_TOPIC_ID, topic.partitions)
            elif action is Action.GONE:
                self._topic_ids.pop(name, None)
                self._gone_since.setdefault(name, now)
            if action is not Action.GONE:  # otherwise nobody says whether it exists
                self._gone_since.pop(name, None)

    def _take(self, name: str, topic_id: UUID, partitions: Iterable[Any]) -> None:
        self._topic_ids[name] = topic_id
        self._names[topic_id] = name
        told = {part.partition_index: Leader(part.leader_id, getattr(part, "leader_epoch", -1)) for part in partitions}
        if topic_id != NO_TOPIC_ID:  # under a name without id, a topic that was created again begins with lower epochs
            newest = self._newest.setdefault(topic_id, {})
            newest |= {number: leader for number, leader in told.items() if not 0 <= leader.epoch < newest.get(number, NO_LEADER).epoch}
            told = {number: newest[number] for number in told}
        if topic_id in {self._expected.get(name, topic_id), NO_TOPIC_ID}:
            self._leaders[name] = told

    def _of_topic(self, topic: str) -> Iterable[Leader]:
        return self._leaders.get(topic, {-1: NO_LEADER}).values()

    def of(self, topic: str, partition: int) -> Leader:
        """The leader, or NO_LEADER."""
        return self._leaders.get(topic, {}).get(partition, NO_LEADER)

    def by_node(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """The partitions by the broker that leads them; without those that have no leader."""
        found = grouped((self.of(key.topic, key.partition).node, key) for key in partitions)
        found.pop(NO_NODE, None)
        return found

    def topic_id(self, topic: str) -> UUID | None:
        """The current id of `topic`; None if it does not exist."""
        return self._topic_ids.get(topic)

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The numbers of the topic's partitions, in order; empty if they are not known."""
        return tuple(sorted(self._leaders.get(topic, ())))

    def is_missing(self, topic: str) -> bool:
        """Whether the last answer said that there is no such topic."""
        return topic in self._gone_since

    def is_gone(self, topic: str) -> bool:
        """Whether every answer of the last GONE_SECONDS said that there is no such topic."""
        since = self._gone_since.get(topic)
        return since is not None and clock.monotonic() - since > GONE_SECONDS

    def code(self, topic: str) -> int:
        """The error code of the last answer about `topic`; 0: none."""
        return self._codes.get(topic, 0)

    def refused(self, topic: str) -> int:
        """The code of a broker that last denied or refused to name the leaders of `topic` (see METADATA); 0: none did."""
        code = self.code(topic)
        return code if METADATA.action(code) in {Action.DENIED, Action.REFUSED} else 0

    def name_of(self, topic: str | None, topic_id: UUID | None) -> str:
        """The topic's name from an answer that gives either name or id."""
        return topic or self._names.get(topic_id or NO_TOPIC_ID, "")


def _how_new(answer: Any) -> list[tuple[bool, int]]:
    """Orders answers about the same topics: the one that knows the highest leader epochs is the last."""
    epochs = ([getattr(part, "leader_epoch", -1) for part in topic.partitions] for topic in answer.topics)
    return [(not topic.error_code, max(found, default=-1)) for topic, found in zip(answer.topics, epochs, strict=True)]
