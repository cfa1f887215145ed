"""Reads committed offsets of groups from their coordinator (OffsetFetch).

Not with librdkafka: its ListConsumerGroupOffsets crashes the process when a coordinator answers with an error (2.16: the response handler
reaches for a consumer group that an admin client does not have).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.consumer.group import OffsetFetchRequest

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.group_model import CommittedOffset
from ferry.clusters.partitions import TopicPartition, by_topic

# The newest version that goes by topic name; version 10 goes by topic id. Before version 8 a request names one group (KIP-709).
VERSION, SEVERAL_GROUPS = 9, 8


class GroupAnswer(NamedTuple):
    """The answer for one group: its error code (0: none), and by partition an error code and the offset, which is negative for none."""

    code: int
    partitions: Mapping[TopicPartition, tuple[int, CommittedOffset]]


async def fetch_offsets(
    connection: ClusterConnection,
    node: int | None,
    groups: Sequence[str],
    partitions: Iterable[tuple[str, int]] | None = None,
    *,
    stable: bool,
    milliseconds: int | None = None,
) -> dict[str, GroupAnswer]:
    """Offsets of `groups` that broker `node` coordinates, for these partitions (None: all that the group has committed).

    `stable`: offsets of a transaction that is not decided are an error of their partition (KIP-447); otherwise the offsets before that
    transaction are given. A broker before version 8 answers for the first group only. `milliseconds`: for the answer. RequestNotSent,
    RequestLost.
    """
    topic_type, group_type = OffsetFetchRequest.OffsetFetchRequestTopic, OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = None if partitions is None else by_topic(partitions).items()

    def topics(kind: Any) -> list[Any] | None:
        return None if wanted is None else [kind(name=topic, partition_indexes=numbers) for topic, numbers in wanted]

    asked = [
        group_type(group_id=group, member_id=None, member_epoch=-1, topics=topics(group_type.OffsetFetchRequestTopics)) for group in groups
    ]
    request = OffsetFetchRequest(group_id=groups[0], topics=topics(topic_type), groups=asked, require_stable=stable, max_version=VERSION)
    answer = await connection.send(request, node, milliseconds)
    return {entry.group_id: _read(entry) for entry in answer.groups} if answer.version >= SEVERAL_GROUPS else {groups[0]: _read(answer)}


def _read(entry: Any) -> GroupAnswer:
    return GroupAnswer(
        entry.error_code,
        {
            TopicPartition(topic.name, part.partition_index): (
                part.error_code,
                CommittedOffset(part.committed_offset, part.committed_leader_epoch, part.metadata or ""),
            )
            for topic in entry.topics
            for part in topic.partitions
        },
    )
