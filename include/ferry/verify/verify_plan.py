"""Plans a verify: which ranges of a partition are compared, and what cannot be compared and why (pure).

Every slice of a copied or backfilled receipt that both logs still hold becomes part of a range. The ranges of a partition cover the log of
the target without gaps, from its start to the captured end, so a record that no receipt explains is found wherever it is. For all other
offsets of the source the plan gives a reason.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ferry.ledger.receipts import COPIES
from ferry.verify import reasons
from ferry.verify.comparison import NotCovered, PartitionEvidence, VerifyRange
from ferry.verify.slices import PIECE_BYTES, PIECE_RUNS, SharedOffsets, Slice, clip, distinct, follows, sliced
from ferry.wire.coded_runs import joined_coded
from ferry.wire.ranges import NO_END, Range, Ranges, outside, union, within
from ferry.wire.runs import DOWNSTREAM, UPSTREAM, OffsetRun, encode_runs, end_of, offsets_of


@dataclass(frozen=True)
class PartitionVerification:
    ranges: tuple[VerifyRange, ...]
    not_covered: tuple[NotCovered, ...]


def plan_partition(evidence: PartitionEvidence) -> PartitionVerification:
    """Plan one partition whose remote partition exists."""
    mine = [entry for entry in evidence.own if entry.kind in COPIES and not reasons.has_expired(entry, evidence)]
    mine.sort(key=lambda entry: (entry.upstream_start, -entry.upstream_end))
    pieces = _absorbed(distinct(list(chain.from_iterable(map(sliced, mine)))))
    bounds = SharedOffsets(evidence.wanted, (evidence.target_start, max(evidence.target_start, evidence.target_end)))
    pieces += [Slice(start, end, (), 0) for start, end in reasons.passed_over(evidence, bounds)]
    clipped = [_clipped(piece, bounds, evidence.excluded) for piece in pieces]
    tolerated = _tolerated(evidence, clipped)
    groups = _grouped(clipped, exactly_once=evidence.exactly_once)
    with_records = [group for group in groups if group.runs]
    spans = _spans(with_records, clipped, evidence)
    # Groups without records come last, and read nothing of the target.
    spans += [(evidence.target_start, evidence.target_start)] * (len(groups) - len(spans))
    ranges = [_range(evidence, group, span, tolerated) for group, span in zip(groups, spans, strict=True)]
    if evidence.receipts and not evidence.narrowed and not with_records:
        ranges.append(_range(evidence, _Group((), (), 0), bounds.downstream, tolerated))
    found = tuple(entry for entry in ranges if entry.claimed or outside(entry.tolerated, *entry.downstream))
    return PartitionVerification(found, reasons.not_covered(evidence, [(entry.slice, entry.whole) for entry in clipped], bounds))


def within_logs(wanted: VerifyRange, source_start: int, target_start: int) -> tuple[VerifyRange | None, list[NotCovered]]:
    """The range after retention has moved the starts of the logs, and the offsets that it no longer covers. None: nothing is left."""
    kept, no_source, no_target = clip(wanted.runs, SharedOffsets((source_start, NO_END), (target_start, NO_END)))
    start = max(wanted.upstream[0], source_start)
    if no_target:
        start = max(start, kept[0][0] if kept else wanted.upstream[1])
    claimed = within(wanted.claimed, start, wanted.upstream[1])
    downstream = (min(max(wanted.downstream[0], target_start), wanted.downstream[1]), wanted.downstream[1])
    where = (wanted.topic, wanted.partition)
    lost = []
    if source_start > wanted.upstream[0]:
        lost.append(NotCovered(*where, wanted.upstream[0], min(source_start, wanted.upstream[1]), reasons.EXPIRED_MEANWHILE_SOURCE))
    if no_target:
        first = max(source_start, no_target[0][0])
        lost.append(NotCovered(*where, first, max(first, start), reasons.EXPIRED_MEANWHILE_TARGET))
    left = replace(
        wanted,
        upstream=(min(start, wanted.upstream[1]), wanted.upstream[1]),
        downstream=downstream,
        coded_runs=encode_runs(kept),
        claimed=claimed,
        tolerated=union([*wanted.tolerated, *offsets_of(no_source, DOWNSTREAM)]),
    )
    return (left if left.claimed or outside(left.tolerated, *downstream) else None), lost


@dataclass(frozen=True)
class _Clipped:
    """A slice by the ledger (`whole`), the part that both logs hold, the parts that the source lacks, and the claimed offsets."""

    whole: Slice
    slice: Slice
    no_source: tuple[OffsetRun, ...]
    claimed: Ranges


@dataclass(frozen=True)
class _Group:
    """Slices that become one range; `runs`: those of each slice."""

    runs: tuple[Sequence[OffsetRun], ...]
    claimed: Ranges
    weight: int
    handled: bool = False

    @property
    def count(self) -> int:
        return sum(map(len, self.runs))


def _absorbed(pieces: Sequence[Slice]) -> list[Slice]:
    """The slices; one without records (aborted data, markers) becomes part of a neighbour."""
    found: list[Slice] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.end)):
        last = found[-1] if found else None
        if last is None or last.end != piece.start or last.handled != piece.handled or (last.runs and piece.runs):
            found.append(piece)
        elif piece.runs:
            found[-1] = replace(piece, start=last.start)
        else:
            found[-1] = replace(last, end=piece.end)
    return found


def _clipped(piece: Slice, bounds: SharedOffsets, excluded: Ranges) -> _Clipped:
    kept, no_source, no_target = clip(piece.runs, bounds)
    start, end = max(piece.start, bounds.upstream[0]), min(piece.end, bounds.upstream[1])
    if any(run[1] < bounds.downstream[0] for run in no_target):
        start = max(start, kept[0][0] if kept else end)
    if any(run[1] >= bounds.downstream[1] for run in no_target):
        end = min(end, kept[-1][0] + kept[-1][2] if kept else start)
    claimed = outside(excluded, start, end) if start < end and not piece.handled else ()
    share = piece.weight
    if no_source or no_target:
        share = share * sum(run[2] for run in kept) // sum(run[2] for run in piece.runs)
    return _Clipped(piece, replace(piece, start=start, end=max(start, end), runs=kept, weight=share), no_source, claimed)


def _tolerated(evidence: PartitionEvidence, clipped: Sequence[_Clipped]) -> Ranges:
    """Downstream offsets outside of the compared runs whose records have another explanation."""
    spans = [span for _, span in reasons.explained_otherwise(evidence)]
    spans += [span for entry in evidence.receipts if entry.kind in COPIES for span in entry.written]
    spans += _bridged([span for entry in clipped for span in offsets_of(entry.no_source, DOWNSTREAM)], evidence.exactly_once)
    low, high = evidence.target_start, evidence.target_end
    wanted = union((max(low, start), min(high, end)) for start, end in spans)
    parts = [entry.slice.runs for entry in clipped if entry.slice.runs]
    touched = [runs for runs in parts if within(wanted, runs[0][DOWNSTREAM], end_of(runs, DOWNSTREAM))]
    named = union(span for runs in touched for span in offsets_of(runs, DOWNSTREAM))
    return union(part for start, end in wanted for part in outside(named, start, end))


def _bridged(spans: Iterable[Range], exactly_once: bool) -> list[Range]:
    """The ranges, joined across a single offset: between two transactions it holds the commit marker, so it hides no record."""
    return [(start, end - exactly_once) for start, end in union((start, end + exactly_once) for start, end in spans)]


def _grouped(clipped: Sequence[_Clipped], *, exactly_once: bool) -> list[_Group]:
    """Slices that are neighbours on both sides, joined up to a size. First those with records, in order of the target's log."""
    groups: list[_Group] = []
    end = -1
    for entry in sorted((entry for entry in clipped if entry.slice.runs), key=lambda entry: entry.slice.runs[0][1]):
        piece, last = entry.slice, groups[-1] if groups else None
        if last is not None and piece.start == end and _belongs_to(last, piece, exactly_once=exactly_once):
            claimed = union([*last.claimed, *entry.claimed])
            groups[-1] = _Group((*last.runs, piece.runs), claimed, last.weight + piece.weight, piece.handled)
        else:
            groups.append(_Group((piece.runs,), entry.claimed, piece.weight, piece.handled))
        end = piece.end
    return groups + [_Group((), entry.claimed, 0) for entry in clipped if not entry.slice.runs and entry.claimed]


