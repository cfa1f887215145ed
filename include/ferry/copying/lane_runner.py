"""Runs the lanes of a copy: in this process, or in the tasks of a Spark job.

Lanes run one after the other over the same connections: one lane keeps a core busy. If a cluster is far away, they run side by side, each
with connections of its own: a connection takes at most its socket buffers (broker and client: 100 KiB by default) in each round trip, and a
lane waits many round trips for the coordinators of a transaction. Lanes of a run that follows run side by side too.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from kafka.future import Future

from ferry import clock
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop, Wakeup, ended, together
from ferry.clusters.net.frames import Meter
from ferry.clusters.net.shared_connection import Connected
from ferry.config import ClientRole
from ferry.copying.buffer_limits import RateLimiter
from ferry.copying.id_rewriting import with_new_ids
from ferry.copying.lane import Lane
from ferry.copying.lane_messages import CopyJob, Failure, LaneResult, LaneTask, PartitionOutcome
from ferry.copying.signals import StopSignals
from ferry.errors import ClusterUnreachable, FerryError, ListenerFailed, RetryRule
from ferry.handling.calling import described
from ferry.handling.interface import Assignment, AssignmentListener
from ferry.handling.loading import Handle, make_handler, make_listener
from ferry.ledger.open_flow import OpenFlow

More = Callable[[], Sequence[LaneTask]]

# From this round trip on, a connection with default socket buffers carries less than 40 MB/s, and lanes run side by side.
FAR_SECONDS = 0.005
# With 100 ms and buffers of 100 KiB, eight connections fill a link of 100 Mbit/s.
LANES_BESIDE = 8
# Batches of the largest size that fit into each lane's part of the memory.
BATCHES_A_LANE = 16
# A lane that ends wakes the loop that waits for it. Without that the loop looks at this interval.
LOOK_SECONDS = 1.0


class LaneRunner(Protocol):
    @property
    def width(self) -> int:
        """How many lanes are worth having if all of them run at the same time."""
        ...

    def warm_up(self, lanes: int) -> None:
        """Start the processes for this number of lanes, before the lanes are taken from a run that still copies."""

    def has_room(self, lanes: int) -> bool:
        """Whether one more lane than these would begin at once."""
        ...

    def interrupt(self, lane: int) -> None:
        """End a lane that is running now, in any process: it has no result. Only a runner that may have no room needs this."""

    def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """The results of `tasks` and of lanes from `more`, as they finish. A lane whose worker died has no result, or one that says so.

        `more` gives lanes that were lost and may run again. A runner that runs lanes side by side calls it whenever some have ended. If the
        run follows, it also calls it every LOOK_SECONDS. Other runners need not call it: the driver runs lost lanes afterwards.
        """
        ...


class InlineLaneRunner:
    """Runs lanes in this process: for small jobs and tests."""

    width = 1

    def warm_up(self, lanes: int) -> None:
        """This process runs."""

    def has_room(self, lanes: int) -> bool:  # noqa: ARG002 - as of LaneRunner
        """They run beside each other."""
        return True

    def interrupt(self, lane: int) -> None:
        """There is always room."""
        raise NotImplementedError(f"lane {lane} is in this process")

    def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More = list) -> Generator[LaneResult]:
        """The results of all `tasks`, with CPU time 0: the driver counts the CPU time of this process anyway."""
        return (replace(result, cpu_seconds=0.0) for result in run_lanes(opened, job, tasks, more))


def run_lanes(opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More = list) -> Generator[LaneResult]:
    """Run some lanes in this process. Errors that stop a lane are in its result. `more`: of a driver in the same process.

    On a signal lanes abort their open transactions, and the process ends by that signal; the other lanes get no result.
    """
    with StopSignals() as stop_signals, ExitStack() as scope:
        handling = job.flow.handling
        try:
            handle = make_handler(handling.message_handler, handling.message_handler_args) if handling.message_handler else None
            listener = (
                make_listener(handling.assignment_listener, handling.assignment_listener_args) if handling.assignment_listener else None
            )
            source = scope.enter_context(opened.source.connected(ClientRole.CONSUMER))
            target = scope.enter_context(opened.target.connected(ClientRole.PRODUCER))
        except FerryError as problem:
            yield from (LaneResult(task.lane, failure=Failure.of(problem)) for task in tasks)
            return
        limiters = (RateLimiter(job.bytes_per_second, clock.monotonic()), RateLimiter(job.bytes_per_second, clock.monotonic()))
        aside = scope.enter_context(ThreadPoolExecutor(1, thread_name_prefix="ferry-listener"))
        runner = _Lanes(job, source, target, handle, listener, limiters, stop_signals, Meter(), [], [clock.process_time()], aside)
        yield from runner.run(tasks, more)


@dataclass(frozen=True)
class _Lanes:
    """What the lanes of one process share."""

    job: CopyJob
    source: Connected
    target: Connected
    handle: Handle | None
    listener: AssignmentListener | None
    limiters: tuple[RateLimiter, RateLimiter]  # for reading and for writing
    stop_signals: StopSignals
    meter: Meter  # of the data of lanes side by side
    outages: list[Failure]  # of lanes side by side that found a whole cluster down: then the lanes that wait are not tried
    cpu: list[float]  # this process's CPU seconds when lanes ended last
    aside: Executor  # the thread in which the listener is called, because its calls may take long

    def run(self, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """Results as lanes end; none after a signal."""
        running = dict[int, Future]()
        try:
            yield from self._run_all(deque(tasks), running, more)
        finally:
            if running:  # after an error of another lane, or of the caller: otherwise these lanes would go on whenever the loop runs
                self.stop_signals.stop()
                self.source.loop.run(ended, running.values())

    def _run_all(self, waiting: deque[LaneTask], running: dict[int, Future], more: More) -> Generator[LaneResult]:
        """If the run follows, all lanes at the same time, with those that `more` gives."""
        follows, loop, wakeup = self.job.follow_until is not None, self.source.loop, Wakeup(self.source.loop)
        beside = len(waiting)
        if not follows:
            beside = lanes_beside(self.job.flow.memory_bytes, waiting, max(self.source.round_trip(), self.target.round_trip()))
        while waiting or running:
            while waiting and (follows or (len(running) < beside and not self.outages)):
                task = waiting.popleft()
                running[task.lane] = loop.start(self._lane_apart if follows or beside > 1 else self._lane, task, beside)
                running[task.lane].add_both(lambda _: wakeup.fire())
            if not running:
                yield from (LaneResult(task.lane, failure=self.outages[0]) for task in waiting)
                return
            loop.run(wakeup.wait, LOOK_SECONDS)
            yield from self._ended(running)
            if self.stop_signals.received:
                waiting.clear()
            elif follows:
                waiting.extend(more())

    def _ended(self, running: dict[int, Future]) -> Generator[LaneResult]:
        """The results of lanes that have ended; none after a signal. The first of them has the CPU seconds since the last ones."""
        for lane in [lane for lane, future in running.items() if future.is_done]:
            future = running.pop(lane)
            if future.exception is not None:
                raise future.exception
            if self.stop_signals.received:
                continue  # the others abort their transactions too
            now = clock.process_time()
            cpu_seconds, self.cpu[0] = now - self.cpu[0], now
            yield replace(future.value, cpu_seconds=cpu_seconds)

    async def _lane_apart(self, task: LaneTask, beside: int) -> LaneResult:
        """Run a lane over connections of its own: it may drop them when it recovers."""
        loop, flow = self.source.loop, self.job.flow
        source = ClusterConnection(loop, flow.source, ClientRole.CONSUMER, self.meter)
        target = ClusterConnection(loop, flow.target, ClientRole.PRODUCER)
        try:
            await together([loop.start(connection.open) for connection in (source, target)])
            result = await self._run(task, source, target, beside)
            is_down = source.unreachable or target.unreachable or target.without_coordinators
        except FerryError as problem:  # of a connection that does not open
            is_down = problem.retry is RetryRule.RETRY
            result = LaneResult(task.lane, failure=replace(Failure.of(problem), unreachable=is_down))
        finally:
            for connection in (source, target):
                connection.disconnect()  # coroutines that wait for answers learn it now
                connection.close()
        if is_down and result.failure is not None and result.failure.unreachable:
            self.outages.append(result.failure)
        return result

    async def _lane(self, task: LaneTask, beside: int) -> LaneResult:
        try:  # the lane before may have waited for the whole cluster: do not wait a second time
            self.source.connection.require_answers()
            self.target.connection.require_answers()
        except ClusterUnreachable as problem:
            return LaneResult(task.lane, failure=replace(Failure.of(problem), unreachable=True))
        return await self._run(task, self.source.connection, self.target.connection, beside)

    async def _run(self, task: LaneTask, source: ClusterConnection, target: ClusterConnection, beside: int) -> LaneResult:
        reading, writing = self.limiters
        lane = Lane(
            self.source.loop,
            source,
            target,
            self.job,
            task,
            with_new_ids(self.job.flow, task.ids, self.handle),
            reading=reading,
            writing=writing,
            stop_signals=self.stop_signals,
            beside=beside,
            shared_source=self.source.connection,
        )
        return await listened(self.listener, task, lane.run, partial(called_aside, self.source.loop, self.aside))


def is_far(opened: OpenFlow) -> bool:
    """Whether lanes run side by side, as seen from here."""
    with opened.source.connected(ClientRole.CONSUMER) as source, opened.target.connected(ClientRole.PRODUCER) as target:
        return max(source.round_trip(), target.round_trip()) >= FAR_SECONDS


def lanes_beside(memory: int, tasks: Collection[LaneTask], round_trip: float) -> int:
    """How many lanes run side by side (pure). `memory`: bytes for data of a worker. `round_trip`: seconds to the farther cluster."""
    if round_trip < FAR_SECONDS:
        return 1
    largest = max([1, *(part.batch_limit for task in tasks for part in task.partitions)])
    return max(1, min(LANES_BESIDE, len(tasks), memory // (BATCHES_A_LANE * largest)))


async def called_aside(loop: EventLoop, pool: Executor, act: Callable[[Sequence[Assignment]], object], about: Sequence[Assignment]) -> None:
    """Call `act` in a thread of `pool`, while the loop goes on with other lanes. Raises what it raises."""
    called, done = pool.submit(act, about), Future()

    async def settle() -> None:
        done.success(None)

    called.add_done_callback(lambda _: loop.selector.call_soon_threadsafe(settle))
    await done
    called.result()


async def listened(
    listener: AssignmentListener | None,
    task: LaneTask,
    work: Callable[[], Awaitable[LaneResult]],
    call: Callable[[Callable[[Sequence[Assignment]], object], Sequence[Assignment]], Awaitable[None]],
) -> LaneResult:
    """The result of `work`, with the listener's calls before and after it, made by `call`. If the first fails, the lane copies nothing.

    If the second call fails, the lane has failed, unless it failed already; the records that it copied stay.
    """
    if listener is None:
        return await work()
    remote = {(part.topic, part.partition): part.remote_topic for part in task.partitions}
    try:
        assigned = [Assignment(part.topic, part.partition, part.remote_topic, part.position) for part in task.partitions]
        await call(listener.before_starting, assigned)
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        outcomes = tuple(PartitionOutcome(part.topic, part.partition, part.position) for part in task.partitions)
        return LaneResult(task.lane, outcomes, failure=_listener_failure(task, "before_starting", problem))
    result = await work()
    released = [Assignment(part.topic, part.partition, remote[part.topic, part.partition], part.position) for part in result.partitions]
    try:
        await call(listener.before_releasing, released)
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        return result if result.failure else replace(result, failure=_listener_failure(task, "before_releasing", problem))
    return result


def _listener_failure(task: LaneTask, method: str, problem: Exception) -> Failure:
    names = ", ".join(f"{part.topic}-{part.partition}" for part in task.partitions)
    what = f"lane {task.lane} ({names}): the assignment listener's {method}: {described(problem)}"
    return Failure(ListenerFailed.__name__, what, passing=False)
