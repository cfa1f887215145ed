"""What all request handlers of a simulated cluster share: brokers, topics, the time, steps, requests that wait, producer ids.

A broker that is cut off from the controller keeps the metadata that it had, and goes on as the leader that it was (`Broker.image`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from random import Random
from typing import NamedTuple
from uuid import UUID

from tests.simulation.codes import Code
from tests.simulation.partition import NO_LEADER, Led, Partition
from tests.simulation.releases import Release
from tests.simulation.rights import Rights
from tests.simulation.steps import Reply, StepKind, Steps
from tests.simulation.topic_configs import Shown, topic_defaults
from tests.simulation.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC, Topic

GROUPS, TRANSACTIONS = 0, 1  # kinds of coordinators, as of FindCoordinator
_STATE_TOPICS = {GROUPS: GROUPS_TOPIC, TRANSACTIONS: TRANSACTIONS_TOPIC}
Key = tuple[str, int]  # topic and partition


@dataclass(frozen=True)
class Settings:
    """How a cluster is set up."""

    cluster_id: str = "simulated"
    brokers: Sequence[int] = (1,)
    release: Release = (4, 3)
    transaction_version: int = 2  # 0: a release that does not know this feature
    state_partitions: int = 5  # of each topic with the state of coordinators
    state_replicas: int = 1
    largest_transaction_timeout: int = 900_000  # transaction.max.timeout.ms
    timeout_check_interval: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    largest_metadata: int = 4_096  # offset.metadata.max.bytes
    port: int = 9_092  # of the first broker; the others follow
    seed: int = 0  # of topic ids
    topic_defaults: Mapping[str, Shown] = field(default_factory=dict)  # of topics that set nothing themselves, other than Kafka's


class Image(NamedTuple):
    """The metadata of a moment."""

    topics: Mapping[str, Topic]
    led: Mapping[Key, Led]
    up: frozenset[int]


class Broker:
    """One broker. `image`: what it still believes while it is cut off; None: it knows everything."""

    def __init__(self, node: int, port: int) -> None:
        self.node, self.host, self.port = node, "127.0.0.1", port
        self.up = True
        self.image: Image | None = None
        self.unready = False  # it does not know yet what it leads
        self.throttle = 0  # ms that quotas ask for in all answers


@dataclass
class Parked:
    """A request that waits for something. `due`: when it is answered at the latest, in ms."""

    about: str
    broker: Broker
    reply: Reply
    due: int
    ready: Callable[[], bool]
    act: Callable[[], None]  # answers; may let the request wait for something else
    queued: bool = False
    timed: bool = False  # whether the caller knows when it is due


class ClusterState:
    """`now`: ms since 1970, moved by the caller."""

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.now = settings, now
        self.brokers = {node: Broker(node, settings.port + place) for place, node in enumerate(settings.brokers)}
        self.topics: dict[str, Topic] = {}
        self.topic_ids: dict[UUID, Topic] = {}
        self.steps = Steps()
        self.parked: list[Parked] = []
        self.rights = Rights()
        self.loading: set[tuple[int, int]] = set()  # kind of coordinator, and partition of its topic
        self.topic_defaults = {**topic_defaults(settings.release), **settings.topic_defaults}
        self._random = Random(settings.seed)
        self._producer_ids = count(settings.seed * 1_000)
        self._created = 0

    @property
    def bumps(self) -> bool:
        """Whether every transaction has an epoch of its own (transaction.version 2, KIP-890)."""
        return self.settings.transaction_version >= 2

    @property
    def has_zookeeper(self) -> bool:
        """Whether topics and configs are changed over ZooKeeper, whose answers differ from KRaft's."""
        return self.settings.release < (3, 3)

    @property
    def has_old_coordinator(self) -> bool:
        """Whether groups are at the coordinator before KIP-848, which makes a group before it checks a commit."""
        return self.settings.release < (4, 0)

    @property
    def empties_in_sync(self) -> bool:
        """Whether a partition without a leader has no replica in sync: the controller keeps elsewhere which may be elected (KIP-966)."""
        return self.settings.release >= (4, 1)

    @property
    def verifies(self) -> bool:
        """Whether the leader of a partition asks the coordinator before it begins a transaction (KIP-890, part 1)."""
        return self.settings.release >= (3, 6)

    @property
    def checks_open_epoch(self) -> bool:
        """Whether a partition asks the coordinator about another epoch than that of the transaction that it has open."""
        return self.settings.release >= (4, 0)

    @property
    def fences_first(self) -> bool:
        """Whether a partition refuses a fenced epoch before it asks the coordinator."""
        return self.settings.release >= (4, 1)

    @property
    def fences_twice(self) -> bool:
        """Whether an abort by the coordinator raises the epoch twice."""
        return self.settings.release == (4, 0)

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def new_id(self) -> UUID:
        """For a topic."""
        return UUID(int=self._random.getrandbits(128))

    def up(self) -> list[int]:
        return [node for node, broker in self.brokers.items() if broker.up]

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str] | None = None) -> Topic:
        """A new topic, whose replicas are spread over the brokers that are up."""
        self._created += 1
        assignment, own = self.spread(0, partitions, replicas), dict(config or {})
        topic = Topic(name, self.new_id(), assignment, own, self.topic_defaults)
        topic.leave_sync(self.brokers.keys() - self.up())
        self.topics[name] = self.topic_ids[topic.topic_id] = topic
        return topic

    def spread(self, first: int, partitions: int, replicas: int) -> list[tuple[int, ...]]:
        """Brokers for new partitions, the preferred leaders in turn; those that are down only if there are too few others."""
        up = self.up()
        down = [node for node in self.brokers if node not in up]
        turns = [(self._created + first + number) % len(up) for number in range(partitions)]
        return [tuple([*up[turn:], *up[:turn], *down][:replicas]) for turn in turns]

    def delete_topic(self, topic: Topic) -> None:
        del self.topics[topic.name], self.topic_ids[topic.topic_id]

    def topics_of(self, broker: Broker) -> Mapping[str, Topic]:
        """The topics that a broker knows."""
        return self.topics if broker.image is None else broker.image.topics

    def topic_of(self, broker: Broker, name: str | None, topic_id: UUID | None) -> Topic | None:
        """The topic of this name, or without a name of this id."""
        if name:
            return self.topics_of(broker).get(name)
        if broker.image is None:
            return self.topic_ids.get(topic_id) if topic_id else None
        return next((topic for topic in broker.image.topics.values() if topic.topic_id == topic_id), None)

    def led(self, broker: Broker, partition: Partition) -> Led:
        """Who leads a partition, as far as this broker knows."""
        return partition.led if broker.image is None else broker.image.led.get(partition.key, partition.led)

    def up_for(self, broker: Broker) -> frozenset[int]:
        """The brokers that are up, as far as this one knows."""
        return frozenset(self.up()) if broker.image is None else broker.image.up

    def partition_of(self, broker: Broker, topic: Topic | None, index: int) -> Partition | None:
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def not_led(self, broker: Broker, partition: Partition, epoch: int = -1, *, leader_only: bool = True) -> Code:
        """Why a broker refuses a request about a partition. `epoch`: the leader epoch that the client knows; -1: none."""
        led = self.led(broker, partition)
        if broker.node not in partition.logs:
            return Code.NOT_LEADER_OR_FOLLOWER
        if broker.node in partition.offline:
            return Code.KAFKA_STORAGE_ERROR
        if broker.unready:
            return Code.NOT_LEADER_OR_FOLLOWER
        if epoch >= 0 and epoch != led.epoch:
            return Code.FENCED_LEADER_EPOCH if epoch < led.epoch else Code.UNKNOWN_LEADER_EPOCH
        return Code.NOT_LEADER_OR_FOLLOWER if leader_only and led.leader != broker.node else Code.NONE

    def park(self, parked: Parked) -> None:
        """Answer later, when it is `ready` or its time is over."""
        self.parked.append(parked)

    def look_at_parked(self) -> None:
        """Something has changed: make a step of each request that can be answered now."""
        if not self.parked:
            return
        for parked in self.parked:
            if not parked.queued and (parked.due <= self.now or parked.ready()):
                parked.queued = True
                self.steps.add(StepKind.ANSWER, parked.about, lambda parked=parked: self._answer(parked))  # type: ignore[misc]
        self.parked = [parked for parked in self.parked if not parked.queued]

    def _answer(self, parked: Parked) -> bool:
        if not parked.reply.ended:
            parked.act()
        return True

    def state_partition(self, kind: int, key: str) -> Partition | None:
        """The partition whose leader coordinates a group or a transactional id; None: its topic does not exist yet."""
        topic = self.topics.get(_STATE_TOPICS[kind])
        return None if topic is None else topic.partitions[abs(_java_hash(key)) % len(topic.partitions)]

    def coordinator(self, kind: int, key: str) -> Partition | None:
        """As `state_partition`; the first question creates the topic, and has no answer yet."""
        found = self.state_partition(kind, key)
        if found is None:
            config = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
            self.create_topic(_STATE_TOPICS[kind], self.settings.state_partitions, self.settings.state_replicas, config)
        return found

    def not_coordinator(self, broker: Broker, kind: int, key: str) -> Code:
        """Why a broker refuses a request to a coordinator."""
        partition = self.state_partition(kind, key)
        if partition is None or self.led(broker, partition).leader != broker.node:
            return Code.NOT_COORDINATOR
        if broker.node in partition.offline:
            return Code.COORDINATOR_NOT_AVAILABLE
        return Code.COORDINATOR_LOAD_IN_PROGRESS if (kind, partition.index) in self.loading else Code.NONE

    def coordinates(self, kind: int, key: str) -> bool:
        """Whether the coordinator of `key` is up and knows its state."""
        partition = self.state_partition(kind, key)
        if partition is None or partition.led.leader == NO_LEADER or (kind, partition.index) in self.loading:
            return False
        return self.writes(partition)

    def writes(self, partition: Partition) -> bool:
        """Whether the partition has a leader that is up and can write."""
        leader = partition.led.leader
        return leader != NO_LEADER and self.brokers[leader].up and leader not in partition.offline


@lru_cache(maxsize=10_000)
def _java_hash(text: str) -> int:
    """String.hashCode."""
    found = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found
