"""Whether a log that is another one now was copied from where it differs (pure).

A follower truncates its own log to where the leader's goes on differently, and reads again from there (KIP-101, KIP-279). What is on the
target cannot be truncated. But where nothing had been copied at or behind that offset there is nothing to truncate: reading again from
there is exact. So it is with a position behind a hole that compaction left: an epoch that began inside the hole makes the log look
truncated to its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.clusters.leader_epochs import Divergence
from ferry.copying.receipts import COPIES, Receipt, ReceiptKind
from ferry.copying.state import Head


@dataclass(frozen=True)
class Truncation:
    """The source log is another one from `end` on. `start`: the first offset to read again; `copied`: records behind `end` were copied."""

    end: int
    start: int
    copied: bool


def truncation_of(head: Head, divergence: Divergence, receipts: Iterable[Receipt]) -> Truncation:
    """What a divergence before the head's position means. `receipts`: the partition's, of today's topics on both sides.

    Only those of the head's series say what this position was copied from: what lies before its first one was left to a person.
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
