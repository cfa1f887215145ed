"""The offset map of one partition: exact images of positions, in both directions, from its receipts (pure).

Forward, the image of X is the smallest downstream offset of any copied record whose upstream offset is X or higher. Where there is none, it
is the end of the last receipt that put something; before the first one, the target's last stable offset, captured before the ledger was
read. Never the high watermark, never the source's number, never by time, never extrapolated. An image is exact when everything from it on
is, in order, what follows X at the source; otherwise the first reason that holds is named, and the image lies early enough to skip nothing.
The inverse is the same with source and target exchanged.

What makes images inexact is kept as a few bounds: a question costs a few look-ups, whatever the number of runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ferry.ledger.coverage import Range, covered
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.translation.model import Inexact, Translation
from ferry.translation.run_index import RunIndex
from ferry.translation.unexplained import ExternalRecords, unexplained_ranges

_COPIES = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED})


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What is known beside the ledger. Offsets; `source_start` and `target_start` are where the logs begin.

    `target_end`: the target's last stable offset, captured before the ledger was read. `position`: the head's, read after the ledger; None
    when there is none. `exactly_once`: copies are transactions; otherwise records may stand there twice, unexplained.
    """

    source_start: int = 0
    target_start: int = 0
    target_end: int = 0
    position: int | None = None
    exactly_once: bool = True


class OffsetMap:
    """Built once from the receipts of one partition; those of topics that were recreated since must not be among them."""

    def __init__(self, receipts: Iterable[Receipt], bounds: LogBounds | None = None) -> None:
        entries = list(receipts)
        self.bounds = bounds = bounds or LogBounds()
        copies = [receipt for receipt in entries if receipt.kind in _COPIES]
        # Upkeep drops the runs of receipts whose records have left the target's log.
        self._forgotten = [receipt for receipt in copies if receipt.counters.records and not receipt.runs]
        self._forgotten_to = max((receipt.upstream_end for receipt in self._forgotten), default=0)
        self._index = RunIndex(run for receipt in copies for run in receipt.runs)
        self._spreads = _spreads(copies)
        ends = [receipt.downstream_end for receipt in entries if receipt.downstream_end >= 0]
        self.copied_end = max(ends, default=0)
        self.end = self.copied_end if ends else bounds.target_end
        self._lowest = min((receipt.upstream_start for receipt in entries), default=None)
        reached = max((receipt.upstream_end for receipt in entries), default=None)
        # A head behind what was copied: an operator took it back, and the same offsets will be copied again.
        self._taken_back = reached is not None and bounds.position is not None and bounds.position < reached
        self.position = bounds.position if self._taken_back else reached
        self._uncopied_to = _uncopied_to(covered(entries), self.position or 0)
        first = self._index.first
        self._first = self.end if first is None else first
        self._strangers = self._find_strangers(entries)

    def _find_strangers(self, entries: list[Receipt]) -> ExternalRecords:
        bounds = self.bounds
        foreign = [receipt for receipt in entries if receipt.kind is ReceiptKind.FOREIGN]
        untrusted = seeded_again(entries) or not bounds.exactly_once
        ranges = unexplained_ranges(entries, bounds.target_end if untrusted else 0, marked=bounds.exactly_once)
        begin = bounds.target_start
        if self._forgotten and not (untrusted or foreign):
            begin = max(begin, self._first)  # what lies in front of the first record was forgotten
        return ExternalRecords(tuple(foreign), tuple(found for found in ranges if found[1] > begin), bounds.target_start, doubted=untrusted)

    def translate(self, offset: int) -> Translation:
        """Where a reader that stands at upstream `offset` goes on downstream."""
        found = self.image(offset)
        image = max(self.end if found is None else found, self.bounds.target_start)
        return Translation(offset, image, self._why_inexact(offset, image), 0 if self.position is None else max(0, offset - self.position))

    def image(self, offset: int) -> int | None:
        """The smallest downstream offset that may hold a record of upstream `offset` or behind; None when there is no such record."""
        candidates = self._strangers.places(offset)
        if offset < self._forgotten_to or self._before_everything(offset):
            candidates.append(self.bounds.target_start)
        first = self._index.first_downstream(offset)
        if first is not None:
            candidates.append(first)
        return min(candidates, default=None)

    def _why_inexact(self, offset: int, image: int) -> Inexact | None:
        if self.position is not None and offset > self.position:
            return Inexact.AHEAD
        if self._strangers.behind(image) or self._before_everything(offset):
            return Inexact.UNEXPLAINED
        if self.position is None or max(offset, self.bounds.source_start) < self._uncopied_to:
            return Inexact.NOT_COPIED
        first = self._index.first_downstream(offset)
        expired = first is not None and first < self.bounds.target_start
        if expired or offset < self._forgotten_to or self._strangers.expired(offset):
            return Inexact.TARGET_EXPIRED
        return Inexact.BACKFILLED if image < self._index.ordered_from or self._taken_back else None

    def invert(self, offset: int) -> Translation:
        """Where a reader that stands at downstream `offset` goes on upstream. Reasons as of `translate`, with the sides exchanged."""
        found = self.origin(offset)
        position = self.bounds.source_start if self.position is None else self.position
        image = max(position if found is None else found, self.bounds.source_start)
        return Translation(offset, image, self._why_no_origin(offset, image, found), max(0, offset - max(self.end, self.bounds.target_end)))

    def origin(self, offset: int) -> int | None:
        """The smallest upstream offset that may be that of a record at downstream `offset` or behind; None when there is no such record."""
        candidates = self._strangers.origins(offset)
        candidates += [receipt.upstream_start for receipt in self._forgotten if receipt.downstream_end > offset]
        if self._in_front(offset):
            candidates.append(self.bounds.source_start)
        if self._taken_back and self.position is not None:
            candidates.append(self.position)
        at = bisect_right(self._spreads, (offset, 1 << 63, 0)) - 1
        if at >= 0 and offset < self._spreads[at][1]:
            candidates.append(self._spreads[at][2])
        first = self._index.first_upstream(offset)
        if first is not None:
            candidates.append(first)
        return min(candidates, default=None)

    def _why_no_origin(self, offset: int, image: int, found: int | None) -> Inexact | None:
        if self.position is None:
            return Inexact.NOT_COPIED
        if offset > max(self.end, self.bounds.target_end):
            return Inexact.AHEAD
        if self._strangers.behind(offset) or self._in_front(offset):
            return Inexact.UNEXPLAINED
        if image < self._uncopied_to:
            return Inexact.NOT_COPIED
        expired = found is not None and found < self.bounds.source_start
        if expired or any(receipt.downstream_end > offset for receipt in self._forgotten):
            return Inexact.TARGET_EXPIRED
        older = self._index.upstream_before(offset) > image or any(receipt.upstream_end > image for receipt in self._forgotten)
        return Inexact.BACKFILLED if older or offset < self._index.ordered_from or self._taken_back else None

    def explained_to(self, start: int) -> int:
        """The first downstream offset at or behind `start` that may hold a record which was not copied."""
        return self._strangers.first_from(start, self.copied_end)

    def copied_before(self, offset: int) -> bool:
        """Whether no record of upstream `offset` or behind was copied."""
        return self._index.first_downstream(offset) is None and offset >= self._forgotten_to

    def _before_everything(self, offset: int) -> bool:
        """In front of all that the ledger speaks of, while the remote log begins with records that it does not explain."""
        return (self._lowest is None or offset < self._lowest) and not self._forgotten and self.bounds.target_start < self._first

    def _in_front(self, offset: int) -> bool:
        """The same seen from the target: in front of the first explained record, where the source has older ones."""
        older = self._lowest is not None and self.bounds.source_start < self._lowest
        return older and offset < self._first and not self._forgotten and self.bounds.target_start < self._first


