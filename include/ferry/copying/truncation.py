"""Whether records were copied that the source log does not hold any more, because it was rewritten (pure).

A follower truncates its own log where the leader's log goes on differently, and reads again from there (KIP-101, KIP-279). Ferry cannot
truncate the target. But if it copied nothing from that offset on, there is nothing to truncate, and reading again from there is exact. That
is the case behind a hole that compaction left: an epoch that began inside the hole makes the log look truncated to the epoch's beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.clusters.leader_epochs import Divergence
from ferry.clusters.leaders import NO_TOPIC_ID
from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind
from ferry.ledger.state import Head


@dataclass(frozen=True)
class Truncation:
    """From `end` on the source log holds other records. `start`: where to read again from. `copied`: some of the old ones were."""

    end: int
    start: int
    copied: bool


def is_believed(head: Head, divergence: Divergence) -> bool:
    """Whether the leader that tells this divergence can be believed.

    A leader that does not know the epoch of the head, and whose log ends before the head's position, has lost touch with the cluster: every
    later leader knows that epoch. Only where the head names no epoch, or no topic id (the topic may have been created again, and its epochs
    have begun anew), is the end of the log all that can be known.
    """
    return divergence.proven or head.source_epoch < 0 or head.source_topic_id == str(NO_TOPIC_ID)


def truncation_of(head: Head, divergence: Divergence, receipts: Iterable[Receipt]) -> Truncation:
    """What a divergence before the head's position means. `receipts`: the partition's, of today's topics on both sides.

    Only receipts of the head's series say what this position rests on. A person decided about everything before the first of them.
    """
    mine = [receipt for receipt in receipts if receipt.series == head.series]
    begun = min(
        (receipt.upstream_start for receipt in mine if receipt.kind in {ReceiptKind.COPIED, ReceiptKind.LOSS}), default=head.position
    )
    copied_to = max((upstream + count for receipt in mine if receipt.kind in COPIES for upstream, _, count in receipt.runs), default=0)
    copied = copied_to > divergence.end or divergence.end < begun
    # Batches of later epochs than the leader has before the divergence are not in its log either.
    gone = [receipt.upstream_start for receipt in mine if receipt.kind in COPIES and receipt.source_epoch > divergence.epoch]
    start = max(min([divergence.end, *gone]), min(begun, divergence.end)) if copied else divergence.end
    return Truncation(divergence.end, start, copied)
