"""Everything that can go wrong, by what the caller can do about it.

One small hierarchy. A class fixes two things: the exit code of the command line (a contract with scripts) and what an orchestrator should
do (`RetryRule`). Errors about one partition never end a run by themselves: they are collected and reported, and the run ends with
`PartitionsFailed`. Messages name what, where and what to change; they never hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    OTHER = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    DATA_LOST = 4
    PARTLY_FAILED = 5
    SUPERSEDED = 6


# Where several hold, the first of these wins.
EXIT_CODE_PRECEDENCE = (
    ExitCode.BAD_INPUT,
    ExitCode.UNREACHABLE,
    ExitCode.SUPERSEDED,
    ExitCode.DATA_LOST,
    ExitCode.PARTLY_FAILED,
    ExitCode.OTHER,
)


def worst_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """The one exit code of a run in which several things happened."""
    seen = set(codes)
    return next((code for code in EXIT_CODE_PRECEDENCE if code in seen), ExitCode.DONE)


class RetryRule(Enum):
    """What an orchestrator should do with a failed task."""

    RETRY = "retry"  # the same call may succeed later
    FAIL = "fail"  # the same call fails again: fix the input
    HUMAN = "human"  # nothing to repeat: a person must read and decide


class FerryError(Exception):
    """Base of all errors that Ferry raises on purpose."""

    exit_code = ExitCode.OTHER
    retry = RetryRule.RETRY


class ConfigError(FerryError):
    """A bad configuration file; the message names file, line and key."""

    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class ArgumentError(FerryError):
    """A bad argument of a command or a parameter of a run."""

    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class ClusterUnreachable(FerryError):
    """A cluster does not answer, or not in time."""

    exit_code = ExitCode.UNREACHABLE


class AuthenticationFailed(ClusterUnreachable):
    """A cluster refuses the credentials (SASL) or the certificate (TLS)."""

    retry = RetryRule.FAIL


class NotAuthorized(ClusterUnreachable):
    """A cluster refuses an operation that the whole run needs; the message names the missing permission."""

    retry = RetryRule.FAIL


class SparkMissing(ArgumentError):
    """Spark cannot be started as asked (no such connection, master or installation)."""


class UnreadableRecord(FerryError):
    """A record of Ferry's own topics is damaged, or not Ferry's."""

    retry = RetryRule.FAIL


class NewerFormat(UnreadableRecord):
    """A newer Ferry wrote records that this one does not understand; nothing was written."""


class ReplicatorActive(FerryError):
    """Another replicator, or the members of a group, are still at work: their positions would be out of date."""

    retry = RetryRule.HUMAN


class SourceDataLost(FerryError):
    """Records were gone at the source before they were copied; the ledger holds a `loss` receipt for each range."""

    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class RecordsSkipped(FerryError):
    """The target refused records for good, and `ferry.abort.on.send.failure=false` said to go on; `skipped` receipts name them."""

    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class ListenerFailed(FerryError):
    """An assignment listener raised: its lane did not start, or did not end as it should."""

    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class PartitionsFailed(FerryError):
    """Some partitions or syncs failed while the others were done."""

    exit_code = ExitCode.PARTLY_FAILED


class CopiesDiffer(FerryError):
    """A verify found records that are not the same on both sides."""

    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class GroupFailed(FerryError):
    """One consumer group could not be read or written; the others could."""

    exit_code = ExitCode.PARTLY_FAILED


class ChangeRefused(FerryError):
    """A cluster will not have a topic, config or ACL as asked for; the message holds its reason."""

    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class Superseded(FerryError):
    """A newer run of the same flow took over; this one wrote nothing more."""

    exit_code = ExitCode.SUPERSEDED
    retry = RetryRule.FAIL


class PartitionError(FerryError):
    """One partition cannot go on; the others can. `topic` and `partition` are the source's."""

    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN

    def __init__(self, topic: str, partition: int, problem: str) -> None:
        super().__init__(topic, partition, problem)
        self.topic = topic
        self.partition = partition
        self.problem = problem

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.topic}-{self.partition}: {self.problem}"


class SourceRecreated(PartitionError):
    """The source topic has another topic id than the one the position belongs to."""


class SourceTruncated(PartitionError):
    """The source log ends before the position, or its leader epochs diverge from what was copied."""


class SourceMissing(PartitionError):
    """The source partition vanished while it was copied."""


class TargetRecreated(PartitionError):
    """The remote topic has another topic id than the one the ledger belongs to."""


class TargetTooNarrow(PartitionError):
    """The remote topic has fewer partitions than the source and could not be grown."""


class PositionDisagrees(PartitionError):
    """Group offset and head of a partition differ; `ferry seed` settles it."""


class OriginUnclear(PartitionError):
    """Which records of the source partition came from the target is not known: copying them could send them back."""


class BatchRefused(PartitionError):
    """The target refuses a batch for good (too large, timestamp out of range, not authorized, deleted topic)."""


class HandlerFailed(PartitionError):
    """The message handler raised, or returned something that is no record, at the first record that was not copied."""


class BackfillRefused(PartitionError):
    """History cannot be appended after newer records here (compacted remote topic)."""


class AlreadyClaimed(PartitionError):
    """Another flow writes to this remote topic."""


class UnreadableBatch(PartitionError):
    """The source returned bytes that are not a valid record batch."""


class TransactionHangs(PartitionError):
    """A transaction has been open in the source or remote partition for longer than `ferry.open.transaction.warn.ms`, or it is one of the
    flow itself that its coordinator has forgotten.
    """


class LogChanged(PartitionError):
    """A log was truncated, or its topic deleted or created again, while it was verified."""


class BatchTooLarge(PartitionError):
    """A batch whose records take more memory than `ferry.memory.mb` leaves for one."""


class PartitionUnavailable(PartitionError):
    """A partition had no leader, or kept failing with a passing error, for longer than the run waits."""

    retry = RetryRule.RETRY
