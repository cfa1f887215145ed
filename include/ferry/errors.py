"""Everything that can go wrong, by what the caller can do about it.

One small hierarchy. A class fixes two things: the exit code of the command line (a contract with scripts) and what an orchestrator should
do (`RetryRule`). Errors about one partition never end a run by themselves: they are collected and reported, and the run ends with
`PartitionsFailed`. Messages name what, where and what to change; they never hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any


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
    """Base of all errors that Ferry raises on purpose. `others`: less bad ones of the same run, which stand in its notes too."""

    others: tuple[FerryError, ...] = ()
    next_step = "read the message; run again with FERRY_TRACEBACK=1 if it says too little"
    exit_code = ExitCode.OTHER
    retry = RetryRule.RETRY


class ConfigError(FerryError):
    """A bad configuration file; the message names file, line and key."""

    next_step = "correct the named key in the config file, then look at it with ferry plan"
    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class BrokerTooOld(ConfigError):
    """A cluster's release of Kafka lacks what the flow's correctness stands on; nothing was written."""

    next_step = "upgrade the cluster that the message names: a target must be 2.5 or newer, a source 0.11 or newer"


class ArgumentError(FerryError):
    """A bad argument of a command or a parameter of a run."""

    next_step = "correct the named option or parameter; docs/cli.md lists what each takes"
    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class ClusterUnreachable(FerryError):
    """A cluster does not answer, or not in time."""

    next_step = "check bootstrap.servers, the advertised listeners and the network, then run again"
    exit_code = ExitCode.UNREACHABLE


class TooFewBrokers(ClusterUnreachable):
    """The cluster has too few brokers for a topic's replicas. The topic was not created with fewer: it would keep that number."""

    next_step = "start the brokers that are down, or set the key that the message names, then run again"


class AuthenticationFailed(ClusterUnreachable):
    """A cluster refuses the credentials (SASL) or the certificate (TLS)."""

    next_step = "correct the login or the certificate that the message names; it is not tried again"
    retry = RetryRule.FAIL


class NotAuthorized(ClusterUnreachable):
    """A cluster refuses an operation that the whole run needs; the message names the missing permission."""

    next_step = "grant what the message names; ferry acls prints all rights that the flow needs"
    retry = RetryRule.FAIL


class SparkMissing(ArgumentError):
    """Spark cannot be started as asked (no such connection, master or installation)."""

    next_step = "correct the Spark connection or master, or use --master 'local[2]'"


class NoExecutors(FerryError):
    """A Spark cluster takes the run and gives it nothing to run on."""

    next_step = "start workers of the Spark cluster, free some of it, or run with another --master; then run again: nothing is copied twice"


class UnreadableRecord(FerryError):
    """A record of Ferry's own topics is damaged, or not Ferry's."""

    next_step = "look at the topic with ferry format, find out who else writes there, delete what is not Ferry's"
    retry = RetryRule.FAIL


class NewerFormat(UnreadableRecord):
    """A newer Ferry wrote records that this one does not understand; nothing was written."""

    next_step = "upgrade this Ferry to the release that wrote it"


class ReplicatorActive(FerryError):
    """Another replicator, or the members of a group, are still at work: their positions would be out of date."""

    next_step = "stop what the message names for good, then run again"
    retry = RetryRule.HUMAN


class SourceDataLost(FerryError):
    """Records were gone at the source before they were copied; the ledger holds a `loss` receipt for each range."""

    next_step = "see the ranges with ferry ledger, then ferry ack-loss; run more often or raise the source's retention"
    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class RecordsSkipped(FerryError):
    """The target refused records for good, and `ferry.abort.on.send.failure=false` said to go on; `skipped` receipts name them."""

    next_step = "see offsets and reasons with ferry ledger, correct the reason, then ferry ack-loss"
    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class ListenerFailed(FerryError):
    """An assignment listener raised: its lane did not start, or did not end as it should."""

    next_step = "correct the assignment listener, then run again"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class PartitionsFailed(FerryError):
    """Some partitions or syncs failed while the others were done."""

    next_step = "look up each named error in docs/troubleshooting.md, then run again"
    exit_code = ExitCode.PARTLY_FAILED


class CopiesDiffer(FerryError):
    """A verify found records that are not the same on both sides."""

    next_step = "see each difference with ferry verify, and who else may write to the remote topic"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class GroupFailed(FerryError):
    """One consumer group could not be read or written; the others could."""

    next_step = "run again; if it stays, look at the group with ferry explain"
    exit_code = ExitCode.PARTLY_FAILED


