"""Under which leader epochs a transaction's records were appended, where the flow in the other direction has to know it.

Brokers do not say it in their answers to Produce. But leader epochs only grow: where the partition's leader has the same one before the
first append and after the last answer, all was appended under it. Where the leader changed in between, it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.leader_epochs import still_led
from ferry.clusters.leaders import Leaders
from ferry.clusters.partitions import TopicPartition
from ferry.copying.model import PartitionTask

PartitionKey = tuple[str, int]  # remote topic, partition


class AppendEpochs:
    """Of one lane. Only partitions whose topic keeps its name count: others are not read back (ferry.copying.loop_guard)."""

    def __init__(self, target: ClusterConnection, leaders: Leaders, tasks: Iterable[PartitionTask]) -> None:
        self._target, self._leaders = target, leaders
        self._keys = [TopicPartition(*task.remote) for task in tasks if task.topic == task.remote_topic]
        self._begun: dict[PartitionKey, int] = {}

    def begin(self) -> None:
        """The transaction's first records go where `leaders` says now."""
        self._begun = {key: self._leaders.of(*key).epoch for key in self._keys}

    async def told(self, keys: Iterable[PartitionKey]) -> tuple[dict[PartitionKey, int], bool]:
        """The epochs of these partitions as far as they are known, once nothing is in flight; and whether `leaders` must be refreshed."""
        same = {TopicPartition(*key) for key in keys if 0 <= self._begun.get(key, -1) == self._leaders.of(*key).epoch}
        confirmed = await still_led(self._target, self._leaders, same)
        return {key: self._begun[key] for key in confirmed}, len(confirmed) < len(same)
