"""Why offsets are not compared (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferry.ledger.coverage import covered, uncovered
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.verify.evidence import PartitionEvidence
from ferry.verify.model import NotCovered, Side
from ferry.verify.slices import Slice, Window, downstream_of
from ferry.wire.ranges import Range, Ranges, outside, size, union, within
from ferry.wire.runs import Run

NOT_COPIED = "not copied yet"
NO_REMOTE_TOPIC = "not copied yet: there is no remote partition"
SEEDED_OVER = "never copied: the position was set behind it"
EXPIRED_SOURCE = "expired at the source after it was copied"
EXPIRED_TARGET = "expired at the target"
EXPIRED_MEANWHILE_SOURCE = "expired at the source while it was verified"
EXPIRED_MEANWHILE_TARGET = "expired at the target while it was verified"
TRUNCATED_SOURCE = "copied, and gone at the source since: its log was truncated"
WRITTEN_SINCE = "copied after this verify had begun"
HANDLED = "changed on purpose by the message handler: only the presence of records was compared"
FOREIGN = "declared as written by another replicator"
FOUND = "was there before the ledger began"
LOCAL = "offsets in no receipt may be records that are produced there: names stay as they are"
OTHER_SOURCE = "copied from an earlier source topic of the same name"
UNRECORDED = "behind the last receipt: copied at least once, and not recorded yet"
UNEXPLAINED = "nothing was copied yet: what is there is not this flow's"
LOST = {ReceiptKind.LOSS: "lost", ReceiptKind.SKIPPED: "skipped", ReceiptKind.FOREIGN: "copied by another replicator"}
_COPIES = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED})

# A slice as the ledger has it, and the runs of it that are compared.
Planned = tuple[Slice, Slice, tuple[Run, ...]]


def explained_otherwise(evidence: PartitionEvidence) -> list[tuple[str, Range]]:
    """Downstream ranges that may hold records in no run of this source topic, by reason; they may overlap."""
    receipts = evidence.receipts
    begin, end = evidence.target_start, evidence.target_end
    foreign = max((entry.downstream_end for entry in receipts if entry.kind is ReceiptKind.FOREIGN), default=-1)
    found = max((entry.found for entry in receipts if entry.kind is ReceiptKind.SEED), default=-1)
    spans = [(FOREIGN, (begin, foreign)), (FOUND, (begin, found))]
    if evidence.local:
        spans.append((LOCAL, (begin, end)))
    others = [entry for entry in receipts if entry.kind in _COPIES and entry.source_topic_id != evidence.source_topic_id]
    spans += [(OTHER_SOURCE, span) for entry in others for span in downstream_of(entry.runs)]
    if not evidence.exactly_once:
        spans.append((UNRECORDED, (max((entry.downstream_end for entry in receipts), default=begin), end)))
    return [(reason, span) for reason, span in spans if max(begin, span[0]) < min(end, span[1])]


def not_covered(evidence: PartitionEvidence, planned: Sequence[Planned], window: Window) -> tuple[NotCovered, ...]:
    """Everything of the source's log that no range compares, then what is on the target and cannot be compared."""
    found = [(reason, span) for piece, whole, kept in planned for reason, span in _of_slice(piece, whole, kept, evidence)]
    own = [entry for entry in evidence.receipts if entry.source_topic_id == evidence.source_topic_id]
    asked = _asked(evidence)
    for entry in own:
        if entry.kind in LOST and entry.upstream_start < entry.upstream_end:
            found.append(
                (f"{LOST[entry.kind]}: {entry.reason}" if entry.reason else LOST[entry.kind], (entry.upstream_start, entry.upstream_end))
            )
        elif entry.kind in _COPIES and has_expired(entry, evidence):
            found.append((EXPIRED_TARGET, (entry.upstream_start, entry.upstream_end)))
    for start, end in uncovered(window.upstream, covered(own)):
        middle = min(end, max(start, evidence.position))
        seeded = min(middle, max(start, _last_seed(own)))
        found += [(_seed_reason(own, seeded), (start, seeded)), (NOT_COPIED, (middle, end))]
    entries = _joined(evidence, found, asked, Side.SOURCE)
    returning = within(evidence.excluded, *window.upstream)
    if returning:
        reason = f"came from the target by the flow in the other direction: {size(returning):,} offsets are not sent back"
        entries.append(NotCovered(evidence.topic, evidence.partition, returning[0][0], returning[-1][1], reason))
    if not evidence.receipts:
        entries += _joined(evidence, [(UNEXPLAINED, window.downstream)], window.downstream, Side.TARGET)
    elif not evidence.narrowed:
        entries += _joined(evidence, explained_otherwise(evidence), window.downstream, Side.TARGET)
    return tuple(entries)


