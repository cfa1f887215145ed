"""One transactional id at its coordinator: a state machine without I/O (TransactionMetadata, TransactionCoordinator; KIP-360, KIP-890).

The states are Kafka's. An id is decided (`PREPARE_…`) from the moment when its end is in the coordinator's log until all its markers are
written; all the time a request for it is answered with CONCURRENT_TRANSACTIONS. The write to the coordinator's log itself takes no time
here.

Two protocols: with transaction.version 2 each end raises the epoch (`bumps`), before that only an init does. `_CURRENT`, `_AGAIN` and
`_SHARED` say what EndTxn does in each state; Kafka's own table is the comment above TransactionCoordinator.endTransaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tests.simulation.codes import Code

Key = tuple[str, int]
NOBODY = -1
# A producer never gets the largest epoch: it is left for fencing.
LAST_EPOCH = (1 << 15) - 2


class State(Enum):
    """As DescribeTransactions names them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


DECIDED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


class Pair(NamedTuple):
    """Producer id and epoch."""

    producer_id: int
    epoch: int


NO_PAIR = Pair(NOBODY, NOBODY)


class Does(Enum):
    """What EndTxn does with an id."""

    DECIDE = 1
    CONFIRM = 2  # it was done before
    REFUSE = 3
    FENCE = 4
    WAIT = 5


_C, _A = True, False  # commit, abort
# By state: what a commit and an abort do, of the current pair; then of the pair before it, which only `bumps` knows.
_CURRENT = {
    State.EMPTY: {_C: Does.REFUSE, _A: Does.DECIDE},
    State.ONGOING: {_C: Does.DECIDE, _A: Does.DECIDE},
    State.COMPLETE_COMMIT: {_C: Does.REFUSE, _A: Does.DECIDE},
    State.COMPLETE_ABORT: {_C: Does.REFUSE, _A: Does.DECIDE},
}
_AGAIN = {
    State.EMPTY: {_C: Does.FENCE, _A: Does.FENCE},
    State.ONGOING: {_C: Does.FENCE, _A: Does.FENCE},
    State.COMPLETE_COMMIT: {_C: Does.CONFIRM, _A: Does.REFUSE},
    State.COMPLETE_ABORT: {_C: Does.REFUSE, _A: Does.CONFIRM},
}
# Before transaction.version 2.
_SHARED = {
    State.EMPTY: {_C: Does.REFUSE, _A: Does.REFUSE},
    State.ONGOING: {_C: Does.DECIDE, _A: Does.DECIDE},
    State.PREPARE_COMMIT: {_C: Does.WAIT, _A: Does.WAIT},
    State.PREPARE_ABORT: {_C: Does.WAIT, _A: Does.WAIT},
    State.COMPLETE_COMMIT: {_C: Does.CONFIRM, _A: Does.REFUSE},
    State.COMPLETE_ABORT: {_C: Does.REFUSE, _A: Does.CONFIRM},
}
_CODES = {
    Does.DECIDE: Code.NONE,
    Does.CONFIRM: Code.NONE,
    Does.REFUSE: Code.INVALID_TXN_STATE,
    Does.FENCE: Code.PRODUCER_FENCED,
    Does.WAIT: Code.CONCURRENT_TRANSACTIONS,
}


class Decision(NamedTuple):
    """The answer to a request. `pair`: to go on with. `decided`: now markers must be written."""

    code: Code
    pair: Pair = NO_PAIR
    decided: bool = False


