"""What kafka-mirror-tester's experiments do to the clusters and the network, on three brokers a side; each says what it did.

A fault returns when it is over. Two are not mended: the brokers that are taken away for good stay away, so they come last.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import Feeder
from tests.drills.bounces.flow import FlowUnderTest
from tools.kafka.topics import grow_topic
from tools.proxy.rules import Link

# How long a fault lasts that ends by itself.
FAULT_SECONDS = 20.0
# Longer than a broker's session (9 s): its partitions get other leaders.
AWAY_SECONDS = 12.0
REASSIGN_SECONDS = 180.0
POLL_SECONDS = 0.3
PACKET_LOSS = 0.1
CUT_EVERY_SECONDS = 4.0
FIRST_TOPIC, LATER_TOPIC = "topic0", "topic1"
PARTITIONS = 6
# Below what is produced: 300 records of 1,000 bytes a second.
TOO_NARROW = Link(bytes_per_second=40_000)


@dataclass
class Stage:
    """The two clusters, the flow, who feeds it now, and how much of each topic was acknowledged before."""

    source: ProxiedBrokers
    target: ProxiedBrokers
    flow: FlowUnderTest
    dice: random.Random
    feeder: Feeder
    sent: dict[str, int] = field(default_factory=dict)

    @property
    def acked(self) -> dict[str, int]:
        """Records of each topic that the source has acknowledged so far."""
        return {topic: self.sent.get(topic, 0) + self.feeder.acked[topic] for topic in {*self.sent, *self.feeder.acked}}


Act = Callable[[Stage], str]


def nothing(_: Stage) -> str:
    """The long haul, shortened."""
    time.sleep(FAULT_SECONDS)
    return f"nothing, for {FAULT_SECONDS:.0f} s"


def killed(side: str) -> Act:
    """The leader of a copied partition is killed, and is back later."""

    def act(stage: Stage) -> str:
        cluster, leader = _leader(stage, side)
        cluster.cluster.nodes[leader].kill()
        time.sleep(AWAY_SECONDS)
        cluster.cluster.nodes[leader].run()
        return f"broker {leader}, a leader, killed (SIGKILL), {AWAY_SECONDS:.0f} s later started again"

    return act


def taken_away(side: str) -> Act:
    """A leader is killed for good; two brokers are left."""

    def act(stage: Stage) -> str:
        cluster, leader = _leader(stage, side)
        cluster.cluster.nodes[leader].kill()
        time.sleep(FAULT_SECONDS)
        return f"broker {leader} of 3, a leader, killed for good; watched for {FAULT_SECONDS:.0f} s"

    return act


def replaced(stage: Stage) -> str:
    """A fourth broker joins the target and gets every replica of the one that is gone, internal topics too."""
    cluster = stage.target.cluster
    gone = next(number for number, node in cluster.nodes.items() if not node.running)
    added = cluster.add().node
    moves = {
        partition: [added if node == gone else node for node in replicas]
        for partition, replicas in _replicas(cluster.bootstrap).items()
        if gone in replicas
    }
    _reassign(cluster.bootstrap, moves)
    cluster.wait_until_in_sync()
    return f"broker {added} added, {len(moves)} partitions (internal ones too) moved to it from broker {gone}"


def leaders_moved(stage: Stage) -> str:
    """Every partition of the target, the internal ones too, gets another leader, three times."""
    bootstrap = stage.target.bootstrap
    for _ in range(3):
        moves = {partition: [*replicas[1:], replicas[0]] for partition, replicas in _replicas(bootstrap).items()}
        _reassign(bootstrap, moves)
        client = KafkaAdminClient(bootstrap_servers=bootstrap)
        client.elect_leaders(0, raise_errors=False)
        client.close()
        time.sleep(FAULT_SECONDS / 4)
    return f"all {len(moves)} partitions of the target, internal ones too, led by another broker, 3 times"


def partitions_added(stage: Stage) -> str:
    """The source topic grows to twice its partitions, and they are written to at once."""
    grow_topic(stage.source.cluster.client_settings(), FIRST_TOPIC, 2 * PARTITIONS)
    stage.feeder.targets[FIRST_TOPIC] = 2 * PARTITIONS
    since = time.monotonic()
    _until(lambda: any(number >= PARTITIONS for _, number in list(stage.flow.arrival.seen)))
    found = time.monotonic() - since
    return f"{PARTITIONS} partitions grown to {2 * PARTITIONS} at the source only; first record of a new one after {found:.0f} s"


def topic_added(stage: Stage) -> str:
    """A topic that the flow's pattern matches is created and written to."""
    stage.source.create(LATER_TOPIC, PARTITIONS)
    stage.feeder.targets[LATER_TOPIC] = PARTITIONS
    since = time.monotonic()
    _until(lambda: stage.flow.arrival.count(LATER_TOPIC) > 0)
    return f"created at the source only; first record on the target after {time.monotonic() - since:.0f} s"


