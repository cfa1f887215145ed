"""The report of one run, with its exit code and errors.

It is made of the run's receipts in the ledger and its results in the runs topic, so it is the same after a kill. `document()` is the JSON
of `ferry run --json`, `--report` and the XCom.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from ferry import clock
from ferry.errors import (
    ExitCode,
    FerryError,
    PartitionError,
    PartitionsFailed,
    RecordsSkipped,
    Superseded,
    count_of,
    error_named,
    offsets_of,
    worst_exit_code,
)
from ferry.ledger.counters import ZERO, Counters
from ferry.ledger.lost_records import data_lost
from ferry.ledger.receipts import Receipt
from ferry.wire.strict_json import read_as

REPORT_VERSION = 1


@dataclass(frozen=True)
class PartitionReport:
    """What a run copied of one source partition: within `[upstream_start, upstream_end)`."""

    topic: str
    partition: int
    remote_topic: str
    upstream_start: int
    upstream_end: int
    counters: Counters = ZERO
    last_record_age_ms: int | None = None  # of the youngest record in the last transaction; None: no record has a timestamp
    last_replication_latency_ms: int | None = None  # likewise


# Why records are lost; {} stands for the start of the source's log.
EXPIRED = "deleted at the source before it was copied: its log starts at {}"


@dataclass(frozen=True)
class LossReport:
    """Records `[upstream_start, upstream_end)` that are not on the target: `kind` is `loss` if the source had dropped them before they were
    copied, `skipped` if the target refused them."""

    topic: str
    partition: int
    upstream_start: int
    upstream_end: int
    reason: str
    kind: str = "loss"

    @property
    def where(self) -> str:
        return f"{self.topic}-{self.partition} {offsets_of(self.upstream_start, self.upstream_end)}"

    @property
    def records(self) -> int:
        """Offsets, so control records count too."""
        return self.upstream_end - self.upstream_start


@dataclass(frozen=True)
class RepeatedReport:
    """Offsets `[downstream_start, downstream_end)` of a remote partition with records that the run copied once more.

    Without transactions, an earlier run or lane had ended after the target acknowledged them, and before it wrote their receipt.
    """

    topic: str
    partition: int
    remote_topic: str
    downstream_start: int
    downstream_end: int

    def __str__(self) -> str:
        return f"{self.remote_topic}-{self.partition} {offsets_of(self.downstream_start, self.downstream_end)}"


@dataclass(frozen=True)
class Skipped:
    """A topic or partition that was left out on purpose, and why."""

    what: str
    reason: str
    expected: bool | None = None  # for a topic that a flow leaves out: whether the config names it, or it was copied before. Otherwise None

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        return read_as(cls, document, optional=("expected",))  # an older release did not write it


@dataclass(frozen=True)
class PartitionFailure:
    """A partition that failed, or a whole topic (partition -1). `error`: the class name. `problem`: the text for people."""

    topic: str
    partition: int
    error: str
    problem: str

    @classmethod
    def of(cls, error: PartitionError) -> Self:
        return cls(error.topic, error.partition, type(error).__name__, error.problem)

    @property
    def where(self) -> str:
        if self.partition >= 0:
            return f"{self.topic}-{self.partition}"
        return f"topic {self.topic}" if self.topic else "the run"

    def __str__(self) -> str:
        return f"{self.where}: {self.error}: {self.problem}"


@dataclass(frozen=True)
class RunReport:
    """One run as a whole. Times are ISO 8601 in UTC, to the ms. Of all tries: `seconds` of wall time, `cpu_seconds` of all processes."""

    flow: str
    run_id: str
    started: str
    finished: str
    bound: str
    partitions: tuple[PartitionReport, ...] = ()
    losses: tuple[LossReport, ...] = ()
    repeated: tuple[RepeatedReport, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[PartitionFailure, ...] = ()
    superseded: str | None = None
    taken_over: str | None = None  # this run followed, and that run took the flow over from it
    syncs: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()  # warnings of its plan
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def records(self) -> int:
        return sum(partition.counters.records for partition in self.partitions)

    @property
    def bytes(self) -> int:
        return sum(partition.counters.bytes for partition in self.partitions)

    @property
    def from_target(self) -> int:
        return sum(partition.counters.from_target for partition in self.partitions)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run; of several, the first in the order of `worst_exit_code`."""
        whole = [error_named(failure.error).exit_code for failure in self.failed if not failure.topic]
        return worst_exit_code([*(problem.exit_code for problem in self.problems()), *whole])

    def problems(self) -> list[FerryError]:
        """The errors of the run, one of each kind, worst first."""
        found: list[FerryError] = []
        run = f"run {self.run_id} of {self.flow}"
        if self.superseded:
            found.append(Superseded(f"{run}: {self.superseded}"))
        expired = [loss for loss in self.losses if loss.kind == "loss"]
        refused = [f"{loss.where}: {loss.reason}" for loss in self.losses if loss.kind != "loss"]
        if expired:
            lost, where = sum(loss.records for loss in expired), "; ".join(loss.where for loss in expired)
            what = f"the source deleted {count_of(lost, 'record')} that Ferry had not copied: {where}"
            found.append(data_lost(f"{run}: {what}", (loss.topic for loss in expired)))
        if refused:
            what = f"{count_of(len(refused), 'range')} of records skipped: {'; '.join(refused)}"
            found.append(RecordsSkipped(f"{run}: {what}"))
        if self.failed:
            found.append(self._partitions_failed(run))
        syncs = [f"{name}: {why_failed(name, failure)}" for name, sync in self.syncs.items() for failure in sync["failed"]]
        if syncs:
            found.append(PartitionsFailed(f"{run}: {count_of(len(syncs), 'failure of syncs', 'failures of syncs')}: {'; '.join(syncs)}"))
        return found

    def _partitions_failed(self, run: str) -> PartitionsFailed:
        """The error about failed partitions, by problem. If all failed with the same error, it has the next step of that error."""
        places: dict[str, list[str]] = {}
        for failure in self.failed:
            places.setdefault(f"{failure.error}: {failure.problem}", []).append(failure.where)
        told = "; ".join(f"{', '.join(where)}: {problem}" for problem, where in places.items())
        found = PartitionsFailed(f"{run}: {len(self.failed)} failed: {told}")
        kinds = {failure.error for failure in self.failed}
        if len(kinds) == 1:
            found.next_step = error_named(kinds.pop()).next_step
        return found

    def raise_for_outcome(self) -> None:
        """Raise the worst error of the run, if there is one, with the others as notes."""
        problems = self.problems()
        if problems:
            problems[0].others = tuple(problems[1:])
            for other in problems[1:]:
                problems[0].add_note(other.named)
            raise problems[0]

    def document(self) -> dict[str, Any]:
        """The JSON document, of JSON's types only (an XCom does not store tuples as lists)."""
        fields = asdict(self)
        for partition in fields["partitions"]:
            partition.update(partition.pop("counters")._asdict())
        fields = json.loads(json.dumps(fields))
        seconds, cpu_seconds = fields.pop("seconds"), fields.pop("cpu_seconds")
        totals = {"records": self.records, "bytes": self.bytes, "seconds": seconds, "cpu_seconds": cpu_seconds}
        return {"version": REPORT_VERSION, **fields, "totals": totals, "exit_code": int(self.exit_code)}


def time_now() -> str:
    """Now, in the form of times in reports."""
    return datetime.fromtimestamp(clock.time(), UTC).isoformat(timespec="milliseconds")


def loss_report(receipt: Receipt) -> LossReport:
    return LossReport(*receipt.key, receipt.upstream_start, receipt.upstream_end, receipt.reason, kind=receipt.kind.value)


def why_failed(sync: str, failure: Mapping[str, str]) -> str:
    """What a sync could not do, and why. A sync that failed as a whole is its own `what`: whoever shows this has named it."""
    problem = failure["problem"]
    return problem if failure["what"] == f"sync {sync}" else f"{failure['what']}: {problem}"
