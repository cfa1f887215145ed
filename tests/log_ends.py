"""The ends of all logs of clusters and the offsets of all groups: who looks without writing leaves them as they are.

Topics to which brokers write by themselves are left out. A broker writes to the topic of the groups' offsets when a member is late, for
example; the offsets themselves stand for it. It writes to the topic of the share groups' state every five minutes (Kafka's
share.coordinator.cold.partition.snapshot.interval.ms), and Ferry does not touch share groups.
"""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.waiting import until
from tools.kafka import SandboxCluster

# A broker answers EndTxn before it has written the markers of the transaction.
MARKERS_SECONDS = 60.0
OF_BROKERS = frozenset({"__consumer_offsets", "__share_group_state"})


def log_ends(*clusters: SandboxCluster) -> dict[str, int]:
    """By `cluster topic partition`, once no transaction is open there, and by `cluster group topic partition`.

    Left out: partitions where a transaction stays open.
    """
    return {f"{cluster.name} {log}": end for cluster in clusters for log, end in _of_one(cluster).items()}


def until_markers(cluster: SandboxCluster, topic: str) -> None:
    """A commit and an abort return before their markers are written; until then a run ends before those records."""
    client = AdminClient(cluster.client_settings())
    keys = [TopicPartition(topic, number) for number in client.list_topics(topic, timeout=20).topics[topic].partitions]
    until(lambda: _ends(client, keys, IsolationLevel.READ_COMMITTED) == _ends(client, keys, IsolationLevel.READ_UNCOMMITTED))


def _of_one(cluster: SandboxCluster) -> dict[str, int]:
    client = AdminClient(cluster.client_settings())
    topics = client.list_topics(timeout=20).topics
    keys = [TopicPartition(name, number) for name, topic in topics.items() if name not in OF_BROKERS for number in topic.partitions]
    deadline = time.monotonic() + MARKERS_SECONDS
    while True:
        stable, ends = (_ends(client, keys, level) for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED))
        if stable == ends or time.monotonic() > deadline:
            return {name: end for name, end in ends.items() if stable[name] == end} | _offsets(client)
        time.sleep(0.2)


def _ends(client: AdminClient, keys: list[TopicPartition], level: IsolationLevel) -> dict[str, int]:
    answers = client.list_offsets(dict.fromkeys(keys, OffsetSpec.latest()), isolation_level=level)
    return {f"{key.topic} {key.partition}": future.result(20).offset for key, future in answers.items()}


def _offsets(client: AdminClient) -> dict[str, int]:
    """Of all groups but the one without a name, of which this client cannot ask; another test may have left it behind."""
    groups = [entry.group_id for entry in client.list_consumer_groups().result(20).valid if entry.group_id]
    asked = [client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group] for group in groups]
    answers = [future.result(20) for future in asked]
    return {f"{answer.group_id} {key.topic} {key.partition}": key.offset for answer in answers for key in answer.topic_partitions or ()}
