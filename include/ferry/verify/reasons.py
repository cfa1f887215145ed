"""Why offsets are not compared (pure)."""

from collections.abc import Iterable, Iterator

from ferry.clusters.net.partitions import grouped
from ferry.errors import count_of
from ferry.ledger.receipts import BY_START_POLICY, COPIES, Receipt, ReceiptKind, covered, declared_ends
from ferry.verify.comparison import NotCovered, PartitionEvidence, Side
from ferry.verify.slices import SharedOffsets, Slice
from ferry.wire.ranges import NO_END, Range, Ranges, outside, size, union, within
from ferry.wire.runs import DOWNSTREAM, end_of, offsets_of

NOT_COPIED = "not copied yet"
NOT_COPIED_SINCE = "not copied since the source topic was created again"
NO_REMOTE_TOPIC = "not copied yet: there is no remote partition"
SEEDED_OVER, BEFORE_START = "never copied: somebody set the position after it", "never copied: before the start of the flow"
EXPIRED_SOURCE = "expired at the source after it was copied"
EXPIRED_TARGET = "expired at the target"
EXPIRED_MEANWHILE_SOURCE = "expired at the source while it was verified"
EXPIRED_MEANWHILE_TARGET = "expired at the target while it was verified"
TRUNCATED_SOURCE = "copied, but no longer at the source: its log was truncated"
WRITTEN_SINCE = "copied after this verify began"
HANDLED = "the message handler, or new ids of schemas, may change records: only their presence was compared"
FOREIGN = "declared as written by another replicator"
FOUND = "on the target before the ledger began"
LOCAL = "records outside of receipts may be local: applications may produce to the remote topic, which keeps the source's name"
OTHER_SOURCE = "copied from an earlier source topic of the same name"
UNRECORDED = "after the last receipt: records may be copied that the ledger does not hold yet"
REPEATED = "acknowledged without a receipt, in a run without transactions: these records were copied once more"
UNEXPLAINED = "this flow has copied nothing yet: the records are not its own"
LOST = {ReceiptKind.LOSS: "lost", ReceiptKind.SKIPPED: "skipped", ReceiptKind.FOREIGN: "copied by another replicator"}


def explained_otherwise(evidence: PartitionEvidence) -> list[tuple[str, Range]]:
    """Downstream ranges that may hold records outside of this source topic's runs, each with the reason. They may overlap."""
    receipts = evidence.receipts
    begin, end = evidence.target_start, evidence.target_end
    foreign, found = declared_ends(receipts)
    spans = [(FOREIGN, (begin, foreign)), (FOUND, (begin, found))]
    if evidence.local:
        spans.append((LOCAL, (begin, end)))
    source = evidence.topic_ids.source
    others = [entry for entry in receipts if entry.kind in COPIES and entry.source_topic_id != source]
    spans += [(OTHER_SOURCE, span) for entry in others for span in offsets_of(entry.runs, DOWNSTREAM)]
    spans += [(REPEATED, span) for entry in receipts for span in entry.repeated]
    if not evidence.exactly_once:
        spans.append((UNRECORDED, (max((entry.downstream_end for entry in receipts), default=begin), end)))
    return [(reason, span) for reason, span in spans if max(begin, span[0]) < min(end, span[1])]


def not_covered(evidence: PartitionEvidence, planned: Iterable[tuple[Slice, Slice]], bounds: SharedOffsets) -> tuple[NotCovered, ...]:
    """Offsets of the source that no range compares, then offsets of the target that cannot be compared.

    `planned`: slices as both logs hold them, each with the slice by the ledger.
    """
    found = [(reason, span) for piece, whole in planned for reason, span in _of_slice(piece, whole, evidence)]
    own = evidence.own
    asked = (-1 if evidence.since is None else evidence.since, NO_END if evidence.until is None else evidence.until)
    for entry in own:
        if entry.kind in LOST and entry.upstream_start < entry.upstream_end:
            why = f"{LOST[entry.kind]}: {entry.reason}" if entry.reason else LOST[entry.kind]
            found.append((why, (entry.upstream_start, entry.upstream_end)))
        elif entry.kind in COPIES and has_expired(entry, evidence):
            found.append((EXPIRED_TARGET, (entry.upstream_start, entry.upstream_end)))
    found += _not_in_ledger(evidence, bounds)
    entries = _joined(evidence, found, asked, Side.SOURCE)
    returning = within(evidence.excluded, *bounds.upstream)
    if returning:
        reason = f"came from the target by the flow in the other direction: {count_of(size(returning), 'offset')}, which are not sent back"
        entries.append(NotCovered(evidence.topic, evidence.partition, returning[0][0], returning[-1][1], reason))
    if not evidence.receipts:
        entries += _joined(evidence, [(UNEXPLAINED, bounds.downstream)], bounds.downstream, Side.TARGET)
    elif not evidence.narrowed:
        entries += _joined(evidence, explained_otherwise(evidence), bounds.downstream, Side.TARGET)
    return tuple(entries)


