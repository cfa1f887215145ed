"""Unclean elections: followers fall behind and leave the replicas in sync, the leader goes on alone, and then one of them leads.

What the leader had beyond its end is gone, also what consumers have read. Each partition has at most one such election.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.batches import Record
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.oracles import committed, log_of
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.world import World


class UncleanElections:
    """Those of a world. `gone`: by partition whose log was cut, committed records that it has lost."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._behind: dict[tuple[str, int], tuple[SimulatedCluster, Partition]] = {}
        self._met: set[tuple[str, int]] = set()
        self.gone: dict[tuple[str, int], list[Record]] = {}

    def begin(self, cluster: SimulatedCluster, parts: Iterable[Partition], seconds: float) -> None:
        """Followers copy nothing any more. After so many seconds one of them leads.

        Not where a transaction is open: its marker would be gone, and without it the transaction hangs for ever.
        """
        for part in parts:
            followers = [node for node in part.led.in_sync if node != part.led.leader]
            if part.key not in self._met and followers and part.led.leader != NO_LEADER and not part.log.producers.ongoing:
                self._met.add(part.key)
                self._behind[part.key] = cluster, part
                for node in followers:
                    part.waiting.add(node)
                    part.leave_sync(node)
                self._world.after(seconds, lambda part=part: self._elect(part))  # type: ignore[misc]
        cluster.state.look_at_parked()

    def _elect(self, part: Partition) -> None:
        """The first follower that is there leads. All others follow it."""
        cluster, _ = self._behind.pop(part.key, (None, None))
        if cluster is None:
            return
        there = [node for node in part.replicas if not cluster.lacks(node, part)]
        others = [node for node in there if node in part.waiting and node != part.led.leader]
        if others:
            before, end = committed(part), log_of(part).end
            part.waiting.discard(others[0])
            cluster.elect(part, others[0])
            left = {(record.offset, record.value) for record in committed(part)}
            gone = [record for record in before if (record.offset, record.value) not in left]
            if end > part.log.end:
                self.gone[part.key] = gone
                lost = [record.offset for record in gone]
                self._world.note(f"{part.topic}-{part.index} has lost {lost}: broker {others[0]} leads from {part.log.end} on")
        self._follow(cluster, part, there)

    @staticmethod
    def _follow(cluster: SimulatedCluster, part: Partition, nodes: Iterable[int]) -> None:
        for node in nodes:
            part.catch_up(node)
        cluster.state.look_at_parked()

    def heal(self) -> None:
        """Those that are behind copy what is missing."""
        for cluster, part in self._behind.values():
            self._follow(cluster, part, [node for node in part.replicas if not cluster.lacks(node, part)])
        self._behind.clear()
