"""One partition: its replicas with their logs, its leader and leader epoch, which replicas are in sync, and its high watermark.

A leader appends, followers copy from it, and the high watermark is the smallest end of the replicas in sync (Partition.scala). By default a
batch is on all replicas in sync at once; a test may let followers wait. When a replica follows again, its log is cut off where its leader
epochs contradict the leader's (KIP-101, KIP-320): so an unclean election loses records.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tests.simulation.batches import Batch, placed
from tests.simulation.log import Log
from tests.simulation.segments import SegmentLimits

NO_LEADER = -1


class Led(NamedTuple):
    """What a broker knows of a partition's leader. -1: it has none."""

    leader: int
    epoch: int
    in_sync: tuple[int, ...]


class Partition:
    """`replicas`: broker ids, the preferred leader first."""

    def __init__(self, topic: str, topic_id: UUID, index: int, replicas: tuple[int, ...], limits: SegmentLimits) -> None:
        self.topic, self.topic_id, self.index, self.replicas = topic, topic_id, index, replicas
        self.logs = {broker: Log(limits) for broker in replicas}
        self.led = Led(replicas[0], 0, replicas)
        self.epoch_start = 0  # the leader's end when it was elected
        self.waiting: set[int] = set()  # followers that do not copy: brokers that are gone, or as a test says
        self.offline: set[int] = set()  # replicas whose disk has failed
        self.logs[replicas[0]].epochs.assign(0, 0)

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.index

    @property
    def log(self) -> Log:
        """The leader's log."""
        return self.logs[self.led.leader]

    def append(self, broker: int, led: Led, data: bytes, appended: int | None = None) -> Batch:
        """Append one batch to the log of `broker`, which takes itself for the leader as `led` says; the batch in its place."""
        log = self.logs[broker]
        batch = placed(data, log.end, led.epoch, appended)
        log.append(batch)
        if led is self.led:
            self.replicate()
        return batch

    def replicate(self) -> None:
        """Let the followers in sync copy, except those that wait; move the high watermark."""
        if self.led.leader == NO_LEADER:
            return
        leader = self.log
        for follower in self.led.in_sync:
            if follower != self.led.leader and follower not in self.waiting:
                _copy(leader, self.logs[follower])
        self._move_high_watermark()

    def catch_up(self, follower: int) -> None:
        """Let one replica copy everything: it is in sync then."""
        if self.led.leader == NO_LEADER:
            return
        self.waiting.discard(follower)
        if follower != self.led.leader:
            _reconcile(self.log, self.logs[follower])
            _copy(self.log, self.logs[follower])
        if follower not in self.led.in_sync:
            self.led = self.led._replace(in_sync=tuple(sorted((*self.led.in_sync, follower), key=self.replicas.index)))
        self.replicate()

    def leave_sync(self, broker: int) -> None:
        """A replica is not in sync any more. The last one stays: it may be elected again when it is back."""
        left = tuple(other for other in self.led.in_sync if other != broker)
        if left and left != self.led.in_sync:
            self.led = self.led._replace(in_sync=left)
            self.replicate()

    def elect(self, leader: int) -> None:
        """Make `leader` the leader in the next epoch; -1: none. A replica that was not in sync becomes the only one in sync."""
        if leader == NO_LEADER:
            self.led = Led(NO_LEADER, self.led.epoch + 1, self.led.in_sync)
            return
        in_sync = self.led.in_sync if leader in self.led.in_sync else (leader,)
        self.led = Led(leader, self.led.epoch + 1, in_sync)
        log = self.log
        self.epoch_start = log.end
        log.epochs.assign(self.led.epoch, log.end)
        for follower in in_sync:
            if follower != leader and follower not in self.waiting:
                _reconcile(log, self.logs[follower])
        self.replicate()

    def _move_high_watermark(self) -> None:
        leader = self.log
        reached = min(self.logs[broker].end for broker in self.led.in_sync)
        leader.high_watermark = max(leader.high_watermark, min(reached, leader.end))
        for follower in self.led.in_sync:
            log = self.logs[follower]
            if follower not in self.waiting and log is not leader:
                log.high_watermark = min(leader.high_watermark, log.end)
                log.delete_before(leader.start)


def _copy(leader: Log, follower: Log) -> None:
    if follower.end < leader.start:
        follower.restart(leader.start)
    first = len(leader.batches)
    while first and leader.batches[first - 1].next_offset > follower.end:
        first -= 1
    for batch in leader.batches[first:]:
        follower.append(batch)
    follower.end = max(follower.end, leader.end)


def _reconcile(leader: Log, follower: Log) -> None:
    """Cut off what the follower has and the leader does not."""
    while (epoch := follower.epochs.latest) >= 0:
        known, end = leader.epochs.end_of(epoch, leader.end)
        if known == epoch and end >= follower.end:
            return
        if known < 0:  # the leader has only earlier epochs
            known, end = leader.epochs.latest, leader.end
        _, own = follower.epochs.end_of(known, follower.end)
        before = follower.end
        follower.truncate(min(end, own if own >= 0 else end))
        if follower.end == before:
            return
    follower.truncate(leader.end)
