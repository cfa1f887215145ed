"""The report of a verify: made from the results of its ranges, with exit code and errors."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any

from ferry.errors import CopiesDiffer, ExitCode, FerryError, PartitionsFailed, count_of, error_named, offsets_of, worst_exit_code
from ferry.ledger.run_report import PartitionFailure
from ferry.verify.comparer import Tally
from ferry.verify.comparison import Difference, DifferenceKind, NotCovered, RangeResult, Side, VerifiedRange, VerifyRange
from ferry.verify.unmatched import Mismatch
from ferry.wire.ranges import Range, Ranges

REPORT_VERSION = 1
# The report counts all differences, and lists at most this many.
DIFFERENCES_LISTED = 1_000
# An error names at most this many.
DIFFERENCES_SAID = 3
# The result of a range counts all differences, and lists at most this many.
DIFFERENCES_A_RANGE = 100
COMPACTION = "compaction: "


@dataclass(frozen=True)
class VerifyReport:
    flow: str
    run_id: str
    started: str
    finished: str
    ranges: int = 0  # how many ranges were compared; `resumed`: how many of them an earlier try compared
    resumed: int = 0
    records: int = 0
    bytes: int = 0  # of the source's batches, as stored
    bytes_as_stored: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    verified: tuple[VerifiedRange, ...] = ()  # the ranges that were read to their end on both sides, in order of the target's log
    differences: tuple[Difference, ...] = ()
    not_covered: tuple[NotCovered, ...] = ()
    failed: tuple[PartitionFailure, ...] = ()

    @property
    def differences_total(self) -> int:
        return sum(self.counts.values())

    @property
    def equal(self) -> bool:
        return not self.differences_total and not self.failed

    @property
    def exit_code(self) -> ExitCode:
        codes = {error_named(failure.error).exit_code for failure in self.failed} & {ExitCode.UNREACHABLE}
        return worst_exit_code([*codes, *(problem.exit_code for problem in self.problems())])

    def problems(self) -> list[FerryError]:
        """The errors of the report; differences come first."""
        found: list[FerryError] = []
        if self.differences_total:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.counts.items()))
            first = "; ".join(said(entry) for entry in self.differences[:DIFFERENCES_SAID])
            found.append(CopiesDiffer(f"flow {self.flow}: {count_of(self.differences_total, 'difference')} ({kinds}): {first}"))
        if self.failed:
            named = "; ".join(str(failure) for failure in self.failed)
            found.append(PartitionsFailed(f"flow {self.flow}: {count_of(len(self.failed), 'partition')} could not be compared: {named}"))
        return found

    def raise_for_outcome(self) -> None:
        for problem in self.problems():
            raise problem

    def lines(self, listed: int) -> Iterator[str]:
        """What people read about it, with at most `listed` entries of each list. The caller shows its problems."""
        for left in self.not_covered[:listed]:
            yield f"not compared: {left.topic}-{left.partition} {left.side.value} {offsets_of(left.start, left.end)}: {left.reason}"
        yield from _more(len(self.not_covered), listed)
        yield from map(said, self.differences[:listed])
        yield from _more(self.differences_total, listed)
        yield f"{count_of(self.differences_total, 'difference')}, {count_of(len(self.not_covered), 'part')} not compared"
        compared = f"{count_of(self.records, 'record')}, {self.bytes:,} bytes compared in {count_of(self.ranges, 'range')}"
        yield f"{compared}, {self.seconds:.1f} s (CPU {self.cpu_seconds:.1f} s)"
        if self.exit_code is ExitCode.DONE:
            yield "equal" if self.records else "nothing to compare"

    def document(self) -> dict[str, Any]:
        """The JSON document of the contract, of JSON's own types only."""
        fields = json.loads(json.dumps(asdict(self)))
        fields["not_covered"] = [entry.document() for entry in self.not_covered]
        told = {"equal": self.equal, "differences_total": self.differences_total, "exit_code": int(self.exit_code)}
        return {"version": REPORT_VERSION, **fields, **told}


def _more(count: int, listed: int) -> list[str]:
    return [f"… and {count - listed:,} more"] if count > listed else []


