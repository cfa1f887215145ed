"""The errors of Ferry: one class for each thing that a caller can do about a failure.

A class fixes the exit code of the command line, on which scripts rely, and what an orchestrator should do (`RetryRule`). An error about one
partition does not end a run: the run collects and reports it, copies the other partitions, and ends with `PartitionsFailed`. A message says
what is wrong, where, and what to change. It never holds a secret.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
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

    @classmethod
    def _missing_(cls, _: object) -> "ExitCode":
        """Of a process that ended in another way."""
        return cls.OTHER


# When several codes apply to a run, it ends with the first of these.
EXIT_CODE_PRECEDENCE = (
    ExitCode.BAD_INPUT,
    ExitCode.UNREACHABLE,
    ExitCode.SUPERSEDED,
    ExitCode.DATA_LOST,
    ExitCode.PARTLY_FAILED,
    ExitCode.OTHER,
)


def worst_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    seen = set(codes)
    return next((code for code in EXIT_CODE_PRECEDENCE if code in seen), ExitCode.DONE)


def some_of(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """At most `most` of the names, for a message, and the number of the others."""
    others = len(names) - most
    return between.join(names[:most]) + (f" and {others:,} more" if others > 0 else "")


def count_of(number: int, what: str, several: str = "") -> str:
    """A number of things for people: `1 record`, `2,000 records`. `several`: the plural, if it needs more than an s."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def span(seconds: float) -> str:
    """A duration for people, in the largest unit that fits at least twice: `7 days`, `36 h`, `90 min`, `100 s`; below 1 s `100 ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    units = ((86_400, "days"), (3_600, "h"), (60, "min"))
    size, unit = next((pair for pair in units if seconds >= 2 * pair[0]), (1, "s"))
    return f"{seconds / size:.0f} {unit}"


def time_text(milliseconds: int) -> str:
    """A time in ISO 8601, UTC. A time that no calendar has stays a number: some clients write micro- or nanoseconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def offsets_of(start: int, end: int | None) -> str:
    """Offsets `[start, end)` for people, who read both ends as inclusive: `offset 5`, `offsets 5 to 1,008`. `end` None: not known."""
    if end is None:
        return f"offsets from {start:,} on"
    return f"offset {start:,}" if end <= start + 1 else f"offsets {start:,} to {end - 1:,}"


class RetryRule(Enum):
    RETRY = "retry"  # the same call may succeed later
    FAIL = "fail"  # the same call fails again until somebody corrects the input
    HUMAN = "human"  # a person must read the message and decide


class FerryError(Exception):
    """Base of all errors that Ferry raises on purpose. `others`: less serious errors of the same run; its notes show them too."""

    others: "tuple[FerryError, ...]" = ()
    next_step = "read the message; run again with FERRY_TRACEBACK=1 if it says too little"
    exit_code = ExitCode.OTHER
    retry = RetryRule.RETRY

    @property
    def named(self) -> str:
        """The class and the message, as people see an error."""
        return f"{type(self).__name__}: {self}"


def all_errors(base: type[FerryError] = FerryError) -> Iterator[type[FerryError]]:
    """Every class of error."""
    yield base
    for kind in base.__subclasses__():
        yield from all_errors(kind)


class ConfigError(FerryError):
    """A bad configuration file; the message names file, line and key."""

    next_step = "correct the named key in the config file, then check it with ferry plan"
    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class BrokerTooOld(ConfigError):
    """A cluster's release of Kafka lacks a request that a correct copy needs; Ferry wrote nothing."""

    next_step = "do what the message says; a target must have the requests of Kafka 2.5 or newer, a source those of 0.11 or newer"


class ArgumentError(FerryError):
    """A bad argument of a command or a parameter of a run."""

    next_step = "correct the named option or parameter; docs/cli.md lists what each takes"
    exit_code = ExitCode.BAD_INPUT
    retry = RetryRule.FAIL


class ClusterUnreachable(FerryError):
    """A cluster does not answer, or does not answer in time."""

    next_step = "check that the cluster is up; then bootstrap.servers, the advertised listeners and the network; when it answers, run again"
    exit_code = ExitCode.UNREACHABLE


class TooFewBrokers(ClusterUnreachable):
    """The cluster has too few brokers for a topic's replicas. Ferry did not create the topic with fewer: it would keep that number."""

    next_step = "start the brokers that are down, or set the key that the message names, then run again"


class WriteRefused(ClusterUnreachable):
    """The cluster refuses records for one of Ferry's own topics, or of MirrorMaker 2's."""

    next_step = "resolve what the message names, then run again"


class AuthenticationFailed(ClusterUnreachable):
    """A cluster refuses the credentials (SASL) or the certificate (TLS)."""

    next_step = "correct this cluster's login in Ferry's config (its sasl.* or ssl.* keys; its owner knows the right one), then run again"
    retry = RetryRule.FAIL


