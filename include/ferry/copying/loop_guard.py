"""Finds the records that the flow in the other direction wrote into this flow's source, without headers (pure).

If topics keep their names, `B->A` writes into the topics that `A->B` reads. The ledger of `B->A` is on A and names every offset that it
wrote: `A->B` leaves out exactly these (guard_reading.py says in which order it must be read).

After an unclean leader election at the source, records of the other flow may be gone, and producers get the same offsets again. So a
receipt names the leader epoch under which its records were appended, and counts only up to the offset where that epoch ends today.

An operator must say two things that no ledger knows. A `foreign` receipt declares the records of another replicator: all records below its
downstream end that no receipt explains came from the other side. And if an operator's seed began a new ledger, the records that were there
(`Receipt.found`) may have come from either side: until they are declared, the partition stops.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind, declared_ends
from ferry.ledger.state import Head
from ferry.ledger.topic_ids import NO_ID, PartitionPair
from ferry.wire.ranges import NO_END, Range, Ranges, union, within

DECLARED = frozenset({ReceiptKind.FOREIGN, ReceiptKind.SEED})


@dataclass(frozen=True)
class LedgerRead:
    """How far the other flow's ledger was read: the topic's id ("": there was none), and by partition the offset after the last record."""

    topic_id: str
    positions: Mapping[int, int]
    ahead: tuple[tuple[int, int, int], ...] = ()  # what receipts name beyond the end that Ferry saw: (leader epoch, start, end)


@dataclass(frozen=True)
class PartitionGuard:
    """What is known about the origin of the records of one source partition."""

    excluded: Ranges = ()  # offsets of records that came from the target
    unclear_below: int = 0  # other records below this offset may have come from there too
    broken: bool = False  # the ledger that named them was deleted
    two_way: bool = False  # the other flow copies between the same two topics, so an operator has decided about the other records in them
    unasked: bool = False  # the leader did not say which records of the other flow its log still holds
    read: LedgerRead | None = None  # None: no other flow can write the partition


@dataclass
class GuardDraft:
    """Collects one partition's guard from receipts, in log order.

    The offsets that a receipt names were written, whether its transaction was committed or not, and whether the receipt was merged,
    replaced or removed later: every receipt that is read counts. Declarations can be corrected: the newest of every key counts.
    """

    low: int = 0
    _ranges: dict[int, list[Range]] = field(default_factory=dict)  # by the leader epoch under which they were appended (-1: not known)
    _declared: dict[tuple[ReceiptKind, str, int], Receipt] = field(default_factory=dict)

    def add(self, receipt: Receipt) -> None:
        """Add a receipt whose remote partition this is, of today's topic. Only receipts of written records count."""
        if receipt.kind in COPIES:
            ranges = self._ranges.setdefault(receipt.remote_epoch, [])
            ranges += [span for span in receipt.written if span[1] > self.low]
            for _, downstream, count in receipt.runs:
                if downstream + count <= self.low:
                    continue
                if ranges and ranges[-1][1] == downstream:
                    ranges[-1] = (ranges[-1][0], downstream + count)
                else:
                    ranges.append((downstream, downstream + count))

    def declare(self, receipt: Receipt) -> None:
        """Add a committed receipt. Only declarations count."""
        if receipt.kind in DECLARED:
            self._declared[receipt.kind, receipt.source_topic_id, receipt.upstream_start] = receipt

    @property
    def epochs(self) -> frozenset[int]:
        """The known leader epochs under which the ranges were appended."""
        return frozenset(epoch for epoch, ranges in self._ranges.items() if ranges and epoch >= 0)

    def beyond(self, offset: int) -> tuple[tuple[int, int, int], ...]:
        """The ranges from `offset` on, each with the leader epoch under which it was appended: (epoch, start, end)."""
        return tuple((epoch, max(offset, start), end) for epoch, ranges in self._ranges.items() for start, end in ranges if end > offset)

    def finish(self, ends: Mapping[int, int] | None = None) -> tuple[Ranges, int]:
        """Excluded ranges, and the offset below which it is unclear where records come from.

        `ends`: by leader epoch, the offset where its records end today (exclusive). An epoch without an entry has no end.
        """
        foreign, found = declared_ends(self._declared.values())
        declared = [(0, foreign)] if foreign > 0 else []
        ends = ends or {}
        standing = [span for epoch, ranges in self._ranges.items() for span in within(union(ranges), 0, ends.get(epoch, NO_END))]
        return union([*standing, *declared]), max(0, found) if found > foreign else 0


def tells_of(receipt: Receipt, pair: PartitionPair) -> bool:
    """Whether a receipt of the other flow names records that came from today's remote topic and were written to today's topic.

    Records of a remote topic that was deleted since are not on today's: they must be copied. Without topic ids Ferry cannot see that it was
    deleted.
    """
    topic_id, remote_topic_id = pair.topic_ids
    same = receipt.topic != pair.remote_topic or receipt.source_topic_id in {remote_topic_id, NO_ID}
    return receipt.remote_topic_id == topic_id and same


def both_ways(heads: Iterable[Head], pairs: Mapping[str, PartitionPair]) -> frozenset[str]:
    """Topics that the other flow writes, from the remote topic that this flow writes. `heads`: the other flow's. `pairs`: by topic."""
    return frozenset(
        head.remote_topic
        for head in heads
        if (pair := pairs.get(head.remote_topic)) is not None
        and (pair.remote_topic, *pair.topic_ids) == (head.topic, head.remote_topic_id, head.source_topic_id)
    )


def unexplained_partitions(heads: Iterable[Head], pairs: Mapping[str, PartitionPair], ledger_topic_id: str) -> frozenset[tuple[str, int]]:
    """Source partitions that the other flow wrote under a ledger that was deleted since: nobody knows which offsets it wrote."""
    return frozenset(
        (head.remote_topic, head.partition)
        for head in heads
        if head.remote_topic in pairs
        and pairs[head.remote_topic].topic_ids.source == head.remote_topic_id
        and head.ledger_topic_id != ledger_topic_id
    )
