"""How many bytes the logs of partitions have on their brokers' disks (DescribeLogDirs), without what brokers hold in remote storage."""

from collections.abc import Collection
from contextlib import suppress

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry.clusters.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.partitions import TopicPartition, grouped

# A broker that hangs must not hold up what asks: nobody needs its answer.
ANSWER_MILLISECONDS = 3_000


async def log_sizes(connection: ClusterConnection, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The size at the leader, without partitions whose leader does not tell it, for example because the user may not ask."""
    topic, leaders = DescribeLogDirsRequest.DescribableLogDirTopic, connection.leaders
    with suppress(RequestNotSent, RequestLost):
        await leaders.known({key.topic for key in partitions})
    asked = []
    for node, keys in leaders.by_node(partitions).items():
        topics = [topic(topic=name, partitions=numbers) for name, numbers in grouped(keys).items()]
        asked.append(connection.submit(DescribeLogDirsRequest(topics=topics), node, ANSWER_MILLISECONDS))
    found: dict[TopicPartition, int] = {}
    for future in asked:
        with suppress(RequestNotSent, RequestLost):
            for directory in (await connection.answer_to(future)).results:
                for named in directory.topics or ():
                    for part in named.partitions:
                        key = TopicPartition(named.name, part.partition_index)
                        found[key] = max(found.get(key, 0), part.partition_size)
    return found