class NotAuthorized(ClusterUnreachable):
    """A cluster refuses an operation that the whole run needs; the message names the missing permission."""

    next_step = "grant what the message names, then run again; ferry acls prints all rights that the flow needs"
    retry = RetryRule.FAIL


class RegistryUnreachable(ClusterUnreachable):
    """A schema registry does not answer, does not answer in time, or answers what no schema registry does."""

    next_step = "check that the schema registry is up, then schema.registry.url and the network; when it answers, run again"


class RegistryLoginRefused(AuthenticationFailed):
    """A schema registry refuses the login, or an operation that needs a right."""

    next_step = "correct the keys schema.registry.* of this cluster, or grant on the registry what the message names, then run again"


class SchemasRefused(FerryError):
    """Schemas cannot be copied as they are: they contradict what the target's registry holds, or a registry refuses a change."""

    next_step = "mend what the message names, or set sync.schemas.subjects.exclude or sync.schemas.contexts; then run ferry sync schemas"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class IdsNotKept(SchemasRefused):
    """The target's registry gives schemas other ids or versions than it is asked for, so copied records would mean other schemas."""

    next_step = "use a registry that honours the mode IMPORT, or set sync.schemas.rewrite.ids.topics: docs/schemas.md says more"


class SparkMissing(ArgumentError):
    """Spark cannot be started as asked (no such connection, master or installation)."""

    next_step = "do what the message says; on the command line, --master inline needs no Spark"


class NoExecutors(FerryError):
    """A Spark cluster accepts the run but gives it no executor."""

    next_step = "start Spark workers, wait until some are free, or choose another --master; then run again: nothing is copied twice"


class UnreadableRecord(FerryError):
    """A record in one of Ferry's own topics is damaged, or Ferry did not write it."""

    next_step = "look at the record with ferry format, find out who wrote it, and delete only this record: write a tombstone with its key"
    retry = RetryRule.FAIL


class NewerFormat(UnreadableRecord):
    """A newer Ferry wrote records that this release cannot read; this release wrote nothing."""

    next_step = "upgrade this Ferry to the release that wrote the records"


class ReplicatorActive(FerryError):
    """Another replicator or the members of a group still run, so the positions that Ferry read from them could be out of date."""

    next_step = "stop what the message names, do not start it again, then run again"
    retry = RetryRule.HUMAN


class SourceDataLost(FerryError):
    """The source deleted records before they were copied; the ledger holds a `loss` receipt for each range."""

    next_step = (
        "note what is lost (ferry ledger): it cannot be copied any more; run more often, or raise the source's retention, so that it does "
        "not happen again; then end this warning: ferry ack-loss"
    )
    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class RecordsSkipped(FerryError):
    """The target refused records permanently, and Ferry left them out by `ferry.abort.on.send.failure=false`: see `skipped` receipts."""

    next_step = "see offsets and reasons with ferry ledger, remove the cause, then run ferry ack-loss"
    exit_code = ExitCode.DATA_LOST
    retry = RetryRule.HUMAN


class ListenerFailed(FerryError):
    """An assignment listener raised an exception: its lane did not start, or did not end as it should."""

    next_step = "correct the assignment listener, then run again"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class PartitionsFailed(FerryError):
    """Some partitions or syncs failed; the others succeeded."""

    next_step = "look up each named error in docs/troubleshooting.md, then run again"
    exit_code = ExitCode.PARTLY_FAILED


class CopiesDiffer(FerryError):
    """A verify found records that differ between source and target."""

    next_step = "see each difference with ferry verify, and find out who else writes to the remote topic"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class GroupFailed(FerryError):
    """Ferry could not read or write the offsets of one consumer group; the other groups succeeded."""

    next_step = "do what the message says, or run again; if the error stays, look at the group with ferry explain"
    exit_code = ExitCode.PARTLY_FAILED


class RecoveryStopped(FerryError):
    """A failover, failback or cut-over stopped before a step that cannot be undone; the next run continues with that step."""

    next_step = "resolve what the message names, then run the same command again; docs/failover.md says what each step does"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class ChangeRefused(FerryError):
    """A cluster refuses to create or change a topic, config or ACL as asked; the message holds its reason."""

    next_step = "change it at the source, or leave it out with config.properties.exclude, topics.exclude or sync.topic.acls.enabled=false"
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class LimitsBroken(FerryError):
    """After a run, the lag or headroom of a topic is beyond a limit of `ferry.alert.*`. The run itself succeeded."""

    broken: tuple[Any, ...] = ()  # the limits, as ferry.monitoring.limits gives them
    next_step = (
        "start a run now; if the flow stays behind, run more often, or raise ferry.max.rate.mb if it is set; "
        "if this lag is acceptable, raise the limit"
    )
    exit_code = ExitCode.PARTLY_FAILED
    retry = RetryRule.HUMAN


