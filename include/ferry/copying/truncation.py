"""Whether Ferry copied records that the source log does not hold any more, because the log was truncated and rewritten (pure).

A follower truncates its own log where the leader's log goes on differently, and fetches again from there (KIP-101, KIP-279). Ferry cannot
truncate the target. But if it copied nothing from that offset on, it can fetch again from there, and the copy is exact. This happens after
a hole that compaction left: if a leader epoch began inside the hole, the log looks truncated to the start of that epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.clusters.logs.leader_epochs import Divergence
from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.ledger.topic_ids import NO_ID


@dataclass(frozen=True)
class Truncation:
    """From `end` on the source log holds other records. `start`: where to fetch again. `copied`: Ferry copied some of the old records."""

    end: int
    start: int
    copied: bool


def is_believed(head: Head, divergence: Divergence) -> bool:
    """Whether to believe the leader that reports this divergence.

    If the leader does not know the head's epoch and its log ends before the head's position, it has lost contact with the cluster: every
    later leader knows that epoch. But if the head has no epoch, or no topic id (the topic may have been created again, with epochs from 0),
    only the end of the log is known, and that is believed.
    """
    return divergence.proven or head.source_epoch < 0 or head.source_topic_id == NO_ID


def truncation_of(head: Head, divergence: Divergence, receipts: Iterable[Receipt]) -> Truncation:
    """The truncation for a divergence before the head's position. `receipts`: of the partition, for today's topics on both sides.

    Only receipts of the head's series count. An operator's seed decided about all offsets before the first of them.
    """
    mine = [receipt for receipt in receipts if receipt.series == head.series]
    begun = min(
        (receipt.upstream_start for receipt in mine if receipt.kind in {ReceiptKind.COPIED, ReceiptKind.LOSS}), default=head.position
    )
    copied_to = max((upstream + count for receipt in mine if receipt.kind in COPIES for upstream, _, count in receipt.runs), default=0)
    copied = copied_to > divergence.end or divergence.end < begun
    # Batches with later epochs than the leader had before the divergence are not in its log either.
    gone = [receipt.upstream_start for receipt in mine if receipt.kind in COPIES and receipt.source_epoch > divergence.epoch]
    start = max(min([divergence.end, *gone]), min(begun, divergence.end)) if copied else divergence.end
    return Truncation(divergence.end, start, copied)
