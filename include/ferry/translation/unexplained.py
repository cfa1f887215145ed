"""Downstream offsets that no receipt explains, and that may hold somebody else's records (pure).

Between the records of two transactions of a partition lies exactly one commit marker, so a hole of one offset there hides nothing. A wider
hole is what aborted transactions left, or records of another writer: offsets do not tell. Without transactions there are no markers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ferry.ledger.coverage import Range
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.wire.runs import Run

# Written beside copied records in the same transaction: what follows them need not be another transaction's.
_BESIDE = frozenset({ReceiptKind.LOSS, ReceiptKind.SKIPPED})


@dataclass(frozen=True)
class ExternalRecords:
    """Records of others in one remote partition: what `foreign` receipts declare, and ranges of its log that nothing explains.

    A foreign receipt says below which downstream offset others' records lie, and which upstream offsets they may hold. `ranges` end behind
    `begin`, the start of the log. `doubted`: every one of them may hold records, declared or not; otherwise those that are not declared are
    what aborted transactions left.
    """

    foreign: tuple[Receipt, ...]
    ranges: tuple[Range, ...]
    begin: int
    doubted: bool

    @cached_property
    def _declared_to(self) -> int:
        return max((receipt.downstream_end for receipt in self.foreign), default=0)

    @cached_property
    def _doubted_to(self) -> int:
        """Readers behind this meet nobody else's records."""
        doubted = (end for start, end in self.ranges if self.doubted or start < self._declared_to)
        return max(doubted, default=0)

    @cached_property
    def _first(self) -> int:
        """Where the first declared record may be, unless they have left the log."""
        return max(self.begin, self.ranges[0][0]) if self.ranges else self.begin

    def places(self, offset: int) -> list[int]:
        """Where records of upstream `offset` or behind may be."""
        return [self._first] if any(offset < receipt.upstream_end for receipt in self.foreign) else []

    def expired(self, offset: int) -> bool:
        """Whether records of upstream `offset` or behind were others', and have left the log."""
        return any(offset < receipt.upstream_end for receipt in self.foreign)

    def origins(self, place: int) -> list[int]:
        """Upstream offsets of others' records at downstream `place` or behind."""
        return [receipt.upstream_start for receipt in self.foreign if place < min(receipt.downstream_end, self._doubted_to)]

    def behind(self, place: int) -> bool:
        """Whether a reader from downstream `place` on meets others' records."""
        return place < self._doubted_to

    def first_from(self, start: int, end: int) -> int:
        """The first offset at or behind `start` that is in an unexplained range, at the latest `end`, where copies end."""
        return next((max(start, low) for low, high in self.ranges if high > start), max(start, end))


def unexplained_ranges(receipts: Iterable[Receipt], end: int, *, marked: bool) -> tuple[Range, ...]:
    """Ranges that may hold records of others, in order: up to the last receipt's records, to what is declared, and to `end`.

    `marked`: the copies are transactions, each with its marker.
    """
    entries = list(receipts)
    end = max([end, *(receipt.downstream_end for receipt in entries if receipt.kind is ReceiptKind.FOREIGN)])
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
    """Whether two receipts, neighbours on the target, must come from two transactions."""
    if last.kind is not following.kind or not following.counters.transactions:
        return False
    if last.upstream_end == following.upstream_start:
        return True
    if last.kind is not ReceiptKind.COPIED or last.upstream_end > following.upstream_start:
        return False
    return bisect_left(beside, last.upstream_end) == bisect_right(beside, following.upstream_start)


def _is_whole(receipt: Receipt, *, marked: bool) -> bool:
    """Whether all offsets of a receipt are its records and the markers between its merged transactions.

    Merged transactions that put nothing left no marker, so that the number alone does not tell.
    """
    markers = max(0, receipt.counters.transactions - 1) if marked else 0
    if receipt.downstream_end - receipt.runs[0][1] - receipt.counters.records != markers:
        return False
    return not markers or all(high - low == 1 for low, high in _between(receipt.runs, receipt.downstream_end))


def _between(runs: Sequence[Run], end: int) -> list[Range]:
    """What lies between runs, and behind the last one up to `end`."""
    ends = [run[1] + run[2] for run in runs]
    starts = [*(run[1] for run in runs[1:]), end]
    return [(low, high) for low, high in zip(ends, starts, strict=True) if low < high]
