"""Records of the source, written straight into the logs of a simulated cluster: with and without transactions, committed and aborted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka.record.default_records import DefaultRecordBatchBuilder
from tests.simulation.batches import NO_EPOCH, NO_PRODUCER, NO_SEQUENCE, marker
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.world import World

# How long to wait for a partition that has no leader.
PAUSE = 0.05


@dataclass(frozen=True)
class Write:
    """One batch of `records` records to one partition. `commits`: how its transaction ends, after `seconds`; None: it has none. `back`: to
    the target, for the flow in the other direction; if there is none, somebody else writes to the remote topic."""

    partition: int
    records: int
    commits: bool | None = None
    seconds: float = 0.0
    back: bool = False


class SourceWriter:
    """Writes to one topic. Every value is another one, and begins with `mark`."""

    def __init__(self, world: World, cluster: SimulatedCluster, topic: str, mark: bytes = b"") -> None:
        self._world, self._cluster, self._topic, self._mark = world, cluster, topic, mark
        self._written = 0

    def write(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._write(write)

    def _write(self, write: Write) -> None:
        part = self._cluster.topic(self._topic).partitions[write.partition]
        values = [b"%s%d-%d" % (self._mark, write.partition, self._written + number) for number in range(write.records)]
        self._written += write.records
        pair = (NO_PRODUCER, NO_EPOCH) if write.commits is None else (self._cluster.state.next_producer_id(), 0)
        built = DefaultRecordBatchBuilder(2, 0, write.commits is not None, *pair, NO_SEQUENCE if write.commits is None else 0, 1 << 20)
        for offset, value in enumerate(values):
            built.append(offset, self._cluster.now - 1_000 + offset, b"k%d" % (offset % 3), value, [("n", value)])
        self._append(part, bytes(built.build()))
        if write.commits is not None:
            commits = write.commits
            self._world.after(write.seconds, lambda: self._end(part, pair, commits=commits))

    def _append(self, part: Partition, data: bytes) -> None:
        while not self._is_led(part):
            self._world.sleep(PAUSE)
        part.append(part.led.leader, part.led, data)
        self._cluster.state.look_at_parked()

    def _is_led(self, part: Partition) -> bool:
        leader = part.led.leader
        return leader != NO_LEADER and self._cluster.state.brokers[leader].up and self._cluster.state.brokers[leader].image is None

    def _end(self, part: Partition, pair: tuple[int, int], *, commits: bool) -> None:
        # A coordinator writes a marker again until all replicas in sync have it.
        if not self._is_led(part) or not part.waiting.isdisjoint(part.led.in_sync):
            self._world.after(PAUSE, lambda: self._end(part, pair, commits=commits))
            return
        part.append(part.led.leader, part.led, marker(*pair, 0, self._cluster.now, commits=commits))
        self._cluster.state.look_at_parked()
