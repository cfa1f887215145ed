"""A lane's transactions: their states, the partitions in the open one, and the leader epochs under which its records were appended.

    READY -- append --> OPEN -- close --> CLOSING -- commit asked --> COMMITTING -- done --> READY
    CLOSING -- nothing accepted --> OPEN
    any of OPEN, CLOSING, COMMITTING -- outcome unknown --> UNCERTAIN -- proven --> READY
    any -- fenced --> FENCED

In CLOSING nothing more is appended; answers still come in. UNCERTAIN is left only by a new init with the held pair, after which the
positions are read again: a commit is never repeated blindly. FENCED is final: another run owns the lane.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import TypeVar

from ferry.clusters.logs.leader_epochs import still_led
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.lane_messages import PartitionTask
from ferry.copying.lanes import MOST_PARTITIONS

T = TypeVar("T")


class TransactionState(Enum):
    READY = "ready"
    OPEN = "open"
    CLOSING = "closing"
    COMMITTING = "committing"
    UNCERTAIN = "uncertain"
    FENCED = "fenced"


class TransactionEvent(Enum):
    APPEND = "append"  # a batch or a position belongs to it
    CLOSE = "close"  # it is full, old, or the lane is done
    NOTHING_ACCEPTED = "nothing accepted"  # the target has taken nothing yet: a commit of nothing is refused
    COMMIT = "commit"  # everything was accepted: EndTxn is sent
    DONE = "done"  # the coordinator confirmed
    OUTCOME_UNKNOWN = "outcome unknown"  # time-out, disconnect, or an answer that leaves the log's content open
    PROVEN = "proven"  # init with the held pair succeeded
    FENCED = "fenced"  # the broker refused the pair


class TransitionRefused(RuntimeError):
    """An event that must not happen in this state: a defect of Ferry, never of its input."""


_STATE, _EVENT = TransactionState, TransactionEvent

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    (_STATE.READY, _EVENT.APPEND): _STATE.OPEN,
    (_STATE.OPEN, _EVENT.APPEND): _STATE.OPEN,
    (_STATE.OPEN, _EVENT.CLOSE): _STATE.CLOSING,
    (_STATE.CLOSING, _EVENT.CLOSE): _STATE.CLOSING,
    (_STATE.CLOSING, _EVENT.NOTHING_ACCEPTED): _STATE.OPEN,
    (_STATE.CLOSING, _EVENT.COMMIT): _STATE.COMMITTING,
    (_STATE.COMMITTING, _EVENT.DONE): _STATE.READY,
    (_STATE.UNCERTAIN, _EVENT.PROVEN): _STATE.READY,
    **{(state, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN for state in _STATE if state is not _STATE.FENCED},
    **{(state, _EVENT.FENCED): _STATE.FENCED for state in _STATE},
}


def advance(state: TransactionState, event: TransactionEvent) -> TransactionState:
    """The state after `event`; TransitionRefused when the table has no such step."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise TransitionRefused(f"{event.value} in state {state.value}") from None


class TransactionPartitions:
    """The remote partitions in the open transaction (`keys`). `full`: another one was refused, and waits for the next transaction.

    The coordinator stores the names of all of them in one record (TransactionLog), and the lane writes their positions and heads before the
    commit. Both have a largest size, so a transaction with too many partitions could never be committed.
    """

    def __init__(self, least: int = 1) -> None:
        """`least`: this many partitions are always allowed, because they belong together."""
        self._most, self._least = MOST_PARTITIONS, least
        self.keys: set[TopicPartition] = set()
        self.full = False
        self._shared = 0

    def admit(self, together: Collection[TopicPartition]) -> bool:
        """Whether records of these partitions may join the transaction. If so, all of them are added."""
        new = [key for key in together if key not in self.keys]
        if new and len(self.keys) + len(new) > self._most:
            self.full = True
            return False
        self.keys.update(new)
        return True

    def share(self, touched: Mapping[TopicPartition, T]) -> dict[TopicPartition, T]:
        """The `touched` partitions to commit now: all that are in the transaction, and as many others as there is room for."""
        inside = {key: value for key, value in touched.items() if key in self.keys}
        others = [key for key in touched if key not in self.keys]
        shared = inside | {key: touched[key] for key in others[: max(0, self._most - len(inside))]}
        self._shared = len(shared)
        return shared

    def end(self) -> None:
        """The transaction was committed or aborted."""
        self.keys.clear()
        self.full, self._shared = False, 0

    def halve(self) -> None:
        """The transaction failed: allow half as many partitions as it held. A broker's limits may be smaller than the default."""
        held = max(len(self.keys), self._shared)
        if held:
            self._most = max(self._least, min(self._most, held) // 2)
        self.end()


class AppendEpochs:
    """The leader epochs under which a transaction's records were appended. The flow in the other direction needs them.

    A Produce answer does not name the epoch. But leader epochs only grow: if a partition's leader has the same epoch before the first
    append and after the last answer, all records were appended under it. If the leader changed in between, the epoch is not known. Only
    partitions whose topic keeps its name on the target have one: others are not copied back (ferry.copying.loop_guard).
    """

    def __init__(self, target: ClusterConnection, leaders: Leaders, tasks: Iterable[PartitionTask]) -> None:
        self._target, self._leaders = target, leaders
        self._keys = [task.remote for task in tasks if task.topic == task.remote_topic]
        self._begun: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """A transaction begins: remember the epochs that `leaders` knows now."""
        self._begun = {key: self._leaders.of(*key).epoch for key in self._keys}

    async def told(self, keys: Iterable[TopicPartition]) -> tuple[dict[TopicPartition, int], bool]:
        """The epochs of these partitions as far as they are known; and whether `leaders` must be refreshed. Nothing may be in flight."""
        same = {key for key in keys if 0 <= self._begun.get(key, -1) == self._leaders.of(*key).epoch}
        confirmed = await still_led(self._target, self._leaders, same)
        return {key: self._begun[key] for key in confirmed}, len(confirmed) < len(same)