class RecoveryStopped(FerryError):
    """A failover, failback or cut-over stopped before a step that cannot be undone; run again, it goes on there."""

    next_step = "settle what the message names, then run the same command again; docs/failover.md says what each step does"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class ChangeRefused(FerryError):
    """A cluster will not have a topic, config or ACL as asked for; the message holds its reason."""

    next_step = "change the value at the source, or leave it out with config.properties.exclude or topics.exclude"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class LimitsBroken(FerryError):
    """After a run, lag or headroom of a topic is beyond what `ferry.alert.*` allows; what was copied stays.

    `broken` are the limits, as of ferry.monitoring.limits.
    """

    broken: tuple[Any, ...] = ()
    next_step = "see ferry status; run more often, raise ferry.max.rate.mb, or the source's retention, or the limit"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class Superseded(FerryError):
    """A newer run of the same flow took over; this one wrote nothing more."""

    next_step = "nothing: the newer run does the work, unless two schedulers run the same flow"
    exit_code = ExitCode.SUPERSEDED
    retry = RetryRule.FAIL


class PartitionError(FerryError):
    """One partition cannot go on; the others can. `topic` and `partition` are the source's."""

    next_step = "do what the message says for this partition, then run again"
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

    next_step = "set ferry.on.recreate=restart, or exclude the topic"


class SourceTruncated(PartitionError):
    """The source log ends before the position, or its leader epochs diverge from what was copied."""

    next_step = "set ferry.on.recreate=restart, or say where to go on with ferry seed"


class SourceMissing(PartitionError):
    """The source partition vanished while it was copied."""

    next_step = "nothing if the topic was deleted on purpose; else run again"


class TargetRecreated(PartitionError):
    """The remote topic has another topic id than the one the ledger belongs to."""

    next_step = "set ferry.on.target.recreate=restart to copy the topic anew, then run again"


class TargetMissing(PartitionError):
    """The remote topic does not exist, and the target refuses to create it."""

    next_step = "correct what the message names, or create the remote topic by hand, then run again"


class TargetTooNarrow(PartitionError):
    """The remote topic has fewer partitions than the source and could not be grown."""

    next_step = "add partitions to the remote topic, or allow Ferry to alter it, then run again"


class PositionDisagrees(PartitionError):
    """Group offset and head of a partition differ; `ferry seed` settles it."""

    next_step = "find out how far the remote topic reaches, then say it with ferry seed"


class OriginUnclear(PartitionError):
    """Which records of the source partition came from the target is not known: copying them could send them back."""

    next_step = "settle the other flow, then ferry seed --foreign, or set ferry.on.unclear=local"


class BatchRefused(PartitionError):
    """The target refuses a batch for good (too large, timestamp out of range, not authorized, deleted topic)."""

    next_step = "raise the remote topic's limit that the message names, then run again"


class HandlerFailed(PartitionError):
    """The message handler raised, or returned something that is no record, at the first record that was not copied."""

    next_step = "correct the message handler, then run again: it begins with the record that failed"


class BackfillRefused(PartitionError):
    """History cannot be appended after newer records here (compacted remote topic)."""

    next_step = "name the other topics with --topic, or copy this one anew into a fresh remote topic"


class AlreadyClaimed(PartitionError):
    """Another flow writes to this remote topic."""

    next_step = "exclude the topic in one of both flows, or give them different remote names"


class UnreadableBatch(PartitionError):
    """The source returned bytes that are not a valid record batch."""

    next_step = "check the source's disks; to go on behind the batch, take a later position with ferry seed"


class TransactionHangs(PartitionError):
    """A transaction has been open in the source or remote partition for longer than `ferry.open.transaction.warn.ms`, or it is one of the
    flow itself that its coordinator has forgotten.
    """

    next_step = "end the transaction as the message says, then run again"


class LogChanged(PartitionError):
    """A log was truncated, or its topic deleted or created again, while it was verified."""

    next_step = "run the verify again; see with ferry status what became of the topic"


class BatchTooLarge(PartitionError):
    """A batch whose records take more memory than `ferry.memory.mb` leaves for one."""

    next_step = "raise ferry.memory.mb as the message says, then run again"


class PartitionUnavailable(PartitionError):
    """A partition had no leader, or kept failing with a passing error, for longer than the run waits."""

    next_step = "check the brokers, then run again"
    retry = RetryRule.RETRY


# Names that reports carry without a class of their own.
_STEPS_OF_REPORTS = {"RunUnfinished": "run again: nothing is copied twice"}


def next_step_of(name: str) -> str:
    """What to do about an error of this name, as reports carry it."""
    found = globals().get(name)
    known = isinstance(found, type) and issubclass(found, FerryError)
    return _STEPS_OF_REPORTS.get(name) or (found.next_step if known else FerryError.next_step)  # type: ignore[union-attr]
