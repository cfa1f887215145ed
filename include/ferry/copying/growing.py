"""Receipts of a following run grow in place, so that the ledger does not grow with the number of commits (pure).

A receipt's key has its start. A commit that goes on where the last one ended writes the last receipt once more, with a larger end: the new
record replaces the old one, and compaction removes the old one. After RUNS runs a new receipt begins, because each commit writes the whole
receipt.
"""

from dataclasses import replace

from ferry.ledger.receipts import COPIES, Receipt
from ferry.wire.ranges import union
from ferry.wire.runs import normalise

# Each commit leaves its marker in the remote log, so each adds a run of about five bytes.
RUNS = 200


def grown(last: Receipt, more: Receipt) -> Receipt:
    """`last` with what `more` adds; `more` itself if it does not go on where `last` ended, or if `last` has grown enough.

    `last` is what the last commit of the same lane and run wrote of the partition. Both have the same remote topic.
    """
    joins = (
        last.kind in COPIES
        and (last.kind, last.series, last.reason) == (more.kind, more.series, more.reason)
        and last.upstream_end == more.upstream_start
        and last.counters.by_handler == more.counters.by_handler
        and (not more.counters.records or not last.counters.records or last.remote_epoch == more.remote_epoch)
        # After a truncation, what was copied under later leader epochs counts as gone: whole receipts (truncation.py).
        and (-1 in {last.source_epoch, more.source_epoch} or last.source_epoch == more.source_epoch)
        and len(last.runs) < RUNS
    )
    if not joins:
        return more
    moments = [receipt.min_timestamp for receipt in (last, more) if receipt.min_timestamp >= 0]
    return replace(
        last,
        upstream_end=more.upstream_end,
        downstream_end=max(last.downstream_end, more.downstream_end),
        runs=normalise((*last.runs, *more.runs)),
        counters=last.counters + more.counters,
        written=union((*last.written, *more.written)),
        repeated=union((*last.repeated, *more.repeated)),
        min_timestamp=min(moments, default=-1),
        max_timestamp=max(last.max_timestamp, more.max_timestamp),
        source_epoch=max(last.source_epoch, more.source_epoch),
        remote_epoch=more.remote_epoch if more.counters.records else last.remote_epoch,
    )
