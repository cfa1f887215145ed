"""Downstream offsets that no receipt explains, and that may hold external records: those of another writer (pure).

Between the records of two transactions in a partition there is exactly one commit marker, so a gap of one offset there holds no records.
Aborted transactions may have left a wider gap, or it holds external records: offsets do not show which. Without transactions there are no
markers, and receipts name the gaps that hold records a second time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ferry.ledger.receipts import Receipt, ReceiptKind, declared_ends
from ferry.wire.coded_runs import tight
from ferry.wire.ranges import Range, Ranges, outside
from ferry.wire.runs import DOWNSTREAM, OffsetRun, offsets_of

# Written in the same transaction as copied records, so the next receipt may belong to the same transaction.
_BESIDE = frozenset({ReceiptKind.LOSS, ReceiptKind.SKIPPED})


@dataclass(frozen=True)
class ExternalRecords:
    """External records in one remote partition: those that `foreign` receipts declare, and ranges of its log that nothing explains."""

    # Such a receipt names a downstream offset and upstream offsets: external records are below the first, and may have the others.
    foreign: tuple[Receipt, ...]
    ranges: tuple[Range, ...]  # the unexplained ranges that end after `begin`, the start of the log
    begin: int
    # Every range may hold records, declared or not. Otherwise ranges that are not declared are those of aborted transactions, except
    # `repeated` ones: receipts say that these hold records a second time.
    doubted: bool
    repeated: Ranges = ()

    @cached_property
    def _doubted_to(self) -> int:
        """No external record has this downstream offset or a higher one."""
        declared_to = max((receipt.downstream_end for receipt in self.foreign), default=0)
        repeated_to = max((end for _, end in self.repeated if end > self.begin), default=0)
        return max(repeated_to, *(end for start, end in self.ranges if self.doubted or start < declared_to), 0)

    def places(self, offset: int) -> list[int]:
        """The downstream offset where external records of upstream `offset` or higher may begin; at most one."""
        first = self.ranges[0][0] if self.ranges else self.begin
        return [max(self.begin, first)] if self.declared(offset) else []

    def declared(self, offset: int) -> bool:
        """Whether records of upstream `offset` or higher were declared external."""
        return any(offset < receipt.upstream_end for receipt in self.foreign)

    def origins(self, place: int) -> list[int]:
        """Upstream offsets where declared records at downstream `place` or higher may begin."""
        return [receipt.upstream_start for receipt in self.foreign if place < min(receipt.downstream_end, self._doubted_to)]

    def follow(self, place: int) -> bool:
        """Whether a consumer from downstream `place` on may read external records."""
        return place < self._doubted_to

    def first_from(self, start: int, end: int) -> int:
        """The first offset from `start` on in an unexplained range; `end`, where copies end, if there is none before."""
        return next((max(start, low) for low, high in self.ranges if high > start), max(start, end))


def unexplained_ranges(receipts: Iterable[Receipt], end: int, *, marked: bool) -> tuple[Range, ...]:
    """Ranges that may hold external records, in order, up to the last receipt's records, the end of declared records, and `end`.

    `marked`: the copies are transactions, each with a commit marker.
    """
    entries = list(receipts)
    end = max(end, declared_ends(entries)[0])
    beside = sorted(receipt.upstream_start for receipt in entries if receipt.kind in _BESIDE)
    ordered = sorted((receipt for receipt in entries if receipt.runs), key=lambda receipt: receipt.runs[0][1])
    found: list[Range] = []
    reached = 0
    last: Receipt | None = None
    for receipt in ordered:
        start = receipt.runs[0][1]
        if start > reached:
            marker = marked and last is not None and _another_transaction(last, receipt, beside)
            if start - reached > marker:
                found.append((reached, start))
        if not _is_whole(receipt, marked=marked):
            found += _between(receipt.runs, receipt.downstream_end)
        if last is None or receipt.downstream_end > reached:
            reached, last = receipt.downstream_end, receipt
    if end - reached > (marked and last is not None):
        found.append((reached, end))
    return tuple(found)


def _another_transaction(last: Receipt, following: Receipt, beside: Sequence[int]) -> bool:
    """Whether two receipts that follow each other on the target must be of two transactions."""
    if last.kind is not following.kind or not following.counters.transactions:
        return False
    if last.upstream_end == following.upstream_start:
        return True
    if last.kind is not ReceiptKind.COPIED or last.upstream_end > following.upstream_start:
        return False
    return bisect_left(beside, last.upstream_end) == bisect_right(beside, following.upstream_start)


def _is_whole(receipt: Receipt, *, marked: bool) -> bool:
    """Whether all offsets of a receipt are its records and the markers between its merged transactions.

    A merged transaction without records here left no marker, so the number of transactions alone does not decide it.
    """
    markers = max(0, receipt.counters.transactions - 1) if marked else 0
    if receipt.downstream_end - receipt.runs[0][1] - receipt.counters.records != markers:
        return False
    if not receipt.counters.added:
        return not markers or tight(receipt.runs)
    return not markers or all(high - low == 1 for low, high in _between(receipt.runs, receipt.downstream_end))


def _between(runs: Sequence[OffsetRun], end: int) -> Ranges:
    """The ranges between runs, and after the last one up to `end`."""
    return outside(offsets_of(runs, DOWNSTREAM), runs[0][1], end)