class Superseded(FerryError):
    """A newer run of the same flow took over; this run wrote nothing more."""

    next_step = (
        "nothing if a newer run goes on: it does the work. After a command, start a run. If two schedulers run the flow, stop one of them"
    )
    exit_code = ExitCode.SUPERSEDED
    retry = RetryRule.FAIL


class FenceLost(FerryError):
    """This process can no longer write under a transactional id of the flow, although nobody else has taken the id."""

    next_step = "run again: nothing is copied twice"


class PartitionError(FerryError):
    """One partition cannot be copied further; the others can. `topic` and `partition` are the source's."""

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
    """The source topic has another topic id than the topic that was copied: it was deleted and created again."""

    next_step = "set ferry.on.recreate=restart, or exclude the topic"


class SourceTruncated(PartitionError):
    """The source log ends before the position, or its leader epochs differ from those of the records that were copied."""

    next_step = "set ferry.on.recreate=restart, or set the position with ferry seed"


class SourceMissing(PartitionError):
    """The source partition was deleted while it was copied."""

    next_step = "nothing if somebody deleted the topic on purpose; otherwise run again"


class TargetRecreated(PartitionError):
    """The remote topic has another topic id than the one in the ledger: it was deleted and created again."""

    next_step = "set ferry.on.target.recreate=restart, then run again: Ferry copies these topics again, from the first record still there"


class TargetMissing(PartitionError):
    """The remote topic does not exist, and the target refuses to create it."""

    next_step = "correct what the message names, or create the remote topic by hand, then run again"


class TargetTooNarrow(PartitionError):
    """The remote topic has fewer partitions than the source topic, and Ferry could not add the missing ones."""

    next_step = "add partitions to the remote topic, or allow Ferry to alter it, then run again"


class PositionDisagrees(PartitionError):
    """The position of a partition in the group and the one in its head differ; `ferry seed` sets both."""

    next_step = "find out up to which source offset the remote topic holds records, then set that position with ferry seed"


class OriginUnclear(PartitionError):
    """Ferry does not know which records of the source partition came from the target. Copying those would send them back."""

    next_step = "correct the flow in the other direction, then run ferry seed --foreign, or set ferry.on.unclear=local"


class BatchRefused(PartitionError):
    """The target refuses a batch permanently: it is too large, a timestamp is out of range, a right is missing, or the topic is gone."""

    next_step = "change on the target what the message of the partition names, then run again"


class HandlerFailed(PartitionError):
    """The message handler raised an exception or returned something other than records. The partition stops before that record."""

    next_step = "correct the message handler, then run again: the run begins with the record that failed"


class SchemaIdUnknown(PartitionError):
    """A record has an id of a schema that no sync of schemas has found, so Ferry cannot rewrite it. The partition stops before it."""

    next_step = "look whether the source's registry has the id, and whether sync.schemas.subjects matches its subject; then run again"


class BackfillRefused(PartitionError):
    """A backfill would append old records after newer ones, and the remote topic is compacted: it would keep the old ones."""

    next_step = "name the other topics with --topic, or copy this topic into a new remote topic"


class AlreadyClaimed(PartitionError):
    """Another flow writes to this remote topic."""

    next_step = "exclude the topic in one of the two flows, or let them use different remote names"


class UnreadableBatch(PartitionError):
    """The source returned bytes that are not a valid record batch."""

    next_step = "check the source's disks; to skip the batch, set a later position with ferry seed"


class TransactionHangs(PartitionError):
    """A transaction is open for longer than `ferry.open.transaction.warn.ms`, or the flow began it and its coordinator does not know it."""

    next_step = "wait until the application ends the transaction, or end it as the message says; then run again"


class LogChanged(PartitionError):
    """A log was truncated, or its topic was deleted or created again, during a verify."""

    next_step = "check the topic with ferry status, then run the verify again"


class BatchTooLarge(PartitionError):
    """The records of one batch need more memory than `ferry.memory.mb` allows for a batch."""

    next_step = "raise ferry.memory.mb as the message says, then run again"


class PartitionUnavailable(PartitionError):
    """A partition had no leader, or kept failing with a temporary error, for longer than the run waits."""

    next_step = "check the brokers, then run again"
    retry = RetryRule.RETRY


def is_error(name: str) -> bool:
    """Whether an error of this module has this name."""
    found = globals().get(name)
    return isinstance(found, type) and issubclass(found, FerryError)


def error_named(name: str) -> type[FerryError]:
    """The class of this module that a report names; PartitionsFailed if the module has none of this name."""
    return globals()[name] if is_error(name) else PartitionsFailed
