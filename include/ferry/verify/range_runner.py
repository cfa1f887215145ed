"""Compares ranges in this process, one after the other over one pair of connections; used by the command line and by Spark's workers.

Two fetches are in flight while batches are compared, one of each side; what waits is bounded, so is memory. Where retention moves a log's
start, the range is cut and begun again. Results go to the runs topic as they come, so that another try finds them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.clusters.fetching import log_bounds
from ferry.clusters.leaders import Leaders
from ferry.copying.buffer_limits import buffer_limits
from ferry.errors import BatchTooLarge, FerryError, PartitionError, PartitionUnavailable, UnreadableBatch
from ferry.verify.comparer import Comparer, Tally
from ferry.verify.log_reader import LogMoved, LogReader, Place
from ferry.verify.model import NotCovered, RangeResult, VerifyRange
from ferry.verify.outcome import result_of
from ferry.verify.plan import within_logs
from ferry.verify.results_topic import ResultWriter
from ferry.wire.batch import MalformedBatch, OversizedBatch

if TYPE_CHECKING:
    from ferry.config import Flow

# Of one side, before it waits for the other: enough to look ahead in, little enough for a worker.
BACKLOG_BYTES = 16 << 20


@dataclass(frozen=True)
class VerifyJob:
    """What all ranges of a verify share."""

    flow: Flow
    run_id: str


class RangeRunner(Protocol):
    """Compares ranges somewhere. Results come as ranges are finished; a range whose worker died has none."""

    def run(self, job: VerifyJob, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
        """The results of `ranges`, in any order, possibly fewer."""
        ...


class InlineRangeRunner:
    """Compares in this process."""

    def run(self, job: VerifyJob, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
        """The results of all `ranges`, in order; their CPU time is this process's own and not counted apart."""
        return (replace(result, cpu_seconds=0.0) for result in verify_ranges(job, ranges))


def verify_ranges(job: VerifyJob, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
    """The results of `ranges`; what stops one is in its result. ClusterUnreachable and its kin when a cluster cannot be reached at all."""
    from ferry.config import ClientRole  # noqa: PLC0415 - see ferry.copying.lane_runner

    loop = EventLoop()
    source = ClusterConnection(loop, job.flow.source, ClientRole.CONSUMER)
    target = ClusterConnection(loop, job.flow.target, ClientRole.CONSUMER)
    leaders = (
        Leaders(source, {wanted.topic for wanted in ranges}, {wanted.topic: UUID(wanted.source_topic_id) for wanted in ranges}),
        Leaders(
            target, {wanted.remote_topic for wanted in ranges}, {wanted.remote_topic: UUID(wanted.remote_topic_id) for wanted in ranges}
        ),
    )

    async def open_both() -> None:
        for connection, known in zip((source, target), leaders, strict=True):
            await connection.open()
            await known.refresh()

    opened = buffer_limits(job.flow.memory_bytes, None, handled=False).opened
    try:
        loop.run(open_both)
        with ResultWriter(job.flow, job.run_id) as writer:
            for wanted in ranges:
                started = time.process_time()
                result = loop.run(_RangeVerifier(loop, (source, target), leaders, wanted, opened).run)
                result = replace(result, cpu_seconds=time.process_time() - started)
                writer.add(result)
                yield result
    finally:
        source.close()
        target.close()
        loop.close()


class _RangeVerifier:
    """Compares one range. `opened`: bytes that the records of one batch may take when they are decompressed."""

    def __init__(
        self,
        loop: EventLoop,
        connections: tuple[ClusterConnection, ClusterConnection],
        leaders: tuple[Leaders, Leaders],
        wanted: VerifyRange,
        opened: int,
    ) -> None:
        self._loop = loop
        self._connections = connections
        self._leaders = leaders
        self._wanted = wanted
        self._opened = opened

    async def run(self) -> RangeResult:
        """The result, with a problem where the range could not be read to its end."""
        left: VerifyRange | None = self._wanted
        expired: list[NotCovered] = []
        tally, size = Tally(), 0
        try:
            while left is not None:
                try:
                    tally, size = await self._compare(left)
                    break
                except LogMoved:
                    left, lost = within_logs(left, *await self._log_starts())
                    expired += lost
        except (RequestNotSent, RequestLost) as problem:
            return self._stopped(PartitionUnavailable, f"neither log told where it starts: {problem}")
        except OversizedBatch as problem:
            return self._stopped(BatchTooLarge, f"{problem}; raise ferry.memory.mb")
        except MalformedBatch as problem:
            return self._stopped(UnreadableBatch, str(problem))
        except FerryError as problem:
            return self._stopped(type(problem), problem.problem if isinstance(problem, PartitionError) else str(problem))
        return result_of(self._wanted, left, tally, size, expired)

    def _stopped(self, kind: type[FerryError], text: str) -> RangeResult:
        return RangeResult(self._wanted.key, self._wanted.topic, self._wanted.partition, problem=(kind.__name__, text))

    async def _compare(self, wanted: VerifyRange) -> tuple[Tally, int]:
        source, target = self._places()
        comparer = Comparer(wanted, (source.cluster, target.cluster), self._opened)
        here = LogReader(self._loop, self._connections[0], self._leaders[0], source, comparer.source.wanted)
        there = LogReader(self._loop, self._connections[1], self._leaders[1], target, comparer.target.wanted)
        sides = ((here, comparer.source), (there, comparer.target))
        size = 0
        while not (here.done and there.done):
            for reader, side in sides:
                if side.backlog < BACKLOG_BYTES:
                    reader.request()
            comparer.advance()
            waiting = [(side.backlog, index) for index, (reader, side) in enumerate(sides) if reader.in_flight]
            if not waiting:
                if all(reader.done or side.backlog >= BACKLOG_BYTES for reader, side in sides):
                    raise RuntimeError(f"{wanted.topic}-{wanted.partition}: the comparison of {wanted.upstream} stands still")
                continue
            reader, side = sides[min(waiting)[1]]
            batches = await reader.receive()
            for batch in batches:
                side.add(batch)
            side.done = reader.done
            if reader is here:
                size += sum(len(batch.view) for batch in batches)
        comparer.source.done = comparer.target.done = True
        return comparer.finish(), size

    def _places(self) -> tuple[Place, Place]:
        wanted = self._wanted
        source, target = self._connections
        return (
            Place(wanted.topic, wanted.partition, UUID(wanted.source_topic_id), source.alias),
            Place(wanted.remote_topic, wanted.partition, UUID(wanted.remote_topic_id), target.alias),
        )

    async def _log_starts(self) -> tuple[int, int]:
        wanted = self._wanted
        source, _ = await log_bounds(self._connections[0], self._leaders[0], wanted.topic, wanted.partition)
        target, _ = await log_bounds(self._connections[1], self._leaders[1], wanted.remote_topic, wanted.partition)
        return source, target
