"""Compares ranges in this process, one after the other over one pair of connections. The command line and Spark's workers use it.

While batches are compared, one fetch of each side is in flight. Waiting batches are bounded, and so is memory. If retention moves the start
of a log, the range is shortened and compared again. Each result goes to the runs topic at once, so another try finds it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ferry import clock
from ferry.clusters.logs.fetching import log_bounds
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole
from ferry.copying.buffer_limits import buffer_limits
from ferry.errors import BatchTooLarge, FerryError, PartitionUnavailable, UnreadableBatch
from ferry.ledger.open_flow import OpenFlow
from ferry.verify.comparer import Comparer, Tally
from ferry.verify.comparison import NotCovered, RangeResult, VerifyRange
from ferry.verify.log_reader import LogMoved, LogReader
from ferry.verify.results_topic import ResultWriter
from ferry.verify.verify_plan import within_logs
from ferry.verify.verify_report import result_of
from ferry.wire.batch import MalformedBatch, OversizedBatch

# One side waits for the other when it has this many bytes: enough to look ahead, and not too much for a worker.
BACKLOG_BYTES = 16 << 20


# Compares ranges of a run id, in this process or elsewhere. Results come when their ranges are done, in any order. A range whose worker
# died has none.
CompareRanges = Callable[[OpenFlow, str, Sequence[VerifyRange]], Iterator[RangeResult]]


def verify_inline(opened: OpenFlow, run_id: str, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
    """The results of all `ranges`, in order. Their CPU time is 0, because the caller counts this process's."""
    return (replace(result, cpu_seconds=0.0) for result in verify_ranges(opened, run_id, ranges))


def verify_ranges(opened: OpenFlow, run_id: str, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
    """The results of `ranges`; a result says if its range failed. ClusterUnreachable and the like when a cluster cannot be reached."""
    limit = buffer_limits(opened.flow.memory_bytes, None, handled=False).opened
    with opened.source.connected(ClientRole.CONSUMER) as here, opened.target.connected(ClientRole.CONSUMER) as there:
        ids = {wanted.topic: wanted.topic_id for wanted in ranges}
        remote_ids = {wanted.remote_topic: wanted.remote_topic_id for wanted in ranges}
        leaders = (Leaders(here.connection, ids, ids), Leaders(there.connection, remote_ids, remote_ids))
        for known in leaders:
            here.loop.run(known.refresh)
        with ResultWriter(opened, run_id) as writer:
            for wanted in ranges:
                started = clock.process_time()
                result = here.loop.run(_RangeVerifier((here.connection, there.connection), leaders, wanted, limit).run)
                result = replace(result, cpu_seconds=clock.process_time() - started)
                writer.add(result)
                yield result


@dataclass(frozen=True)
class _RangeVerifier:
    """Compares one range. `opened`: the limit of its Comparer."""

    connections: tuple[ClusterConnection, ClusterConnection]
    leaders: tuple[Leaders, Leaders]
    wanted: VerifyRange
    opened: int

    async def run(self) -> RangeResult:
        """The result, with a problem if the range could not be read to its end."""
        left: VerifyRange | None = self.wanted
        expired: list[NotCovered] = []
        tally, size = Tally(), 0
        try:
            while left is not None:
                try:
                    tally, size = await self._compare(left)
                    break
                except LogMoved:
                    here, _ = await log_bounds(self.connections[0], self.leaders[0], *self.wanted.key)
                    there, _ = await log_bounds(self.connections[1], self.leaders[1], *self.wanted.remote)
                    left, lost = within_logs(left, here, there)
                    expired += lost
        except (RequestNotSent, RequestLost) as problem:
            stopped: FerryError = PartitionUnavailable(*self.wanted.key, f"the logs' starts could not be read: {problem}")
        except OversizedBatch as problem:
            stopped = BatchTooLarge(*self.wanted.key, f"{problem}; raise ferry.memory.mb")
        except MalformedBatch as problem:
            stopped = UnreadableBatch(*self.wanted.key, str(problem))
        except FerryError as problem:
            stopped = problem
        else:
            return result_of(self.wanted, left, tally, size, expired)
        return RangeResult.of_problem(self.wanted.identity, self.wanted, stopped)

    async def _compare(self, wanted: VerifyRange) -> tuple[Tally, int]:
        source, target = self.connections
        comparer = Comparer(wanted, (source.alias, target.alias), self.opened)
        here = LogReader(source, self.leaders[0], wanted.key, wanted.topic_id, comparer.source.wanted)
        there = LogReader(target, self.leaders[1], wanted.remote, wanted.remote_topic_id, comparer.target.wanted)
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
