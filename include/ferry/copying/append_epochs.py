"""The leader epochs under which a transaction's records were appended. The flow in the other direction needs them.

A Produce answer does not name the epoch. But leader epochs only grow: if a partition's leader has the same epoch before the first append
and after the last answer, all records were appended under it. If the leader changed in between, the epoch is not known.
"""

from collections.abc import Iterable

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.leader_epochs import still_led
from ferry.clusters.leaders import Leaders
from ferry.clusters.partitions import TopicPartition
from ferry.copying.model import PartitionTask


class AppendEpochs:
    """Of one lane. Only partitions whose topic keeps its name on the target: others are not copied back (ferry.copying.loop_guard)."""

    def __init__(self, target: ClusterConnection, leaders: Leaders, tasks: Iterable[PartitionTask]) -> None:
        self._target, self._leaders = target, leaders
        self._keys = [TopicPartition(*task.remote) for task in tasks if task.topic == task.remote_topic]
        self._begun: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """A transaction begins: remember the epochs that `leaders` knows now."""
        self._begun = {key: self._leaders.of(*key).epoch for key in self._keys}

    async def told(self, keys: Iterable[TopicPartition]) -> tuple[dict[TopicPartition, int], bool]:
        """The epochs of these partitions as far as they are known; and whether `leaders` must be refreshed. Nothing may be in flight."""
        same = {TopicPartition(*key) for key in keys if 0 <= self._begun.get(key, -1) == self._leaders.of(*key).epoch}
        confirmed = await still_led(self._target, self._leaders, same)
        return {key: self._begun[key] for key in confirmed}, len(confirmed) < len(same)
