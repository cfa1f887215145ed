"""What the leader of one partition knows of its producers: epochs, sequence numbers, open transactions, aborted ones.

The rules are those of ProducerStateManager, ProducerStateEntry, ProducerAppendInfo and VerificationStateEntry. `refusal` checks a batch
of a client before it is appended; `apply` takes what is in the log, also a marker, so the state can be built again from the log.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tests.simulation.batches import LARGEST_SEQUENCE, NO_EPOCH, NO_PRODUCER, NO_SEQUENCE, Batch, Sent
from tests.simulation.codes import Code

# Of so many batches of a producer the leader still knows that it has them.
BATCHES_KEPT = 5


class Kept(NamedTuple):
    """A batch that came again is one of these."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    timestamp: int


class Aborted(NamedTuple):
    """An aborted transaction (TransactionIndex). `stable`: the last stable offset when its marker was appended."""

    producer_id: int
    first: int
    last: int
    stable: int


class Unverified:
    """A transaction of which this partition has no record yet: the leader asks the coordinator about it (KIP-890).

    `lowest`: the lowest sequence number that has come; a later batch waits for it.
    """

    __slots__ = ("bumps", "epoch", "lowest")

    def __init__(self, sequence: int, epoch: int, *, bumps: bool) -> None:
        self.lowest, self.epoch, self.bumps = sequence, epoch, bumps

    def note(self, sequence: int, epoch: int, *, bumps: bool) -> None:
        if epoch > self.epoch:
            self.epoch, self.lowest = epoch, sequence
        elif epoch == self.epoch:
            self.lowest = min(self.lowest, sequence)
        self.bumps = bumps


class Producer:
    """One producer id. `opened`: the first offset of its open transaction here; None: there is none."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "opened")

    def __init__(self) -> None:
        self.epoch, self.coordinator_epoch, self.last_timestamp = NO_EPOCH, -1, -1
        self.opened: int | None = None
        self.batches: deque[Kept] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate(self, head: Sent) -> Kept | None:
        """The batch in the log that this one repeats."""
        if head.producer_epoch != self.epoch:
            return None
        last = (head.base_sequence + head.last_offset_delta) % (LARGEST_SEQUENCE + 1)
        return next((kept for kept in self.batches if (kept.first_sequence, kept.last_sequence) == (head.base_sequence, last)), None)


class Producers:
    """All producers of one log."""

    def __init__(self) -> None:
        self.known: dict[int, Producer] = {}
        self.ongoing: dict[int, int] = {}  # producer id by the first offset of its open transaction; offsets increase
        self.aborted: list[Aborted] = []
        self._unreplicated: list[tuple[int, int]] = []  # first offset and offset of the marker, while the marker is not replicated
        self._unverified: dict[int, Unverified] = {}

    def is_open(self, producer_id: int, epoch: int | None) -> bool:
        """Whether the log has a transaction of this pair; None: of any epoch."""
        producer = self.known.get(producer_id)
        return producer is not None and producer.opened is not None and epoch in {None, producer.epoch}

    def begin_verifying(self, head: Sent, *, bumps: bool) -> None:
        """The leader will ask the coordinator whether the partition belongs to the transaction."""
        found = self._unverified.get(head.producer_id)
        if found is None:
            self._unverified[head.producer_id] = Unverified(head.base_sequence, head.producer_epoch, bumps=bumps)
        else:
            found.note(head.base_sequence, head.producer_epoch, bumps=bumps)

    def duplicate(self, head: Sent) -> Kept | None:
        """The batch in the log that this one repeats."""
        producer = self.known.get(head.producer_id)
        return None if producer is None else producer.duplicate(head)

    def refusal(self, head: Sent, *, verified: bool) -> Code:
        """Why a client's batch must not be appended. `verified`: the coordinator has said that the partition is in the transaction."""
        if head.producer_id == NO_PRODUCER:
            return Code.NONE
        producer = self.known.get(head.producer_id) or Producer()
        if head.is_transactional and not verified and not self.is_open(head.producer_id, head.producer_epoch):
            return Code.INVALID_TXN_STATE
        if head.producer_epoch < producer.epoch:
            return Code.INVALID_PRODUCER_EPOCH
        if not self._is_next(producer, head):
            return Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        return Code.INVALID_TXN_STATE if producer.opened is not None and not head.is_transactional else Code.NONE

    def _is_next(self, producer: Producer, head: Sent) -> bool:
        sequence, unverified = head.base_sequence, self._unverified.get(head.producer_id)
        if unverified is not None and unverified.bumps and sequence != 0 and not producer.batches:
            return False
        if unverified is not None and sequence > unverified.lowest:
            return False
        if head.producer_epoch != producer.epoch:
            return sequence == 0 or producer.epoch == NO_EPOCH
        return producer.epoch == NO_EPOCH or sequence in {producer.last_sequence + 1, *((0,) if _is_last(producer) else ())}

    def is_fenced(self, producer_id: int, epoch: int) -> bool:
        """Whether the log knows a later epoch of the producer."""
        producer = self.known.get(producer_id)
        return producer is not None and epoch < producer.epoch

    def apply(self, batch: Batch) -> None:
        """Take a batch that is in the log now."""
        if batch.producer_id == NO_PRODUCER:
            return
        producer = self.known.get(batch.producer_id)
        if producer is None:
            producer = self.known[batch.producer_id] = Producer()
        if batch.producer_epoch != producer.epoch:
            producer.epoch = batch.producer_epoch
            producer.batches.clear()
        producer.last_timestamp = batch.max_timestamp
        if batch.is_transactional:
            self._unverified.pop(batch.producer_id, None)
        if batch.is_control:
            self._end(producer, batch)
            return
        producer.batches.append(Kept(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.max_timestamp))
        if batch.is_transactional and producer.opened is None:
            producer.opened = batch.base_offset
            self.ongoing[batch.base_offset] = batch.producer_id

    def _end(self, producer: Producer, batch: Batch) -> None:
        producer.coordinator_epoch = batch.coordinator_epoch
        opened, producer.opened = producer.opened, None
        if opened is None:  # nothing of the transaction is here
            return
        del self.ongoing[opened]
        self._unreplicated.append((opened, batch.base_offset))
        if not batch.commits:
            stable = next(iter(self.ongoing), batch.next_offset)
            self.aborted.append(Aborted(batch.producer_id, opened, batch.base_offset, stable))

    def first_unstable(self, high_watermark: int) -> int | None:
        """Where the first transaction begins that is open, or whose end is not below the high watermark; None: there is none."""
        self._unreplicated = [one for one in self._unreplicated if one[1] >= high_watermark]
        firsts = [first for first, _ in self._unreplicated]
        firsts += [next(iter(self.ongoing))] if self.ongoing else []
        return min(firsts, default=None)

    def aborted_between(self, start: int, end: int) -> list[Aborted]:
        """The aborted transactions that a reader of these offsets needs."""
        found = []
        for one in self.aborted:
            if one.last >= start and one.first < end:
                found.append(one)
            if one.stable >= end:
                break
        return found


def _is_last(producer: Producer) -> bool:
    return producer.last_sequence == LARGEST_SEQUENCE
