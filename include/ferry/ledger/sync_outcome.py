"""The outcome of a sync: what it changed, left out, or failed to do. Reports, the CLI and Airflow show all syncs in this form."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from ferry.errors import ExitCode, FerryError, PartitionsFailed, RetryRule, error_named, worst_exit_code
from ferry.ledger.run_report import Skipped

# Lists are cut after this many entries, so that a record of the runs topic and an XCom stay small. Counts are of all entries.
LISTED = 200
NOT_DUE = "done "  # how `left_out` begins if the sync was done too short a time ago


@dataclass(frozen=True)
class Change:
    """One thing that was written, or would be in a dry run."""

    what: str  # as an operator would name it: "topic A.orders", "group billing"
    action: str  # a verb: create, grow, set, delete, write
    detail: str = ""  # from what to what: "retention.ms: 1000 -> 2000"
    reason: str = ""


@dataclass(frozen=True)
class SyncFailure:
    """One thing that could not be written; the others were. `error` is a class name of ferry.errors, `problem` the line for people."""

    what: str
    error: str
    problem: str

    @classmethod
    def of(cls, what: str, problem: FerryError) -> Self:
        return cls(what, type(problem).__name__, str(problem))

    def __str__(self) -> str:
        return f"{self.what}: {self.error}: {self.problem}"


class WholeSyncFailure(SyncFailure):
    """The sync as a whole failed: it could do nothing, or Ferry could not write down that it was done."""


@dataclass(frozen=True)
class Measurement:
    """One number that Ferry measured, to send as a metric. `counter`: numbers of several runs add up, otherwise the newest counts."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)
    counter: bool = False


@dataclass(frozen=True)
class SyncOutcome:
    """One sync of one run."""

    sync: str = field(default="", kw_only=True)  # the name of the sync, which `Syncs.carry_out` sets
    changes: tuple[Change, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[SyncFailure, ...] = ()
    notices: tuple[str, ...] = ()  # lines for people
    counts: Mapping[str, int] = field(default_factory=dict)  # by the name of the things counted
    measurements: tuple[Measurement, ...] = ()
    left_out: str = ""  # why the whole sync was not done (not enabled, not due). Then nothing else is set
    dry_run: bool = False
    seconds: float = 0.0  # wall time

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that only does this sync: that of the failure, or 5 if only a part failed."""
        whole = not self.changes and all(isinstance(failure, WholeSyncFailure) for failure in self.failed)
        return worst_exit_code(error_named(failure.error).exit_code if whole else ExitCode.PARTLY_FAILED for failure in self.failed)

    def raise_for_failures(self) -> None:
        """PartitionsFailed if something failed. Its rule is RETRY if that of at least one failure is."""
        if not self.failed:
            return
        problem = PartitionsFailed(f"{self.sync}: {len(self.failed)} failed: {'; '.join(str(failure) for failure in self.failed)}")
        rules = {error_named(failure.error).retry for failure in self.failed}
        problem.retry = RetryRule.RETRY if RetryRule.RETRY in rules else RetryRule.FAIL
        raise problem

    def document(self, listed: int | None = None) -> dict[str, Any]:
        """The outcome as a JSON object; at most `listed` entries of each list."""
        names = ("changes", "skipped", "failed", "notices", "measurements")
        # Cut first: there may be an entry for every partition of every group.
        fields = asdict(replace(self, **{name: getattr(self, name)[:listed] for name in names}))
        totals = {name: len(getattr(self, name)) for name in ("changes", "skipped", "failed")}
        return {**fields, **{name: list(fields[name]) for name in names}, "counts": {**totals, **self.counts}}
