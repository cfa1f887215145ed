"""The report of a verify, and what its outcome means for the caller."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ferry import errors
from ferry.errors import CopiesDiffer, ExitCode, FerryError, PartitionsFailed, worst_exit_code
from ferry.ledger.run_report import PartitionFailure
from ferry.verify.model import Difference, NotCovered, RangeResult, VerifiedRange, with_offset_names
from ferry.wire.documents import read_as
from ferry.wire.ranges import Range

REPORT_VERSION = 1
# All are counted; so many are named.
DIFFERENCES_LISTED = 1_000
# In an error's line.
DIFFERENCES_SAID = 3


@dataclass(frozen=True)
class VerifyReport:
    """One verify as a whole. `ranges` were compared, `resumed` of them by an earlier try; `bytes` are the source's batches, as stored.

    `verified`: every range that was read to its end on both sides, in order of the target's log.
    """

    flow: str
    run_id: str
    started: str
    finished: str
    ranges: int = 0
    resumed: int = 0
    records: int = 0
    bytes: int = 0
    bytes_as_stored: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    counts: Mapping[str, int] | None = None
    verified: tuple[VerifiedRange, ...] = ()
    differences: tuple[Difference, ...] = ()
    not_covered: tuple[NotCovered, ...] = ()
    failed: tuple[PartitionFailure, ...] = ()

    @property
    def differences_total(self) -> int:
        """How many differences there are, listed or not."""
        return sum((self.counts or {}).values())

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is the same on both sides, and nothing that could be was left out."""
        return not self.differences_total and not self.failed

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command."""
        named = [getattr(errors, failure.error, PartitionsFailed) for failure in self.failed]
        codes = [found.exit_code for found in named if found.exit_code is ExitCode.UNREACHABLE]
        return worst_exit_code([*codes, *(problem.exit_code for problem in self.problems())])

    def problems(self) -> list[FerryError]:
        """What is wrong, as errors; the differences first."""
        found: list[FerryError] = []
        if self.differences_total:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted((self.counts or {}).items()))
            first = "; ".join(said(entry) for entry in self.differences[:DIFFERENCES_SAID])
            found.append(CopiesDiffer(f"flow {self.flow}: {self.differences_total:,} differences ({kinds}): {first}"))
        if self.failed:
            named = "; ".join(str(failure) for failure in self.failed)
            found.append(PartitionsFailed(f"flow {self.flow}: {len(self.failed)} partitions could not be compared: {named}"))
        return found

    def raise_for_outcome(self) -> None:
        """Raise the worst problem, if there is one."""
        for problem in self.problems():
            raise problem

    def document(self) -> dict[str, Any]:
        """The JSON document of the contract, of JSON's own types only."""
        fields = json.loads(json.dumps(asdict(self)))
        fields |= {"counts": dict(self.counts or {}), "not_covered": [entry.document() for entry in self.not_covered]}
        told = {"equal": self.equal, "differences_total": self.differences_total, "exit_code": int(self.exit_code)}
        return {"version": REPORT_VERSION, **fields, **told}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> VerifyReport:
        """The inverse of `document`; errors as of read_as."""
        return read_as(cls, with_offset_names(document))


def said(difference: Difference) -> str:
    """One difference as a line for people."""
    up, down = difference.upstream_offset, difference.downstream_offset
    places = [f"upstream {up}"] if up >= 0 else []
    places += [f"downstream {down}"] if down >= 0 else []
    where = f"{difference.topic}-{difference.partition} {', '.join(places)}"
    return f"{where}: {difference.kind.value}: {difference.detail}"


def summed(results: Iterable[RangeResult]) -> dict[str, Any]:
    """The fields of a report that come from results."""
    found = sorted(results, key=lambda result: (result.topic, result.partition))
    counts: Counter[str] = Counter()
    for result in found:
        counts.update(result.counts)
    differences = sorted(
        (entry for result in found for entry in result.differences),
        key=lambda entry: (entry.topic, entry.partition, max(entry.downstream_offset, -1), entry.upstream_offset),
    )
    return {
        "ranges": sum(result.problem is None for result in found),
        "records": sum(result.records for result in found),
        "bytes": sum(result.bytes for result in found),
        "bytes_as_stored": sum(result.bytes_as_stored for result in found),
        "counts": dict(counts),
        "verified": tuple(sorted((entry.verified for entry in found if entry.verified), key=_place)),
        "differences": tuple(differences[:DIFFERENCES_LISTED]),
        "not_covered": tuple(entry for result in found for entry in result.not_covered),
        "failed": tuple(dict.fromkeys(PartitionFailure(entry.topic, entry.partition, *entry.problem) for entry in found if entry.problem)),
    }


def _place(entry: VerifiedRange) -> tuple[str, int, Range]:
    return entry.topic, entry.partition, entry.downstream
