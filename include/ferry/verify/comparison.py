"""The data that the planner of a verify, its comparers and its report exchange. All classes are frozen and can be pickled."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from ferry.errors import FerryError, PartitionError
from ferry.ledger.receipts import Receipt
from ferry.ledger.topic_ids import PartitionPair, of_source
from ferry.verify.request import DigestKind
from ferry.wire.ranges import Range, Ranges
from ferry.wire.runs import OffsetRun, decode_runs
from ferry.wire.strict_json import read_as


class DifferenceKind(StrEnum):
    """What is wrong with a record.

    `displaced`: its order among the others is right, but the ledger names another offset for it. `undeleted`: the source has deleted its
    key.
    """

    MISSING = "missing"
    EXTRA = "extra"
    ALTERED = "altered"
    REORDERED = "reordered"
    DISPLACED = "displaced"
    UNDELETED = "undeleted"


class Side(StrEnum):
    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True)
class Difference:
    """One record that differs. An offset is -1 if that side has no such record. `detail` is for people, and shows no contents but keys."""

    topic: str
    partition: int
    remote_topic: str
    upstream_offset: int
    downstream_offset: int
    kind: DifferenceKind
    detail: str


@dataclass(frozen=True)
class NotCovered:
    """Offsets `[start, end)` of one side of a partition that were not compared, and why."""

    topic: str
    partition: int
    start: int
    end: int
    reason: str
    side: Side = Side.SOURCE

    def document(self) -> dict[str, Any]:
        fields = {**vars(self), "side": self.side.value}
        return {"from": fields.pop("start"), "until": fields.pop("end"), **fields}

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """The inverse of `document`; errors as of read_as."""
        return read_as(cls, found, names={"start": "from", "end": "until"})


@dataclass(frozen=True)
class PartitionEvidence(PartitionPair):
    """What is known about one source partition and its remote partition, when a verify is planned."""

    source_start: int
    source_end: int  # a last stable offset, like `target_end`; evidence.py says in which order they are read
    target_start: int
    target_end: int
    receipts: tuple[Receipt, ...] = ()  # those with today's remote topic id, also of a source topic that was recreated since
    position: int = -1  # the next upstream offset to copy (-1: nothing was copied)
    excluded: Ranges = ()  # upstream offsets that the flow in the other direction wrote
    local: bool = False  # applications may produce to the remote topic, because topics keep their names
    exactly_once: bool = True  # whether the last run copied so
    since: int | None = None  # upstream bounds of the request: start, and end (exclusive) in `until`
    until: int | None = None

    @property
    def own(self) -> list[Receipt]:
        """The receipts of today's source topic."""
        return of_source(self.receipts, self.topic_ids.source)

    @property
    def narrowed(self) -> bool:
        """Whether the request is about a part of the partition only."""
        return self.since is not None or self.until is not None

    @property
    def wanted(self) -> tuple[int, int]:
        """The requested upstream offsets that the source still has."""
        start = self.source_start if self.since is None else max(self.source_start, self.since)
        return start, max(start, self.source_end if self.until is None else min(self.source_end, self.until))


@dataclass(frozen=True)
class VerifyRange(PartitionPair):
    """A part of one partition that one worker compares."""

    remote_topic_id: UUID
    upstream: Range  # the part of each log that is read: `upstream` of the source's, `downstream` of the target's
    downstream: Range
    coded_runs: bytes  # they say which record became which (ferry.wire.runs)
    claimed: Ranges  # upstream offsets of the runs and between them: every committed record there must be on the target
    tolerated: Ranges = ()  # downstream offsets outside of runs that may hold records (of others, or copies that cannot be compared)
    content: bool = True  # False: a message handler changed the records, so only their presence counts
    weight: int = 0  # the approximate bytes on one side
    digest: DigestKind = DigestKind.STORED  # what the digest of the range covers

    @property
    def runs(self) -> tuple[OffsetRun, ...]:
        """The runs, decoded: increasing on both sides."""
        return decode_runs(self.coded_runs)

    @property
    def identity(self) -> str:
        """Identifies the range over all tries of a verify."""
        # With names, because clusters older than 2.8 have no topic ids.
        names = [self.topic, self.remote_topic]
        parts = [*names, *self.topic_ids, self.partition, self.upstream, self.downstream, self.coded_runs.hex()]
        parts += [self.claimed, self.tolerated, self.content, self.digest]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class VerifiedRange:
    """Offsets `[from, until)` of both logs that were compared as one range, and the digests of their contents."""

    topic: str
    partition: int
    remote_topic: str
    upstream: Range
    downstream: Range
    # How many parts of these offsets were compared: 1 unless offsets between them are left out (not covered, or explained by another
    # receipt).
    upstream_parts: int
    downstream_parts: int
    records: int  # pairs that were compared
    differences: int  # how many there are
    digest: DigestKind
    source_digest: str  # digests: see ferry.verify.digests
    target_digest: str = ""  # empty for `stored`: there the bytes of the target were compared instead


@dataclass(frozen=True)
class RangeResult:
    key: str
    topic: str
    partition: int
    records: int = 0  # pairs that were compared
    bytes: int = 0  # of the source's record batches, as stored
    bytes_as_stored: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # differences by kind, all of them
    differences: tuple[Difference, ...] = ()  # the first ones
    not_covered: tuple[NotCovered, ...] = ()
    verified: VerifiedRange | None = None  # the offsets that were compared. None: nothing was
    problem: tuple[str, str] | None = None  # error class and text if the range could not be read
    cpu_seconds: float = 0.0
    only_target: int = 0  # records that compaction has removed from the source

    @classmethod
    def of_problem(cls, key: str, pair: PartitionPair, problem: FerryError) -> Self:
        """The result of a range that could not be read."""
        text = problem.problem if isinstance(problem, PartitionError) else str(problem)
        return cls(key, *pair.key, problem=(type(problem).__name__, text))

    def document(self) -> dict[str, Any]:
        """The result as a JSON object. It lacks the CPU time of this try, and the problem, because another try compares the range again."""
        fields = asdict(self)
        del fields["problem"], fields["cpu_seconds"]
        return {**fields, "not_covered": [entry.document() for entry in self.not_covered]}

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """The inverse of `document`; errors as of read_as."""
        return read_as(cls, found, optional=("problem", "cpu_seconds"))