def seeded_again(receipts: Iterable[Receipt]) -> bool:
    """Whether somebody said anew where a partition goes on.

    Then records may stand in the log twice, and receipts under the same keys replace the first ones in the ledger: no hole counts as an
    aborted transaction's, and the position may lie behind what was copied.
    """
    seeds = {receipt.upstream_start: receipt.reason for receipt in receipts if receipt.kind is ReceiptKind.SEED}
    return len(seeds) > 1 or any(reason.startswith("operator") for reason in seeds.values())


def _uncopied_to(ranges: tuple[Range, ...], position: int) -> int:
    """Where the settled stretch that ends at `position` begins: between there and `position` nothing was left out."""
    at = bisect_right(ranges, (position - 1, 1 << 63)) - 1
    return ranges[at][0] if at >= 0 and ranges[at][1] >= position else position


def _spreads(copies: Iterable[Receipt]) -> list[tuple[int, int, int]]:
    """Where one source record became several: downstream [start, end) may hold further ones of an upstream offset."""
    found = []
    for receipt in copies:
        if sum(run[2] for run in receipt.runs) >= receipt.counters.records:
            continue
        starts = [*(run[1] for run in receipt.runs[1:]), receipt.downstream_end]
        for (upstream, downstream, count), end in zip(receipt.runs, starts, strict=False):
            if downstream + count < end:
                found.append((downstream + count, end, upstream + count - 1))
    return sorted(found)
