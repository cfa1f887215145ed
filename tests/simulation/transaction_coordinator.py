"""Transaction coordinators: which ids there are, how markers reach the partitions, time-outs, and coordinators that move.

When an end is decided, each partition's marker is a step of its own, and a last step completes the transaction. A step waits while its
partition has no leader, or while the id's coordinator is down or reads its state. The state itself survives everything: it is replicated.

If a partition knows a later epoch than the marker's, the coordinator gives the end up: it writes no more markers, and the id stays decided
until the coordinator moves (TransactionMarkerRequestCompletionHandler).
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.batches import marker
from tests.simulation.codes import Code
from tests.simulation.groups import GroupStore
from tests.simulation.partition import Partition
from tests.simulation.state import GROUPS, TRANSACTIONS, ClusterState, Key
from tests.simulation.steps import StepKind
from tests.simulation.topics import GROUPS_TOPIC
from tests.simulation.transactions import DECIDED, NO_PAIR, NOBODY, Decision, Pair, Transactional


class TransactionCoordinators:
    """All transactional ids of a cluster."""

    def __init__(self, state: ClusterState, groups: GroupStore) -> None:
        self._state, self._groups = state, groups
        self.ids: dict[str, Transactional] = {}
        self._given_up: set[str] = set()
        self._left: dict[str, set[Key]] = {}  # partitions that still need the marker of a decided transaction
        self._written: dict[tuple[Key, Pair], tuple[int, int]] = {}  # markers that not all replicas have: leader epoch, and the end of each
        self._next_check = state.now + state.settings.timeout_check_interval

    def init(self, name: str, timeout: int, expected: Pair | None) -> Decision:
        """InitProducerId, at the coordinator."""
        if not name:
            return Decision(Code.INVALID_REQUEST)
        if not 0 < timeout <= self._state.settings.largest_transaction_timeout:
            return Decision(Code.INVALID_TRANSACTION_TIMEOUT)
        known = self.ids.get(name)
        if known is None:
            known = self.ids[name] = Transactional(name, Pair(self._state.next_producer_id(), NOBODY), timeout)
            known.twice = self._state.fences_twice
        decision = known.init(timeout, expected, self._state.next_producer_id, bumps=self._state.bumps)
        return self._decided(known, decision)

    def add(self, name: str, pair: Pair, partitions: Iterable[Key]) -> Code:
        """AddPartitionsToTxn, at the coordinator."""
        known = self.ids.get(name)
        if not name:
            return Code.INVALID_REQUEST
        return Code.INVALID_PRODUCER_ID_MAPPING if known is None else known.add(pair, partitions, self._state.now)

    def end(self, name: str, pair: Pair, *, commits: bool, bumps: bool) -> Decision:
        """EndTxn, at the coordinator."""
        known = self.ids.get(name)
        if not name:
            return Decision(Code.INVALID_REQUEST)
        if known is None:
            return Decision(Code.INVALID_PRODUCER_ID_MAPPING)
        return self._decided(known, known.end(pair, self._state.now, self._state.next_producer_id, commits=commits, bumps=bumps))

    def admits(self, name: str | None, pair: Pair, partition: Key, *, adds: bool) -> Code:
        """The coordinator's answer to a broker that got a record or an offset of a transaction: whether it may write it.

        `adds`: the request is of transaction.version 2, so the broker adds the partition to the transaction.
        """
        name = name or ""
        if not self._state.coordinates(TRANSACTIONS, name):
            return Code.NOT_COORDINATOR
        known = self.ids.get(name)
        if known is None:
            return Code.INVALID_PRODUCER_ID_MAPPING if name else Code.INVALID_REQUEST
        code = known.add(pair, [partition], self._state.now) if adds else known.verify(pair, partition)
        return Code.INVALID_PRODUCER_EPOCH if code is Code.PRODUCER_FENCED else code  # AddPartitionsToTxnManager

    def is_decided(self, name: str | None) -> bool:
        """Whether markers of a transaction of this id are being written."""
        known = self.ids.get(name or "")
        return known is not None and known.state in DECIDED

    def _decided(self, known: Transactional, decision: Decision) -> Decision:
        if decision.decided:
            self._begin_marking(known)
        return decision if decision.code is Code.NONE else Decision(decision.code, NO_PAIR)

    def _begin_marking(self, known: Transactional) -> None:
        self._left[known.name] = set(known.partitions)
        for key in known.partitions:
            self._add_mark(known, key)
        self._state.steps.add(StepKind.COMPLETE, known.name, lambda: self._complete(known))

    def _add_mark(self, known: Transactional, key: Key) -> None:
        about = f"{known.name} {known.state.value} {key[0]}-{key[1]}"
        self._state.steps.add(StepKind.MARK, about, lambda: self._mark(known, key))

    def _mark(self, known: Transactional, key: Key) -> bool:
        """Write one marker; whether that is done."""
        left = self._left.get(known.name, set())
        if key not in left or known.name in self._given_up:
            return True
        if not self._state.coordinates(TRANSACTIONS, known.name):
            return False
        topic = self._state.topics.get(key[0])
        # A marker goes by name: into a topic that was made anew, too. Of a topic that is gone none is written.
        if topic is not None:
            partition = topic.partitions[key[1]]
            if not self._takes_markers(partition):
                return False
            if self._is_fenced(known, partition):
                self._given_up.add(known.name)
                return True
            if not self._write_marker(known, partition):
                return False
        left.discard(key)
        return True

    def _takes_markers(self, partition: Partition) -> bool:
        if not self._state.writes(partition):
            return False
        return partition.topic != GROUPS_TOPIC or (GROUPS, partition.index) not in self._state.loading

    def _is_fenced(self, known: Transactional, partition: Partition) -> bool:
        if partition.topic == GROUPS_TOPIC:
            return self._groups.is_fenced(partition.index, *known.pair)
        return partition.log.producers.is_fenced(*known.pair)

    def _write_marker(self, known: Transactional, partition: Partition) -> bool:
        """Whether it is written, on all replicas in sync."""
        producer_id, epoch = known.pair
        if partition.topic != GROUPS_TOPIC:
            return self._is_replicated(known, partition, Pair(producer_id, epoch))
        members = [name for name in self._groups.groups if self._state.state_partition(GROUPS, name) is partition]
        self._groups.mark(partition.index, producer_id, epoch, commits=known.commits, groups=members)
        return True

    def _is_replicated(self, known: Transactional, partition: Partition, pair: Pair) -> bool:
        """Whether all replicas in sync have the marker. Otherwise it is written, once for each leader: the old one's may be lost."""
        place = (partition.key, pair)
        epoch, end = self._written.get(place, (-1, 0))
        if epoch != partition.led.epoch:
            coordinator = self._state.state_partition(TRANSACTIONS, known.name)
            coordinator_epoch = 0 if coordinator is None else coordinator.led.epoch
            data = marker(*pair, coordinator_epoch, self._state.now, commits=known.commits)
            end = partition.append(partition.led.leader, partition.led, data).next_offset
            self._written[place] = partition.led.epoch, end
        if partition.log.high_watermark < end:
            return False
        del self._written[place]
        return True

    def _complete(self, known: Transactional) -> bool:
        if known.state not in DECIDED or known.name in self._given_up:
            return True
        if self._left.get(known.name) or not self._state.coordinates(TRANSACTIONS, known.name):
            return False
        self._left.pop(known.name, None)
        known.complete()
        return True

    def look_at_time(self) -> None:
        """Make a step of each transaction whose time is over. Coordinators look every ten seconds."""
        if self._state.now < self._next_check:
            return
        while self._next_check <= self._state.now:
            self._next_check += self._state.settings.timeout_check_interval
        for known in self.ids.values():
            if known.is_late(self._state.now):
                pair = known.pair
                self._state.steps.add(StepKind.TIME_OUT, known.name, lambda known=known, pair=pair: self._time_out(known, pair))  # type: ignore[misc]

    def _time_out(self, known: Transactional, pair: Pair) -> bool:
        if not self._state.coordinates(TRANSACTIONS, known.name):
            return False
        if known.pair == pair and known.is_late(self._state.now):
            known.fence(self._state.next_producer_id, bumps=self._state.bumps)
            self._begin_marking(known)
        return True

    def move(self, partition: Partition) -> None:
        """The partition with the state of these ids has another leader: it reads the state first, and sends all markers again."""
        place = (TRANSACTIONS, partition.index)
        self._state.loading.add(place)
        self._state.steps.add(StepKind.LOAD, f"{partition.topic}-{partition.index}", lambda: self._load(partition))

    def _load(self, partition: Partition) -> bool:
        if not self._state.writes(partition):
            return False
        self._state.loading.discard((TRANSACTIONS, partition.index))
        for known in self.ids.values():
            if self._state.state_partition(TRANSACTIONS, known.name) is partition:
                known.load()
                if known.name in self._given_up:
                    self._given_up.discard(known.name)
                    self._begin_marking(known)
                elif known.state in DECIDED:
                    self._mark_again(known)
        return True

    def _mark_again(self, known: Transactional) -> None:
        """Which markers are written already is known only in memory."""
        left = self._left.setdefault(known.name, set())
        marked = [key for key in known.partitions if key not in left]  # in their order, which is not that of a set
        left.update(marked)
        for key in marked:
            self._add_mark(known, key)
