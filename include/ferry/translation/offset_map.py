"""The offset map of one partition: images of positions, in both directions, from its receipts (pure).

Forward, the image of X is the smallest downstream offset of any copied record whose upstream offset is X or higher. If there is none, it is
the end of the last receipt with records on the target. If there is no such receipt, it is the target's last stable offset, captured before
the ledger was read. Without transactions records are on the target before their receipts: then it is the start of the log instead. An image
is never the high watermark or the source's offset, and never computed from times or by extrapolation. An image is exact if the records from
it on are those that follow X at the source, in the same order. Otherwise the map names the first reason that holds, and the image is early
enough to skip nothing. The inverse is the same with source and target exchanged.

The reasons that make images inexact are kept as a few bounds. So a translation takes a few look-ups, however many runs there are.

If topics keep their names, a topic may hold records of applications of either cluster. Then a consumer of the source's topic has read two
kinds of records: the source's own ones, which the flow's ledger finds on the target, and those that came from the target. The ledger of the
opposite flow has the offsets of the second kind on the target. `merged` takes the earlier of the two images. Some records of the target are
not at the source yet: they begin, at the earliest, at the first offset without a copy of this flow, from the opposite flow's position on.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind, covered
from ferry.translation.run_index import Piece, RunIndex
from ferry.translation.translated import Inexact, Translation
from ferry.translation.unexplained import ExternalRecords, unexplained_ranges
from ferry.wire.ranges import NO_END, Range, union

# These reasons of the flow's own copies are kept; they say more than MERGED.
_TELLING = frozenset({Inexact.AHEAD, Inexact.NOT_COPIED, Inexact.TARGET_EXPIRED})


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What both clusters say, as offsets."""

    # Where the log begins on the source, and on the target.
    source_start: int = 0
    target_start: int = 0
    target_end: int = 0  # the target's last stable offset, captured before the ledger was read
    position: int | None = None  # the position of the head, read after the ledger; None: there is no head
    exactly_once: bool = True  # whether copies are transactions. Otherwise the target may hold records twice that no receipt explains


