"""What the flow in the other direction wrote into this flow's source (pure): loops without headers.

Where names stay as they are, `B->A` writes into the very topics that `A->B` reads. Its ledger lies on A and says exactly which offsets it
wrote: those are left out, and nothing else. Receipts belong to the transaction of the records that they speak of, so a ledger that was read
to its end after the end of a partition was taken explains everything below that end.

An unclean leader election at the source may take away what the other flow wrote, and producers there are given the same offsets again. So a
receipt says under which leader epoch its records were appended, and what it says holds up to where the log of that epoch ends today.

Two things no ledger can know, and a person has to say. Records that another replicator brought are declared by a `foreign` receipt:
everything below its downstream end that no receipt explains came from the other side. And where an operator's seed began a ledger anew,
the records found at that time (`Receipt.found`) may have come from either side: until they are declared, the partition stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ferry.clusters.leader_epochs import NO_END
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.wire.ranges import Range, Ranges, union, within

PartitionKey = tuple[str, int]  # topic and partition on this flow's source, which is the other flow's target

_WRITES = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED})
NO_ID = str(UUID(int=0))
DECLARED = frozenset({ReceiptKind.FOREIGN, ReceiptKind.SEED})


@dataclass(frozen=True)
class PartitionGuard:
    """What is known about one source partition.

    `excluded`: offsets of records that came from the target. `unclear_below`: those below this offset may have come from there too.
    `broken`: the ledger that said what came from there is gone. `two_way`: the other flow copies between the same two topics, so somebody
    has decided about what else is in them. `unasked`: the partition's leader did not tell what its log still holds of the other flow's.
    """

    excluded: Ranges = ()
    unclear_below: int = 0
    broken: bool = False
    two_way: bool = False
    unasked: bool = False


@dataclass
class GuardDraft:
    """Collects one partition's guard from receipts, in log order.

    What a receipt says about written offsets is true whether its transaction was committed or not, and stays true when it is merged,
    replaced or dropped later: every receipt that was ever read counts. Declarations can be corrected: the newest of every key counts.
    """

    low: int = 0
    # By the leader epoch under which they were appended (-1: not known).
    _ranges: dict[int, list[Range]] = field(default_factory=dict)
    _declared: dict[tuple[ReceiptKind, str, int], Receipt] = field(default_factory=dict)

    def add(self, receipt: Receipt) -> None:
        """A receipt of written records whose remote partition this is, of today's topic; others say nothing here."""
        if receipt.kind in _WRITES:
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
        """A committed receipt of a declaration; others say nothing here."""
        if receipt.kind in DECLARED:
            self._declared[receipt.kind, receipt.source_topic_id, receipt.upstream_start] = receipt

    @property
    def epochs(self) -> frozenset[int]:
        """The leader epochs under which the ranges were appended, as far as they are known."""
        return frozenset(epoch for epoch, ranges in self._ranges.items() if ranges and epoch >= 0)

    def finish(self, ends: Mapping[int, int] | None = None) -> tuple[Ranges, int]:
        """Excluded ranges, and the offset below which it is unclear where records come from.

        `ends`: where what the partition holds of a leader epoch ends today (exclusive). What was appended under that epoch behind it is
        gone, and the offsets hold others' records. An epoch that is not among them has no end.
        """
        foreign = max((entry.downstream_end for entry in self._declared.values() if entry.kind is ReceiptKind.FOREIGN), default=-1)
        found = max((entry.found for entry in self._declared.values() if entry.kind is ReceiptKind.SEED), default=-1)
        declared = [(0, foreign)] if foreign > 0 else []
        ends = ends or {}
        standing = [span for epoch, ranges in self._ranges.items() for span in within(union(ranges), 0, ends.get(epoch, NO_END))]
        return union([*standing, *declared]), max(0, found) if found > foreign else 0


@dataclass(frozen=True)
class TopicPair:
    """A topic of this flow's source and its remote topic, by names and today's ids."""

    topic: str
    topic_id: str
    remote_topic: str
    remote_topic_id: str

    def is_told_of(self, written_to: str, read_from: str, read_from_id: str) -> bool:
        """Whether a receipt of the other flow, by topic id, topic and topic id, says what came from today's remote topic.

        What came from one that was deleted since is not on today's: it must be copied. Clusters older than topic ids know no difference.
        """
        same = read_from != self.remote_topic or read_from_id in {self.remote_topic_id, NO_ID}
        return written_to == self.topic_id and same


def both_ways(heads: Iterable[Head], pairs: Mapping[str, TopicPair]) -> frozenset[str]:
    """Topics of this flow's source that the other flow writes from the very topic that this flow writes. `heads`: the other flow's."""
    return frozenset(
        head.remote_topic
        for head in heads
        if pairs.get(head.remote_topic) == TopicPair(head.remote_topic, head.remote_topic_id, head.topic, head.source_topic_id)
    )


def unexplained_partitions(heads: Iterable[Head], pairs: Mapping[str, TopicPair], ledger_topic_id: str) -> frozenset[PartitionKey]:
    """Source partitions that the other flow wrote under another ledger than today's: what it wrote can no longer be told."""
    return frozenset(
        (head.remote_topic, head.partition)
        for head in heads
        if head.remote_topic in pairs
        and pairs[head.remote_topic].topic_id == head.remote_topic_id
        and head.ledger_topic_id != ledger_topic_id
    )