def packets_lost(stage: Stage) -> str:
    """All links of the copier, on both sides, lose packets, and connections break."""
    cuts = 0
    for cluster in (stage.source, stage.target):
        cluster.set_link(Link(delay=0.04, jitter=0.02, loss=PACKET_LOSS))
    ends = time.monotonic() + FAULT_SECONDS
    while time.monotonic() < ends:
        time.sleep(CUT_EVERY_SECONDS)
        cluster = stage.dice.choice([stage.source, stage.target])
        cuts += cluster.proxies[stage.dice.choice([1, 2, 3])].cut()
    for cluster in (stage.source, stage.target):
        cluster.set_link(Link())
    return f"{PACKET_LOSS:.0%} of the frames late as lost packets are (0.2 s, 0.6 s…), 40-60 ms a way, {cuts} connections cut"


def packets_of_a_source_broker_lost(stage: Stage) -> str:
    """One broker of the source is hard to reach."""
    stage.source.set_link(Link(loss=PACKET_LOSS), 1)
    time.sleep(FAULT_SECONDS)
    stage.source.set_link(Link())
    return f"{PACKET_LOSS:.0%} of one broker's frames late as lost packets are, for {FAULT_SECONDS:.0f} s"


def target_unreachable(stage: Stage) -> str:
    """One broker of the target swallows everything, without a word."""
    proxy = stage.target.proxies[stage.dice.choice([1, 2, 3])]
    proxy.drop()
    time.sleep(FAULT_SECONDS)
    proxy.restore()
    return f"a broker of the target a black hole to the copier for {FAULT_SECONDS:.0f} s"


def under_capacity(stage: Stage) -> str:
    """The links to the target carry less than what is produced."""
    stage.target.set_link(TOO_NARROW)
    time.sleep(FAULT_SECONDS)
    stage.target.set_link(Link())
    return f"{TOO_NARROW.bytes_per_second:,.0f} bytes a second to each broker of the target for {FAULT_SECONDS:.0f} s, then free again"


SCENARIOS: Sequence[tuple[str, Act]] = (
    ("long haul", nothing),
    ("kill a broker of the source", killed("source")),
    ("kill a broker of the target", killed("target")),
    ("leader changes on the target", leaders_moved),
    ("add a topic", topic_added),
    ("add partitions", partitions_added),
    ("packet loss at the replicator", packets_lost),
    ("packet loss at a source broker", packets_of_a_source_broker_lost),
    ("target broker unreachable", target_unreachable),
    ("under capacity and back", under_capacity),
    ("source one broker smaller", taken_away("source")),
    ("target one broker smaller", taken_away("target")),
    ("target one broker larger again", replaced),
)


def _leader(stage: Stage, side: str) -> tuple[ProxiedBrokers, int]:
    cluster, topic = {"source": (stage.source, FIRST_TOPIC), "target": (stage.target, f"{stage.flow.alias}.{FIRST_TOPIC}")}[side]
    return cluster, cluster.cluster.leaders(topic)[0]


def _replicas(bootstrap: str) -> Mapping[TopicPartition, list[int]]:
    """The preferred leader first."""
    topics = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=30).topics
    return {
        TopicPartition(name, number): list(partition.replicas)
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
    }


def _reassign(bootstrap: str, moves: Mapping[TopicPartition, list[int]]) -> None:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        refused = {partition: error for partition, error in client.alter_partition_reassignments(dict(moves)).items() if error}
        assert not refused, refused
        _until(lambda: not client.list_partition_reassignments())
    finally:
        client.close()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + REASSIGN_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)