class OffsetMap:
    """Built once from the receipts of one partition, without those of topics that were created again since (ledger/topic_ids.py)."""

    def __init__(self, receipts: Iterable[Receipt], bounds: LogBounds | None = None) -> None:
        entries = list(receipts)
        self.bounds = bounds = bounds or LogBounds()
        copies = [receipt for receipt in entries if receipt.kind in COPIES]
        self._forgotten = _without_runs(copies)
        self._forgotten_to = max((receipt.upstream_end for receipt in self._forgotten), default=0)
        self._index = RunIndex(Piece(one.runs, one.upstream_end, one.downstream_end) for one in copies if one.runs)
        self._multiplied = _multiplied(copies)
        copied_end = max((receipt.downstream_end for receipt in entries), default=-1)
        self.copied_end = max(0, copied_end)
        nothing = bounds.target_end if bounds.exactly_once else bounds.target_start
        self.end = nothing if copied_end < 0 else copied_end
        self._lowest = min((receipt.upstream_start for receipt in entries), default=None)
        reached = max((receipt.upstream_end for receipt in entries), default=None)
        self._taken_back = _is_taken_back(bounds.position, reached)
        self.position = bounds.position if self._taken_back else reached
        self._uncopied_to = _uncopied_to(covered(entries), self.position or 0)
        first = self._index.first_downstream(0)
        self._first = self.end if first is None else first
        self._external = self._find_external(entries)

    def _find_external(self, entries: list[Receipt]) -> ExternalRecords:
        bounds = self.bounds
        foreign = [receipt for receipt in entries if receipt.kind is ReceiptKind.FOREIGN]
        untrusted = seeded_again(entries) or not bounds.exactly_once
        ranges = unexplained_ranges(entries, bounds.target_end if untrusted else 0, marked=bounds.exactly_once)
        begin = bounds.target_start
        if self._forgotten and not (untrusted or foreign):
            begin = max(begin, self._first)  # the runs of the records before the first known one were dropped
        repeated = union(span for receipt in entries for span in receipt.repeated)
        ranges = tuple(found for found in ranges if found[1] > begin)
        return ExternalRecords(tuple(foreign), ranges, bounds.target_start, doubted=untrusted, repeated=repeated)

    def translate(self, offset: int) -> Translation:
        """Where a consumer at upstream `offset` goes on downstream."""
        found = self.image(offset)
        image = max(self.end if found is None else found, self.bounds.target_start)
        return Translation(image, self._why_inexact(offset, image), 0 if self.position is None else max(0, offset - self.position))

    def image(self, offset: int) -> int | None:
        """The smallest downstream offset that may hold a record of upstream `offset` or higher; None when there is no such record."""
        candidates = self._external.places(offset)
        if offset < self._forgotten_to or self._before_everything(offset):
            candidates.append(self.bounds.target_start)
        first = self._index.first_downstream(offset)
        if first is not None:
            candidates.append(first)
        return min(candidates, default=None)

    def _why_inexact(self, offset: int, image: int) -> Inexact | None:
        if self.position is not None and offset > self.position:
            return Inexact.AHEAD
        if self._external.follow(image) or self._before_everything(offset):
            return Inexact.UNEXPLAINED
        if self.position is None or max(offset, self.bounds.source_start) < self._uncopied_to:
            return Inexact.NOT_COPIED
        first = self._index.first_downstream(offset)
        expired = first is not None and first < self.bounds.target_start
        if expired or offset < self._forgotten_to or self._external.declared(offset):
            return Inexact.TARGET_EXPIRED
        return Inexact.BACKFILLED if image < self._index.ordered_from or self._taken_back else None

    def invert(self, offset: int) -> Translation:
        """Where a consumer at downstream `offset` goes on upstream. Reasons as of `translate`, with the sides exchanged."""
        found = self.origin(offset)
        position = self.bounds.source_start if self.position is None else self.position
        image = max(position if found is None else found, self.bounds.source_start)
        return Translation(image, self._why_no_origin(offset, image, found), max(0, offset - max(self.end, self.bounds.target_end)))

    def origin(self, offset: int) -> int | None:
        """The smallest upstream offset that a record at downstream `offset` or higher may have; None when there is no such record."""
        candidates = self._external.origins(offset)
        candidates += [receipt.upstream_start for receipt in self._forgotten if receipt.downstream_end > offset]
        if self._before_explained(offset):
            candidates.append(self.bounds.source_start)
        if self._taken_back and self.position is not None:
            candidates.append(self.position)
        at = bisect_right(self._multiplied, (offset, NO_END, 0)) - 1
        if at >= 0 and offset < self._multiplied[at][1]:
            candidates.append(self._multiplied[at][2])
        first = self._index.first_upstream(offset)
        if first is not None:
            candidates.append(first)
        return min(candidates, default=None)

    def _why_no_origin(self, offset: int, image: int, found: int | None) -> Inexact | None:
        if self.position is None:
            return Inexact.NOT_COPIED
        if offset > max(self.end, self.bounds.target_end):
            return Inexact.AHEAD
        if self._external.follow(offset) or self._before_explained(offset):
            return Inexact.UNEXPLAINED
        if image < self._uncopied_to:
            return Inexact.NOT_COPIED
        expired = found is not None and found < self.bounds.source_start
        if expired or any(receipt.downstream_end > offset for receipt in self._forgotten):
            return Inexact.TARGET_EXPIRED
        older = self._index.upstream_before(offset) > image or any(receipt.upstream_end > image for receipt in self._forgotten)
        return Inexact.BACKFILLED if older or offset < self._index.ordered_from or self._taken_back else None

    def unshifted(self, offset: int, end: int) -> bool:
        """Whether every record from upstream `offset` to the source's `end` was copied, and has the same offset on the target."""
        there = self.translate(offset)
        return there.exact and there.image == offset and (self.position or 0) >= end and not self._index.shifted_from(offset)

    def explained_to(self, start: int) -> int:
        """The first downstream offset from `start` on that may hold a record which was not copied."""
        return self._external.first_from(start, self.copied_end)

    def copied_before(self, offset: int) -> bool:
        """Whether no record of upstream `offset` or higher was copied."""
        return self._index.first_downstream(offset) is None and offset >= self._forgotten_to

    def _before_everything(self, offset: int) -> bool:
        """Whether `offset` is before all receipts, and the remote log begins with records that no receipt explains."""
        return (self._lowest is None or offset < self._lowest) and not self._forgotten and self.bounds.target_start < self._first

    def _before_explained(self, offset: int) -> bool:
        """The same for a downstream offset: it is before the first explained record, and the source has older records."""
        older = self._lowest is not None and self.bounds.source_start < self._lowest
        return older and offset < self._first and not self._forgotten and self.bounds.target_start < self._first


