"""How many bytes the logs of partitions have on their brokers' disks (DescribeLogDirs), without what brokers hold in remote storage."""

import time
from collections.abc import Collection
from contextlib import suppress

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import DESCRIBE_LOG_DIRS, Action
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of

# A broker that hangs must not delay the caller, which can do without the answer. Its connection stays open, because others may use it.
ANSWER_SECONDS = 3.0


async def log_sizes(connection: ClusterConnection, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The size at the leader, without partitions whose leader does not give it, for example because the user may not ask."""
    topic, leaders = DescribeLogDirsRequest.DescribableLogDirTopic, connection.leaders
    with suppress(RequestNotSent, RequestLost):
        await leaders.known({key.topic for key in partitions})
    asked = []
    for node, keys in leaders.by_node(partitions).items():
        topics = [topic(topic=name, partitions=numbers) for name, numbers in grouped(keys).items()]
        asked.append(connection.submit(DescribeLogDirsRequest(topics=topics), node))
    found: dict[TopicPartition, int] = {}
    deadline = time.monotonic() + ANSWER_SECONDS
    for future in [future for future in asked if await connection.loop.done_by(deadline, future)]:
        with suppress(RequestNotSent, RequestLost):
            told = (await connection.answer_to(future)).results
            for directory in (one for one in told if DESCRIBE_LOG_DIRS.action(one.error_code) is Action.GO_ON):
                for key, part in partitions_of(directory.topics or ()):
                    found[key] = max(found.get(key, 0), part.partition_size)
    return found
