"""What the comparison of one range says to people (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ferry.verify.comparer import Tally
from ferry.verify.model import Difference, DifferenceKind, NotCovered, RangeResult, VerifiedRange, VerifyRange
from ferry.verify.unmatched import Finding
from ferry.wire.ranges import Range, Ranges

# Of one range; all are counted.
DIFFERENCES_A_RANGE = 100
ONLY_SOURCE = "compaction: {:,} records are on the source only"
ONLY_TARGET = "compaction: {:,} records are on the target only"


def result_of(
    wanted: VerifyRange, compared: VerifyRange | None, tally: Tally, size: int, expired: Sequence[NotCovered] = ()
) -> RangeResult:
    """The result of a range that was read to its end; `size`: bytes of the source's batches.

    `compared`: what was left of it when the logs' starts had moved; None: nothing.
    """
    counts = Counter(finding.kind for finding in tally.findings) + tally.beyond
    where, span = (wanted.topic, wanted.partition), wanted.upstream
    compacted = [
        NotCovered(*where, *span, text.format(count))
        for text, count in ((ONLY_SOURCE, tally.only_source), (ONLY_TARGET, tally.only_target))
        if count
    ]
    return RangeResult(
        key=wanted.key,
        topic=wanted.topic,
        partition=wanted.partition,
        records=tally.records,
        bytes=size,
        bytes_as_stored=tally.as_stored,
        counts={kind.value: count for kind, count in counts.items()},
        differences=tuple(_difference(wanted, finding) for finding in tally.findings[:DIFFERENCES_A_RANGE]),
        not_covered=(*expired, *compacted),
        verified=None if compared is None else _verified(compared, tally, counts.total()),
    )


def _verified(compared: VerifyRange, tally: Tally, differences: int) -> VerifiedRange:
    return VerifiedRange(
        compared.topic,
        compared.partition,
        compared.remote_topic,
        _hull(tally.upstream),
        _hull(tally.downstream),
        len(tally.upstream),
        len(tally.downstream),
        tally.records,
        differences,
        compared.digest,
        tally.source_digest,
        tally.target_digest,
    )


def _hull(parts: Ranges) -> Range:
    return (parts[0][0], parts[-1][1]) if parts else (0, 0)


def _difference(wanted: VerifyRange, finding: Finding) -> Difference:
    return Difference(
        wanted.topic, wanted.partition, wanted.remote_topic, finding.upstream, finding.downstream, finding.kind, _detail(finding)
    )


def _detail(finding: Finding) -> str:
    match finding.kind:
        case DifferenceKind.MISSING if finding.named >= 0:
            return f"the ledger says that it is at downstream offset {finding.named}"
        case DifferenceKind.MISSING:
            return "before the flow's position, and in no run of the ledger"
        case DifferenceKind.EXTRA:
            return "no record of the source explains it"
        case DifferenceKind.ALTERED:
            return ", ".join(finding.fields)
        case DifferenceKind.REORDERED if finding.named >= 0:
            return f"belongs at downstream offset {finding.named}"
        case DifferenceKind.DISPLACED:
            return f"the ledger says that it is at downstream offset {finding.named}"
    return "not where it belongs"