@dataclass
class Transactional:
    """A transactional id. Times in ms."""

    name: str
    pair: Pair
    timeout: int
    state: State = State.EMPTY
    last_epoch: int = NOBODY  # the epoch before, if a retry of its holder is still recognised
    previous_id: int = NOBODY  # the producer id before
    next_id: int = NOBODY  # the producer id after the markers, if epochs are used up
    partitions: dict[Key, None] = field(default_factory=dict)  # in the order in which they were added
    started: int = NOBODY
    twice: bool = False  # whether `fence` raises the epoch twice

    @property
    def commits(self) -> bool:
        return self.state is State.PREPARE_COMMIT

    def init(self, timeout: int, expected: Pair | None, new_id: Callable[[], int], *, bumps: bool) -> Decision:
        """InitProducerId. `expected`: the pair that the request holds. An open transaction is aborted, and the caller must ask again.

        `bumps`: of the cluster, because the request does not say.
        """
        if self.state in DECIDED:
            return Decision(Code.CONCURRENT_TRANSACTIONS)
        if expected is not None and not self._knows(expected):
            return Decision(Code.PRODUCER_FENCED)
        if self.state is State.ONGOING:
            self.fence(new_id, bumps=bumps)
            return Decision(Code.CONCURRENT_TRANSACTIONS, decided=True)
        code = self._next_pair(expected, new_id)
        if code is not Code.NONE:
            return Decision(code)
        self.timeout, self.state, self.started = timeout, State.EMPTY, NOBODY
        return Decision(Code.NONE, self.pair)

    def _knows(self, pair: Pair) -> bool:
        """Whether the producer id fits; the epoch is looked at later."""
        used_up = pair.producer_id == self.previous_id and pair.epoch >= LAST_EPOCH
        return self.pair.epoch == NOBODY or pair.producer_id == self.pair.producer_id or used_up

    def _next_pair(self, expected: Pair | None, new_id: Callable[[], int]) -> Code:
        producer_id, epoch = self.pair
        if epoch >= LAST_EPOCH and (expected is None or expected.epoch == epoch):
            self.previous_id, self.last_epoch = producer_id, NOBODY if expected is None else epoch
            self.pair = Pair(new_id(), 0)
        elif expected is None:
            self.pair, self.last_epoch, self.previous_id = Pair(producer_id, epoch + 1), NOBODY, producer_id
        elif epoch in {NOBODY, expected.epoch}:
            self.pair, self.last_epoch, self.previous_id = Pair(producer_id, epoch + 1), epoch, producer_id
        elif expected.epoch != self.last_epoch:
            return Code.PRODUCER_FENCED
        return Code.NONE

    def add(self, pair: Pair, partitions: Iterable[Key], now: int) -> Code:
        """AddPartitionsToTxn, also of a broker that a record came to (KIP-890)."""
        if self.state in DECIDED:
            return Code.CONCURRENT_TRANSACTIONS
        refused = self._refuses(pair)
        if refused is not Code.NONE:
            return refused
        if self.state is not State.ONGOING:
            self.state, self.started = State.ONGOING, now
        self.partitions.update(dict.fromkeys(partitions))
        return Code.NONE

    def verify(self, pair: Pair, partition: Key) -> Code:
        """Whether a partition is in the transaction: the question of a broker that a record came to."""
        refused = self._refuses(pair)
        if refused is not Code.NONE:
            return refused
        if self.state in DECIDED:
            return Code.CONCURRENT_TRANSACTIONS
        return Code.NONE if partition in self.partitions else Code.TRANSACTION_ABORTABLE

    def _refuses(self, pair: Pair) -> Code:
        if pair.producer_id != self.pair.producer_id:
            return Code.INVALID_PRODUCER_ID_MAPPING
        return Code.NONE if pair.epoch == self.pair.epoch else Code.PRODUCER_FENCED

    def end(self, pair: Pair, now: int, new_id: Callable[[], int], *, commits: bool, bumps: bool) -> Decision:
        """EndTxn. `bumps`: whether the request is of the protocol with an epoch for each transaction.

        Then a transaction that is decided is looked at before the pair: its epochs may just be used up.
        """
        if bumps and self.state in DECIDED:
            return Decision(Code.CONCURRENT_TRANSACTIONS)
        over = bumps and pair == (self.previous_id, LAST_EPOCH) and self.pair.epoch == 0
        if pair.producer_id != self.pair.producer_id and not over:
            return Decision(Code.INVALID_PRODUCER_ID_MAPPING)
        does = self._does(pair, commits, over, bumps)
        if does is not Does.DECIDE:
            return Decision(_CODES[does], self.pair if does is Does.CONFIRM else NO_PAIR)
        if self.state is not State.ONGOING:
            self.started = now
        self._decide(new_id, commits=commits, bumps=bumps)
        return Decision(Code.NONE, Pair(self.next_id, 0) if self.next_id != NOBODY else self.pair, decided=True)

    def _does(self, pair: Pair, commits: bool, over: bool, bumps: bool) -> Does:
        if not bumps:
            return _SHARED[self.state][commits] if pair.epoch == self.pair.epoch else Does.FENCE
        if over or pair.epoch == self.pair.epoch - 1:
            return _AGAIN[self.state][commits]
        return _CURRENT[self.state][commits] if pair.epoch == self.pair.epoch else Does.FENCE

    def _decide(self, new_id: Callable[[], int], *, commits: bool, bumps: bool) -> None:
        self.state = State.PREPARE_COMMIT if commits else State.PREPARE_ABORT
        if bumps:
            self.next_id = new_id() if self.pair.epoch >= LAST_EPOCH else NOBODY
            self.last_epoch, self.pair = self.pair.epoch, Pair(self.pair.producer_id, self.pair.epoch + 1)

    def fence(self, new_id: Callable[[], int], *, bumps: bool) -> None:
        """Abort the open transaction without its holder: by an init, or because its time is over.

        Before transaction.version 2 this fences the holder; since then its next init finds its pair as the one before. Kafka 4.0 raises the
        epoch twice, and so fences the holder too (`twice`; KAFKA-19367).
        """
        if bumps and self.twice:
            self.pair = Pair(self.pair.producer_id, self.pair.epoch + 1)
        self._decide(new_id, commits=False, bumps=bumps)
        if not bumps:
            self.pair, self.last_epoch = Pair(self.pair.producer_id, self.pair.epoch + 1), NOBODY

    def is_late(self, now: int) -> bool:
        """Whether the time of the open transaction is over."""
        return self.state is State.ONGOING and self.started + self.timeout < now

    def complete(self) -> None:
        """All markers are written."""
        self.state = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        self.partitions.clear()
        if self.next_id != NOBODY:
            self.previous_id, self.pair, self.next_id = self.pair.producer_id, Pair(self.next_id, 0), NOBODY

    def load(self) -> None:
        """Its coordinator has read it again from its log, which does not hold the epoch before (TransactionLog)."""
        self.last_epoch = NOBODY