def _not_in_ledger(evidence: PartitionEvidence, bounds: SharedOffsets) -> Iterator[tuple[str, Range]]:
    """Offsets of the source that no receipt names: a seed passed over those before the position, and the rest is not copied yet."""
    own = evidence.own
    rest = NOT_COPIED_SINCE if evidence.receipts and not own else NOT_COPIED
    for start, end in outside(covered(own), *bounds.upstream):
        middle = min(end, max(start, evidence.position))
        seeded = min(middle, max(start, _last_seed(own)))
        yield _seed_reason(own, seeded), (start, seeded)
        yield rest, (middle, end)


def has_expired(receipt: Receipt, evidence: PartitionEvidence) -> bool:
    """Whether the records of a receipt have expired at the target, so that ledger compaction dropped its runs."""
    return bool(receipt.counters.records) and not receipt.runs and receipt.downstream_end <= evidence.target_start


def passed_over(evidence: PartitionEvidence, bounds: SharedOffsets) -> Ranges:
    """Upstream offsets before the position that neither a receipt nor a seed explains: their records are not on the target."""
    own = evidence.own
    return outside(covered(own), max(bounds.upstream[0], _last_seed(own)), min(bounds.upstream[1], evidence.position))


def _last_seed(receipts: Iterable[Receipt]) -> int:
    return max((entry.upstream_start for entry in receipts if entry.kind is ReceiptKind.SEED), default=-1)


def _of_slice(piece: Slice, whole: Slice, evidence: PartitionEvidence) -> list[tuple[str, Range]]:
    found, kept = [], piece.runs
    if whole.start < evidence.source_start:
        found.append((EXPIRED_SOURCE, (whole.start, min(whole.end, evidence.source_start))))
    if whole.end > evidence.source_end:
        found.append((TRUNCATED_SOURCE, (max(whole.start, evidence.source_end), whole.end)))
    low, high = max(whole.start, evidence.wanted[0]), min(whole.end, evidence.wanted[1])
    runs = whole.runs
    if runs and evidence.target_start <= runs[0][1] and end_of(runs, DOWNSTREAM) <= evidence.target_end:
        runs = ()  # all of them are in the target's log, as usual: they need not be decoded
    before = [run for run in runs if run[1] < evidence.target_start]
    behind = [run for run in runs if run[1] + run[2] > evidence.target_end]
    if before:
        found.append((EXPIRED_TARGET, (low, min(high, kept[0][0] if kept else before[-1][0] + before[-1][2]))))
    if behind:
        found.append((WRITTEN_SINCE, (max(low, kept[-1][0] + kept[-1][2] if kept else behind[0][0]), high)))
    if piece.handled and kept:
        found.append((HANDLED, (kept[0][0], kept[-1][0] + kept[-1][2])))
    return found


def _seed_reason(receipts: Iterable[Receipt], end: int) -> str:
    seeds = (entry for entry in receipts if entry.kind is ReceiptKind.SEED and entry.upstream_start >= end)
    first = min(seeds, key=lambda entry: entry.upstream_start, default=None)
    if first is None or not first.reason:
        return SEEDED_OVER
    return f"{BEFORE_START if first.reason.startswith(BY_START_POLICY) else SEEDED_OVER} ({first.reason})"


def _joined(evidence: PartitionEvidence, found: Iterable[tuple[str, Range]], asked: Range, side: Side) -> list[NotCovered]:
    by_reason = grouped((reason, (max(start, asked[0]), min(end, asked[1]))) for reason, (start, end) in found)
    return [
        NotCovered(evidence.topic, evidence.partition, start, end, reason, side)
        for reason, spans in by_reason.items()
        for start, end in union(spans)
    ]