def seeded_again(receipts: Iterable[Receipt]) -> bool:
    """Whether somebody has seeded a partition again.

    Then the target may hold records twice, and new receipts replace older ones under the same keys. So no gap counts as that of an aborted
    transaction, and the position may be lower than what was copied.
    """
    seeds = {receipt.upstream_start: receipt.by_operator for receipt in receipts if receipt.kind is ReceiptKind.SEED}
    return len(seeds) > 1 or any(seeds.values())


def _uncopied_to(ranges: tuple[Range, ...], position: int) -> int:
    """Where the settled range that ends at `position` begins: nothing between the two was left out."""
    at = bisect_right(ranges, (position - 1, NO_END)) - 1
    return ranges[at][0] if at >= 0 and ranges[at][1] >= position else position


def _multiplied(copies: Iterable[Receipt]) -> list[tuple[int, int, int]]:
    """Where one source record became several: (start, end, upstream offset). Downstream [start, end) may hold more of its records."""
    found = []
    for receipt in copies:
        if not receipt.counters.added:
            continue
        starts = [*(run[1] for run in receipt.runs[1:]), receipt.downstream_end]
        for (upstream, downstream, count), end in zip(receipt.runs, starts, strict=False):
            if downstream + count < end:
                found.append((downstream + count, end, upstream + count - 1))
    return sorted(found)


def merged(forward: OffsetMap, opposite: OffsetMap, offset: int) -> Translation:
    """Where a consumer at `offset` of the source's topic goes on at the target. `opposite`: the map of the flow in the other direction."""
    own = forward.translate(offset)
    placed, returned = forward.image(offset), opposite.origin(offset)
    begin = forward.bounds.target_start
    not_returned = forward.explained_to(max(begin, opposite.position or 0))
    # If no copy follows `offset`, the next copy comes after all copies, and after the offsets that were stable before the ledger was read.
    earliest = [not_returned, max(forward.bounds.target_end, forward.copied_end) if placed is None else placed]
    if returned is not None:
        earliest.append(returned)
    image = max(min(earliest), begin)
    exact = False
    if own.exact and returned is None and not_returned >= forward.copied_end:
        # Only the source's own records follow the image.
        exact = opposite.copied_before(image)
    elif placed is None and opposite.invert(offset).exact and image == returned:
        # Only the target's own records follow it.
        exact = image >= forward.copied_end
    if exact:
        return Translation(image)
    return Translation(image, own.reason if own.reason in _TELLING else Inexact.MERGED, own.ahead)


def _without_runs(copies: Iterable[Receipt]) -> list[Receipt]:
    """Receipts whose records have left the target's log: compaction of the ledger has dropped their runs."""
    return [receipt for receipt in copies if receipt.counters.records and not receipt.runs]


def _is_taken_back(position: int | None, reached: int | None) -> bool:
    """Whether the head is before the end of what was copied: an operator set it back, and the same offsets will be copied again."""
    return reached is not None and position is not None and position < reached
