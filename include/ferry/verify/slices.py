"""Cuts receipts into slices that can be compared (pure).

A slice is a part of one receipt: upstream range, runs, weight. A receipt that ledger compaction has merged may cover a whole topic. So
Ferry cuts it between runs with a commit marker between them: this cuts no batch, and transactions are short. It also cuts where records of
another receipt are between two runs. Offsets that two receipts name (one inside the other) count once. Then the slices are clipped to the
offsets that both logs hold. Runs stay coded unless one of these steps cuts them. So a plan does not cost more if there were more commits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ferry.ledger.receipts import Receipt
from ferry.wire.ranges import NO_END, Range, outside, union
from ferry.wire.runs import DOWNSTREAM, UPSTREAM, OffsetRun, end_of

# The size of a range: small enough that several workers share a partition.
PIECE_BYTES = 128 << 20
# Runs are sent with their range, a few bytes each.
PIECE_RUNS = 50_000


@dataclass(frozen=True)
class Slice:
    """Upstream `[start, end)` of one receipt, and its runs there."""

    start: int
    end: int
    runs: Sequence[OffsetRun]
    weight: int
    handled: bool = False


@dataclass(frozen=True)
class SharedOffsets:
    """The offsets that both logs hold, as half-open ranges."""

    upstream: Range
    downstream: Range


def sliced(receipt: Receipt) -> list[Slice]:
    """The slices of a receipt of copied records, in order. Runs outside of its range (a damaged ledger) explain no record."""
    handled, range_ = receipt.counters.by_handler, (receipt.upstream_start, receipt.upstream_end)
    runs, *_ = clip(receipt.runs, SharedOffsets(range_, (0, NO_END)))
    if runs and receipt.counters.bytes <= PIECE_BYTES and len(runs) <= PIECE_RUNS:
        return [Slice(*range_, runs, receipt.counters.bytes, handled)]
    each = receipt.counters.bytes / max(1, receipt.counters.records)
    groups: list[list[OffsetRun]] = []
    weights: list[float] = []
    for run in runs:
        weight = run[2] * each
        full = not groups or weights[-1] + weight > PIECE_BYTES or len(groups[-1]) >= PIECE_RUNS
        if full and not (groups and follows(groups[-1][-1], run)):
            groups.append([])
            weights.append(0)
        groups[-1].append(run)
        weights[-1] += weight
    whole = Slice(*range_, (), 0, handled)
    return _cut(whole, groups, weights) if groups else [whole]


def _cut(whole: Slice, groups: Sequence[Sequence[OffsetRun]], weights: Iterable[float]) -> list[Slice]:
    """`whole` as one slice for each group of its runs."""
    starts = [whole.start, *(group[0][0] for group in groups[1:])]
    ends = [*starts[1:], whole.end]
    return [
        replace(whole, start=start, end=end, runs=tuple(group), weight=int(weight))
        for start, end, group, weight in zip(starts, ends, groups, weights, strict=True)
    ]


def follows(run: OffsetRun, following: OffsetRun) -> bool:
    """Whether both may be in one batch: no offset is between them on the target, so there is no commit marker either."""
    return run[1] + run[2] == following[1]


def distinct(slices: Sequence[Slice]) -> list[Slice]:
    """The slices, so that each offset of the target belongs to one of them, and no slice encloses records of another.

    If other slices have all target offsets of a slice, only the part of its upstream range that no other slice holds stays claimed: if a
    ledger names one place for two records, it must hide neither of them.
    """
    ordered = sorted((piece for piece in slices if piece.runs), key=lambda piece: piece.runs[0][DOWNSTREAM])
    if all(end_of(piece.runs, DOWNSTREAM) <= following.runs[0][DOWNSTREAM] for piece, following in pairwise(ordered)):
        return list(slices)
    found: list[Slice] = []
    doubled: list[Slice] = []
    for piece, groups in zip(slices, _first_claims(slices), strict=True):
        if groups:
            share = piece.weight / sum(run[2] for run in piece.runs)
            found += _cut(piece, groups, [share * sum(run[2] for run in group) for group in groups])
        else:
            (doubled if piece.runs else found).append(piece)
    held = union((piece.start, piece.end) for piece in found)
    for piece in doubled:
        found += [replace(piece, start=start, end=end, runs=(), weight=0) for start, end in outside(held, piece.start, piece.end)]
    return found


def _first_claims(slices: Sequence[Slice]) -> list[list[list[OffsetRun]]]:
    """By slice, the parts of its runs that it claims first, in groups between which no other slice has records on the target."""
    named = sorted(((run, index) for index, piece in enumerate(slices) for run in piece.runs), key=lambda entry: entry[0][1])
    kept: list[list[list[OffsetRun]]] = [[] for _ in slices]
    reached, last = 0, -1
    for (upstream, downstream, count), index in named:
        cut = max(0, reached - downstream)
        if cut < count:
            if index != last:
                kept[index].append([])
            kept[index][-1].append((upstream + cut, downstream + cut, count - cut))
            reached, last = downstream + count, index
    return kept


def clip(runs: Sequence[OffsetRun], bounds: SharedOffsets) -> tuple[Sequence[OffsetRun], tuple[OffsetRun, ...], tuple[OffsetRun, ...]]:
    """Three parts of `runs`: those that both logs hold, those that the source lacks, and those that only the source holds."""
    if runs and _is_within(runs, UPSTREAM, bounds.upstream) and _is_within(runs, DOWNSTREAM, bounds.downstream):
        return runs, (), ()
    kept, no_source, no_target = [], [], []
    for run in runs:
        inside = _parts(run, run[0], bounds.upstream)
        no_source += [inside[0], inside[2]]
        there = _parts(inside[1], inside[1][1], bounds.downstream)
        no_target += [there[0], there[2]]
        kept.append(there[1])
    return _filled(kept), _filled(no_source), _filled(no_target)


def _is_within(runs: Sequence[OffsetRun], side: int, wanted: Range) -> bool:
    return wanted[0] <= runs[0][side] and end_of(runs, side) <= wanted[1]


def _parts(run: OffsetRun, begin: int, wanted: Range) -> tuple[OffsetRun, OffsetRun, OffsetRun]:
    """The parts of a run before, in and behind `wanted`; on that side the run begins at `begin`."""
    upstream, downstream, count = run
    low = min(count, max(0, wanted[0] - begin))
    high = max(low, min(count, wanted[1] - begin))
    return (
        (upstream, downstream, low),
        (upstream + low, downstream + low, high - low),
        (upstream + high, downstream + high, count - high),
    )


def _filled(runs: Iterable[OffsetRun]) -> tuple[OffsetRun, ...]:
    return tuple(run for run in runs if run[2] > 0)
