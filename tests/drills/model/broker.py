"""What the target does with one transactional id, as small values: epochs, one open transaction, what is committed.

The rules are Kafka's (TransactionCoordinator and TransactionMetadata; KIP-360 and KIP-890) as far as Ferry leans on them, and
tests/drills/model/test_broker.py asks a real broker the same questions. Markers of a transaction are written in one step here; the worlds
of readers have them one by one.
"""

from __future__ import annotations

from typing import NamedTuple

NOBODY = -1

Mark = tuple[int, int]  # the attempt, and how many transactions it had opened
# Kind, upstream start and end; of a receipt that grows, also the transactions whose records it names.
Span = tuple[str, int, int] | tuple[str, int, int, tuple[Mark, ...]]


class Position(NamedTuple):
    """A committed offset of the flow's group and the mark of its transaction."""

    offset: int
    mark: Mark


class Contents(NamedTuple):
    """What lies on the target, or what an open transaction would add: records as (kind, source offset), receipts, head, position.

    `marks`: of the transactions that wrote receipts which may grow.
    """

    records: tuple[tuple[str, int], ...] = ()
    receipts: tuple[Span, ...] = ()
    head: int | None = None
    position: Position | None = None
    marks: tuple[Mark, ...] = ()

    def plus(self, more: Contents) -> Contents:
        """After a commit. A receipt replaces one with the same kind and start."""
        keys = {span[:2] for span in more.receipts}
        return Contents(
            self.records + more.records,
            tuple(span for span in self.receipts if span[:2] not in keys) + more.receipts,
            self.head if more.head is None else more.head,
            self.position if more.position is None else more.position,
            self.marks + more.marks,
        )


class Id(NamedTuple):
    """A transactional id: current epoch, the one before if a retry of its holder is still recognised, what is open."""

    epoch: int = NOBODY
    last: int = NOBODY
    open: Contents | None = None
    ended: str = ""  # how the last transaction ended, unless an init came after it


class Answer(NamedTuple):
    """The id after a request, and the epoch to go on with (None: refused)."""

    id: Id
    epoch: int | None


def init(of: Id, pair: int | None, *, bumps: bool) -> Answer:
    """InitProducerId, repeated until it is decided. What is open is aborted whoever asks, also with a stale pair.

    `bumps`: the protocol of KIP-890, in which each transaction has an epoch of its own; before it, the holder of what is aborted is fenced.
    """
    if of.open is not None:
        of = abort(of, bumps=bumps)
    if pair is None:
        return Answer(Id(of.epoch + 1, NOBODY), of.epoch + 1)
    if pair == of.epoch:
        return Answer(Id(of.epoch + 1, of.epoch), of.epoch + 1)
    if pair == of.last:
        return Answer(of._replace(ended=""), of.epoch)
    return Answer(of, None)


def end_by_abort(of: Id, pair: int, *, bumps: bool) -> Answer:
    """EndTxn(abort). What must not be ended (it was committed, or nothing is open) leaves id and pair as they are.

    With KIP-890 the holder of what was committed asks for the commit again, which answers the pair after it.
    """
    if pair == of.epoch and (of.open is not None or bumps):
        return Answer(abort(of, bumps=True), of.epoch + 1) if bumps else Answer(of._replace(open=None), pair)
    if pair == of.epoch:
        return Answer(of, pair)
    if bumps and pair == of.last and of.open is None and of.ended:
        return Answer(of, of.epoch)
    return Answer(of, None)


def settle(of: Id, pair: int, *, bumps: bool) -> Answer:
    """EndTxn(abort), then InitProducerId, both with the held pair."""
    of, found = end_by_abort(of, pair, bumps=bumps)
    return Answer(of, None) if found is None else init(of, found, bumps=bumps)


def add(of: Id, pair: int, more: Contents) -> Answer:
    """Produce or TxnOffsetCommit: opens a transaction where none is open."""
    if pair != of.epoch:
        return Answer(of, None)
    return Answer(of._replace(open=(of.open or Contents()).plus(more), ended=""), pair)


def abort(of: Id, *, bumps: bool) -> Id:
    """By an init or by time-out."""
    return Id(of.epoch + 1, of.epoch if bumps else NOBODY, ended="aborted")


class Ended(NamedTuple):
    """After EndTxn(commit): the id, what became committed, and the epoch to go on with (None: refused)."""

    id: Id
    committed: Contents
    epoch: int | None


def commit(of: Id, pair: int, *, bumps: bool) -> Ended:
    """EndTxn(commit)."""
    if pair != of.epoch or of.open is None:
        return Ended(of, Contents(), None)
    after = Id(of.epoch + 1, of.epoch, ended="committed") if bumps else of._replace(open=None)
    return Ended(after, of.open, after.epoch)
