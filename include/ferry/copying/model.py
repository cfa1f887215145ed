"""What travels between the driver of a copy and its lanes. Everything is frozen and can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from ferry.clusters.coordination import ProducerIdentity
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.wire.ranges import Ranges

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True)
class Segment:
    """Upstream offsets `[start, end)` to copy: `copied` in order at the position, or `backfilled` below it."""

    kind: ReceiptKind
    start: int
    end: int


@dataclass(frozen=True)
class PartitionTask:
    """One source partition of a lane.

    `position` is the next upstream offset to copy in order, as the driver read it after fencing. `last_epoch` is the source leader epoch to
    fetch it with (-1 unknown). `seed` and `foreign` (what another replicator wrote) go into the partition's first transaction.
    `batch_limit` is the remote topic's max.message.bytes. `excluded`: source offsets that the flow in the other direction wrote.
    `settles`: an operator's seed overrides whatever the group says. `series`: of the receipts to write (Receipt.series). `record_bytes`: as
    of the head (Head.record_bytes), until records are copied.
    """

    topic: str
    partition: int
    topic_id: UUID
    remote_topic: str
    remote_topic_id: UUID
    position: int
    segments: tuple[Segment, ...]
    last_epoch: int = -1
    seed: Receipt | None = None
    foreign: tuple[Receipt, ...] = ()
    batch_limit: int = 1_048_588
    excluded: Ranges = ()
    settles: bool = False
    series: str = ""
    record_bytes: int = 0

    @property
    def declared(self) -> tuple[Receipt, ...]:
        """Receipts that say something without copying anything."""
        return (*((self.seed,) if self.seed is not None else ()), *self.foreign)

    @property
    def remote(self) -> tuple[str, int]:
        """The remote partition."""
        return self.remote_topic, self.partition


@dataclass(frozen=True)
class LaneTask:
    """One lane's share of a run, with the pair by which the driver holds the lane."""

    lane: int
    transactional_id: str
    identity: ProducerIdentity
    partitions: tuple[PartitionTask, ...]

    @property
    def weight(self) -> int:
        """Offsets to go: what balancing over tasks goes by."""
        return sum(segment.end - segment.start for task in self.partitions for segment in task.segments)


@dataclass(frozen=True)
class CopyJob:
    """What all lanes of a run share. `bytes_per_second`: what lanes that run one after the other may read and write (None: no limit).
    `producers`: the producer ids of all lanes that the flow ever had, as the run took them."""

    flow: Flow
    run_id: str
    group: str
    ledger_topic: str
    ledger_topic_id: str
    ledger_partitions: int
    state_topic: str
    bytes_per_second: float | None = None
    producers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Failure:
    """Why a partition or lane stopped: the error's class name, its text, and whether trying again may help.

    `silent`: a cluster has been waited for as long as anybody waits (ferry.clusters.unreachable).
    """

    error: str
    problem: str
    passing: bool
    silent: bool = False


@dataclass(frozen=True)
class PartitionOutcome:
    """How far a partition came: `position` is the committed next upstream offset."""

    topic: str
    partition: int
    position: int
    failure: Failure | None = None


@dataclass(frozen=True)
class LaneResult:
    """What became of a lane. `identity` is the last pair it held; `fenced` when the broker refused it."""

    lane: int
    identity: ProducerIdentity
    partitions: tuple[PartitionOutcome, ...] = ()
    fenced: bool = False
    failure: Failure | None = None
    cpu_seconds: float = 0.0