def _belongs_to(group: _Group, piece: Slice, *, exactly_once: bool) -> bool:
    """Whether a slice can be compared together with the group before it."""
    # A damaged ledger may have runs that are in order on the target only: no range can hold both.
    in_order = end_of(group.runs[-1], UPSTREAM) <= piece.runs[0][UPSTREAM]
    fits = group.weight + piece.weight <= PIECE_BYTES and group.count + len(piece.runs) <= PIECE_RUNS
    # Runs without an offset between them on the target belong to one transaction (or, without transactions, to two).
    return in_order and group.handled == piece.handled and (fits or (exactly_once and follows(group.runs[-1][-1], piece.runs[0])))


def _spans(groups: Sequence[_Group], clipped: Sequence[_Clipped], evidence: PartitionEvidence) -> list[Range]:
    """The part of the target's log that each group reads: together the whole log, or only the groups' parts if the request is narrow."""
    starts = [group.runs[0][0][DOWNSTREAM] for group in groups]
    if not starts:
        return []
    ends = [*starts[1:], evidence.target_end]
    if evidence.narrowed:
        others = sorted(run[1] for entry in clipped for run in entry.no_source)
        behind = (bisect_left(others, end_of(group.runs[-1], DOWNSTREAM)) for group in groups)
        return [(start, min([end, *others[at : at + 1]])) for start, end, at in zip(starts, ends, behind, strict=True)]
    return list(zip([evidence.target_start, *starts[1:]], ends, strict=True))


def _range(evidence: PartitionEvidence, group: _Group, place: Range, tolerated: Ranges) -> VerifyRange:
    upstream = union([*group.claimed, *((runs[0][UPSTREAM], end_of(runs, UPSTREAM)) for runs in group.runs)])
    return VerifyRange(
        *evidence.existing,
        upstream=(upstream[0][0], upstream[-1][1]) if upstream else (0, 0),
        downstream=place,
        coded_runs=joined_coded(group.runs),
        claimed=group.claimed,
        tolerated=within(tolerated, *place),
        content=not group.handled,
        weight=group.weight,
    )