def has_expired(receipt: Receipt, evidence: PartitionEvidence) -> bool:
    """Whether upkeep has taken the runs of a receipt, because its records had left the target's log."""
    return bool(receipt.counters.records) and not receipt.runs and receipt.downstream_end <= evidence.target_start


def passed_over(evidence: PartitionEvidence, window: Window) -> Ranges:
    """Upstream offsets before the position that no receipt settles and no seed was set behind: their records are nowhere."""
    own = [entry for entry in evidence.receipts if entry.source_topic_id == evidence.source_topic_id]
    return outside(covered(own), max(window.upstream[0], _last_seed(own)), min(window.upstream[1], evidence.position))


def _last_seed(receipts: Iterable[Receipt]) -> int:
    return max((entry.upstream_start for entry in receipts if entry.kind is ReceiptKind.SEED), default=-1)


def _of_slice(piece: Slice, whole: Slice, kept: tuple[Run, ...], evidence: PartitionEvidence) -> list[tuple[str, Range]]:
    """Which parts of a slice, as the ledger has it, are not compared."""
    found = []
    if whole.start < evidence.source_start:
        found.append((EXPIRED_SOURCE, (whole.start, min(whole.end, evidence.source_start))))
    if whole.end > evidence.source_end:
        found.append((TRUNCATED_SOURCE, (max(whole.start, evidence.source_end), whole.end)))
    low, high = max(whole.start, evidence.wanted[0]), min(whole.end, evidence.wanted[1])
    before = [run for run in whole.runs if run[1] < evidence.target_start]
    behind = [run for run in whole.runs if run[1] + run[2] > evidence.target_end]
    if before:
        found.append((EXPIRED_TARGET, (low, min(high, kept[0][0] if kept else before[-1][0] + before[-1][2]))))
    if behind:
        found.append((WRITTEN_SINCE, (max(low, kept[-1][0] + kept[-1][2] if kept else behind[0][0]), high)))
    if piece.handled and kept:
        found.append((HANDLED, (kept[0][0], kept[-1][0] + kept[-1][2])))
    return found


def _asked(evidence: PartitionEvidence) -> Range:
    return (-1 if evidence.since is None else evidence.since, 1 << 63 if evidence.until is None else evidence.until)


def _seed_reason(receipts: Iterable[Receipt], end: int) -> str:
    seeds = sorted(
        (entry for entry in receipts if entry.kind is ReceiptKind.SEED and entry.upstream_start >= end),
        key=lambda entry: entry.upstream_start,
    )
    return f"{SEEDED_OVER} ({seeds[0].reason})" if seeds and seeds[0].reason else SEEDED_OVER


def _joined(evidence: PartitionEvidence, found: Iterable[tuple[str, Range]], asked: Range, side: Side) -> list[NotCovered]:
    by_reason: dict[str, list[Range]] = {}
    for reason, (start, end) in found:
        by_reason.setdefault(reason, []).append((max(start, asked[0]), min(end, asked[1])))
    return [
        NotCovered(evidence.topic, evidence.partition, start, end, reason, side)
        for reason, spans in by_reason.items()
        for start, end in union(spans)
    ]
