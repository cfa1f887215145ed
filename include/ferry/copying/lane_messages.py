"""What travels between the driver of a copy and its lanes. Everything is frozen and can be pickled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.loop_guard import LedgerRead
from ferry.errors import FerryError, RetryRule
from ferry.ledger.receipts import Receipt, ReceiptKind, encode_receipt, split_receipt
from ferry.ledger.state import Head, encode_state
from ferry.ledger.topic_ids import PartitionPair
from ferry.wire.batch import DEFAULT_BATCH_LIMIT
from ferry.wire.ranges import Ranges, size, within
from ferry.wire.schema_ids import SchemaId

# The weight of a partition even if it has few records: requests, a receipt, a head and a position.
PARTITION_WEIGHT = 64 << 10
# The end of a segment to which a following run adds all records that arrive.
OPEN_END = 1 << 62


@dataclass(frozen=True)
class Segment:
    """Upstream offsets `[start, end)` to copy. Kind `copied`: in order, from the position on; `backfilled`: below the position."""

    kind: ReceiptKind
    start: int
    end: int


@dataclass(frozen=True)
class PartitionTask(PartitionPair):
    """One source partition of a lane."""

    remote_topic_id: UUID
    position: int  # the next upstream offset to copy in order, as the driver read it after fencing
    segments: tuple[Segment, ...]
    last_epoch: int = -1  # the source leader epoch with which to fetch the position (-1: not known)
    seed: Receipt | None = None  # a receipt for the partition's first transaction
    foreign: tuple[Receipt, ...] = ()  # receipts of records that another replicator wrote, for the same transaction
    batch_limit: int = DEFAULT_BATCH_LIMIT  # the remote topic's max.message.bytes
    excluded: Ranges = ()  # source offsets that the flow in the other direction wrote
    replaces_offset: bool = False  # an operator's seed replaces the group's offset, whatever it is
    series: str = ""  # of the receipts to write (Receipt.series)
    record_bytes: int = 0  # Head.record_bytes until records are copied
    offset_bytes: float = 0.0  # about how many bytes each offset has that is left to copy
    follows: bool = False  # after its segments, records that arrive later are copied too
    other_ledger: LedgerRead | None = None  # if it follows: how far `excluded` is known (None: no other flow can write the partition)
    flushed: bool = False  # segments end with a flush, not with a transaction
    # The end of the remote records that receipts explain, if later ones may have been acknowledged without one (-1: there can be none).
    explained_end: int = -1
    unopened: bool = False  # no head has `explained_end` yet, so one is written before any record

    @property
    def planned_end(self) -> int:
        """The end up to which the run was planned."""
        return max([self.position, *(segment.end for segment in self.segments if segment.kind is ReceiptKind.COPIED)])

    @property
    def open_segments(self) -> tuple[Segment, ...]:
        """The segments, and after the last one of those that are copied in order, what arrives."""
        in_order = [segment for segment in self.segments if segment.kind == ReceiptKind.COPIED]
        others = tuple(segment for segment in self.segments if segment.kind != ReceiptKind.COPIED)
        last = in_order[-1] if in_order else Segment(ReceiptKind.COPIED, self.position, self.position)
        return (*others, *in_order[:-1], replace(last, end=OPEN_END))

    @property
    def offsets(self) -> int:
        """Offsets left to copy."""
        return sum(segment.end - segment.start for segment in self.segments)

    @property
    def weight(self) -> int:
        """About how many bytes of records take as long as this partition."""
        excluded = sum(size(within(self.excluded, segment.start, segment.end)) for segment in self.segments)
        return PARTITION_WEIGHT + round((self.offsets - excluded) * self.offset_bytes)

    @property
    def declared(self) -> tuple[Receipt, ...]:
        """Receipts that copy no records: the seed, and those of other replicators' records."""
        return (*((self.seed,) if self.seed is not None else ()), *self.foreign)


@dataclass(frozen=True)
class LaneTask:
    """One lane's part of a run, with the producer id and epoch by which the driver holds the lane."""

    lane: int
    transactional_id: str
    identity: ProducerIdentity
    partitions: tuple[PartitionTask, ...]
    grows: bool = False  # following: if the lane falls behind, it ends, and more lanes get its partitions
    ids: Mapping[SchemaId, SchemaId] | None = None  # the target's ids of schemas by the source's; None: ids stay as they are

    @property
    def offsets(self) -> int:
        """Offsets left to copy."""
        return sum(part.offsets for part in self.partitions)

    @property
    def weight(self) -> int:
        """About how many bytes of records take as long as this lane. Lanes are spread over Spark tasks by it."""
        return sum(part.weight for part in self.partitions)


@dataclass(frozen=True)
class CopyJob:
    """What all lanes of a run share."""

    flow: Flow
    run_id: str
    ledger_topic_id: str
    ledger_partitions: int
    bytes_per_second: float | None = None  # rate limit for reading, and for writing, of the lanes of one process (None: no limit)
    producers: frozenset[int] = frozenset()  # the producer ids of all lanes that the flow ever had, as the run got them
    follow_until: float | None = None  # lanes follow until this time of the clock in seconds (None: they end with their segments)
    reroute: Mapping[str, int] = field(default_factory=dict)  # numbers of partitions of topics that the message handler may choose

    def receipts(self, receipts: Iterable[Receipt]) -> dict[TopicPartition, list[KeyValue]]:
        """Receipts as records, by partition of the ledger."""
        ledger_topic, found = self.flow.ledger_topic, dict[TopicPartition, list[KeyValue]]()
        for receipt in receipts:
            key = TopicPartition(ledger_topic, receipt.key.share(self.ledger_partitions))
            found.setdefault(key, []).extend(encode_receipt(piece) for piece in split_receipt(receipt))
        return found

    def own_places(self, sources: Iterable[TopicPartition]) -> set[TopicPartition]:
        """The partitions of Ferry's own topics in which receipts and heads of these source partitions are."""
        ledger = {TopicPartition(self.flow.ledger_topic, key.share(self.ledger_partitions)) for key in sources}
        return ledger | {TopicPartition(self.flow.state_topic, 0)} if ledger else ledger

    def heads(self, heads: Iterable[Head]) -> dict[TopicPartition, list[KeyValue]]:
        """Heads as records of the state topic."""
        return {TopicPartition(self.flow.state_topic, 0): [encode_state(head) for head in heads]}


@dataclass(frozen=True)
class Failure:
    """Why a partition or lane stopped: the error's class name, its text, and whether another try may succeed (`passing`)."""

    error: str
    problem: str
    passing: bool
    unreachable: bool = False  # a whole cluster has not answered for the longest time that Ferry waits (ferry.clusters.net.outage)

    @classmethod
    def of(cls, error: FerryError, problem: str = "") -> Self:
        """The failure for an error. Its text is that of the whole error, or `problem`."""
        return cls(type(error).__name__, problem or str(error), passing=error.retry is RetryRule.RETRY)


@dataclass(frozen=True)
class PartitionOutcome:
    """How far a partition was copied: `position` is the committed next upstream offset."""

    topic: str
    partition: int
    position: int
    failure: Failure | None = None


@dataclass(frozen=True)
class LaneResult:
    """How a lane ended. `fenced`: the broker refused its producer id and epoch. `behind`: as of LaneTask.grows."""

    lane: int
    partitions: tuple[PartitionOutcome, ...] = ()
    fenced: bool = False
    failure: Failure | None = None
    cpu_seconds: float = 0.0
    behind: bool = False
