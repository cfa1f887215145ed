"""Joins receipts of a partition, each of which goes on where the one before ended (pure).

Receipts of a following run grow in place, so that the ledger does not grow with the number of commits. A receipt's key has its start. A
commit that goes on where the last one ended writes the last receipt once more, with a larger end: the new record replaces the old one, and
compaction removes the old one. After RUNS runs a new receipt begins, because each commit writes the whole receipt.
"""

from collections.abc import Sequence
from dataclasses import replace

from ferry.ledger.counters import ZERO
from ferry.ledger.receipts import COPIES, Receipt
from ferry.wire.ranges import union
from ferry.wire.runs import normalise

# Each commit leaves its marker in the remote log, so each adds a run of about five bytes.
RUNS = 200


def grown(last: Receipt, more: Receipt) -> Receipt:
    """`last` grown by `more`; `more` itself if it does not go on where `last` ended, or if `last` has grown enough.

    `last` is the receipt that the last commit of the same lane and run wrote for the partition. Both have the same remote topic.
    """
    joins = (
        last.kind in COPIES
        and (last.kind, last.series, last.reason) == (more.kind, more.series, more.reason)
        and last.upstream_end == more.upstream_start
        and last.counters.by_handler == more.counters.by_handler
        and (not more.counters.records or not last.counters.records or last.remote_epoch == more.remote_epoch)
        # After a truncation, whole receipts of later leader epochs count as gone (truncation.py).
        and (-1 in {last.source_epoch, more.source_epoch} or last.source_epoch == more.source_epoch)
        and len(last.runs) < RUNS
    )
    if not joins:
        return more
    return replace(
        joined([last, more]),
        source_epoch=max(last.source_epoch, more.source_epoch),
        remote_epoch=more.remote_epoch if more.counters.records else last.remote_epoch,
    )


def joined(receipts: Sequence[Receipt]) -> Receipt:
    """The first receipt grown by the others. Each of these goes on where the one before ended."""
    moments = [receipt.min_timestamp for receipt in receipts if receipt.min_timestamp >= 0]
    return replace(
        receipts[0],
        upstream_end=receipts[-1].upstream_end,
        downstream_end=max(receipt.downstream_end for receipt in receipts),
        runs=normalise(run for receipt in receipts for run in receipt.runs),
        counters=sum((receipt.counters for receipt in receipts), ZERO),
        written=union(span for receipt in receipts for span in receipt.written),
        repeated=union(span for receipt in receipts for span in receipt.repeated),
        min_timestamp=min(moments, default=-1),
        max_timestamp=max(receipt.max_timestamp for receipt in receipts),
        source_epoch=receipts[-1].source_epoch,
    )