def said(difference: Difference) -> str:
    """One difference as a line for people."""
    up, down = difference.upstream_offset, difference.downstream_offset
    places = [f"upstream {up}"] if up >= 0 else []
    places += [f"downstream {down}"] if down >= 0 else []
    where = f"{difference.topic}-{difference.partition} {', '.join(places)}"
    return f"{where}: {difference.kind.value}: {difference.detail}"


def summed(results: Iterable[RangeResult], not_covered: Iterable[NotCovered], failed: Iterable[PartitionFailure]) -> dict[str, Any]:
    """The fields of a report that are sums over results. `not_covered`, `failed`: those that were known before the comparison."""
    found = sorted(results, key=lambda result: (result.topic, result.partition))
    counts: Counter[str] = Counter()
    for result in found:
        counts.update(result.counts)
    differences = sorted(
        (entry for result in found for entry in result.differences),
        key=lambda entry: (entry.topic, entry.partition, max(entry.downstream_offset, -1), entry.upstream_offset),
    )
    place = attrgetter("topic", "partition", "downstream")
    return {
        "ranges": sum(result.problem is None for result in found),
        "records": sum(result.records for result in found),
        "bytes": sum(result.bytes for result in found),
        "bytes_as_stored": sum(result.bytes_as_stored for result in found),
        "counts": dict(counts),
        "verified": tuple(sorted((entry.verified for entry in found if entry.verified), key=place)),
        "differences": tuple(differences[:DIFFERENCES_LISTED]),
        "not_covered": (*not_covered, *(entry for result in found for entry in result.not_covered)),
        "failed": (*failed, *dict.fromkeys(PartitionFailure(one.topic, one.partition, *one.problem) for one in found if one.problem)),
    }


def result_of(
    wanted: VerifyRange, compared: VerifyRange | None, tally: Tally, size: int, expired: Sequence[NotCovered] = ()
) -> RangeResult:
    """The result of a range that was read to its end (pure). `compared`: what both logs still held of it. `size`: bytes of the source."""
    counts = Counter(finding.kind for finding in tally.findings) + tally.beyond
    remote = (wanted.topic, wanted.partition, wanted.remote_topic)
    verified = None
    if compared is not None:
        hulls, parts = (_hull(tally.upstream), _hull(tally.downstream)), (len(tally.upstream), len(tally.downstream))
        digests = (tally.source_digest, tally.target_digest)
        verified = VerifiedRange(*remote, *hulls, *parts, tally.records, counts.total(), compared.digest, *digests)
    compacted = [
        NotCovered(wanted.topic, wanted.partition, *wanted.upstream, f"{COMPACTION}{count_of(count, 'record')} on the {side.value} only")
        for side, count in ((Side.SOURCE, tally.only_source), (Side.TARGET, tally.only_target))
        if count
    ]
    return RangeResult(
        key=wanted.identity,
        topic=wanted.topic,
        partition=wanted.partition,
        records=tally.records,
        bytes=size,
        bytes_as_stored=tally.as_stored,
        counts={kind.value: count for kind, count in counts.items()},
        differences=tuple(
            Difference(*remote, finding.upstream, finding.downstream, finding.kind, _detail(finding))
            for finding in tally.findings[:DIFFERENCES_A_RANGE]
        ),
        not_covered=(*expired, *compacted),
        only_target=tally.only_target,
        verified=verified,
    )


def _hull(parts: Ranges) -> Range:
    return (parts[0][0], parts[-1][1]) if parts else (0, 0)


def _detail(finding: Mismatch) -> str:
    match finding.kind:
        case DifferenceKind.MISSING | DifferenceKind.DISPLACED if finding.named >= 0:
            return f"the ledger says that it is at downstream offset {finding.named}"
        case DifferenceKind.MISSING:
            return "it is before the flow's position, but in no run of the ledger"
        case DifferenceKind.EXTRA:
            return "no record of the source explains it"
        case DifferenceKind.ALTERED:
            return ", ".join(finding.fields)
        case DifferenceKind.REORDERED if finding.named >= 0:
            return f"it belongs at downstream offset {finding.named}"
    return "it is not where it belongs"
