"""Committed offsets of a group, over the raw data path.

Not over librdkafka: its ListConsumerGroupOffsets crashes the process when a coordinator answers with an error (2.16: the response handler
reaches for a consumer group that an admin client does not have).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ferry.clusters.connections import ClusterConnection, EventLoop
from ferry.clusters.coordination import Coordinator
from ferry.clusters.partitions import TopicPartition

if TYPE_CHECKING:
    from ferry.config import Cluster


def committed_positions(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None = None, *, settled: bool = True
) -> dict[TopicPartition, int]:
    """Committed offsets of these partitions (None: all) of `group`; empty for an unknown one.

    `settled`: wait for offset commits of transactions that are not decided yet, instead of taking the ones before them.
    """
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.ADMIN)

    async def ask() -> dict[TopicPartition, int]:
        await connection.open()
        found = await Coordinator(loop, connection, "", group).positions(partitions, settled=settled)
        return {TopicPartition(*key): position.offset for key, position in found.items()}

    try:
        return loop.run(ask)
    finally:
        connection.close()
        loop.close()
