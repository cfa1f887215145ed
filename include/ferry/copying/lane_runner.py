"""Who runs the lanes of a copy: this process, or the tasks of a Spark job."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Protocol

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.event_loop import EventLoop
from ferry.copying.buffer_limits import RateLimiter
from ferry.copying.lane import Lane
from ferry.copying.model import CopyJob, Failure, LaneResult, LaneTask, PartitionOutcome
from ferry.copying.signals import StopSignals
from ferry.errors import ClusterUnreachable, FerryError, ListenerFailed, RetryRule
from ferry.handling.calling import described
from ferry.handling.interface import Assignment, AssignmentListener
from ferry.handling.loading import make_handler, make_listener

More = Callable[[], Sequence[LaneTask]]


class LaneRunner(Protocol):
    def run(self, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        """The results of `tasks` and of lanes from `more`, as they finish. A lane whose worker died has no result, or one that says so.

        `more` gives lanes that were lost and may run again. A runner that runs lanes side by side calls it whenever some have ended. Other
        runners need not call it: the driver runs lost lanes afterwards.
        """
        ...


class InlineLaneRunner:
    """Runs lanes one after the other in this process: for small jobs and tests."""

    def run(self, job: CopyJob, tasks: Sequence[LaneTask], _: More = list) -> Generator[LaneResult]:
        """The results of all `tasks`, with CPU time 0: the driver counts the CPU time of this process anyway."""
        return (replace(result, cpu_seconds=0.0) for result in run_lanes(job, tasks))


def run_lanes(job: CopyJob, tasks: Sequence[LaneTask]) -> Generator[LaneResult]:
    """Run some lanes over the same two connections. Errors that stop a lane are in its result.

    On a signal it aborts the open transaction, and the process ends by that signal; the other lanes get no result.
    """
    from ferry.config import ClientRole  # noqa: PLC0415 - workers that get no lane do not need it

    loop = EventLoop()
    source = ClusterConnection(loop, job.flow.source, ClientRole.CONSUMER)
    target = ClusterConnection(loop, job.flow.target, ClientRole.PRODUCER)
    with StopSignals() as stop_signals, closing(loop), closing(target), closing(source):
        handling = job.flow.handling
        try:
            handle = make_handler(handling.message_handler, handling.message_handler_args) if handling.message_handler else None
            listener = (
                make_listener(handling.assignment_listener, handling.assignment_listener_args) if handling.assignment_listener else None
            )
            loop.run(source.open)
            loop.run(target.open)
        except FerryError as problem:
            yield from (LaneResult(task.lane, failure=_failure(problem)) for task in tasks)
            return
        reading, writing = (RateLimiter(job.bytes_per_second, time.monotonic()) for _ in range(2))
        for task in tasks:
            try:  # the lane before may have waited for the whole cluster: do not wait a second time
                source.require_answers()
                target.require_answers()
            except ClusterUnreachable as problem:
                yield LaneResult(task.lane, failure=replace(_failure(problem), unreachable=True))
                continue
            started = time.process_time()
            lane = Lane(loop, source, target, job, task, handle, reading=reading, writing=writing, stop_signals=stop_signals)
            result: LaneResult = listened(listener, task, partial(loop.run, lane.run))
            if stop_signals.received:
                return
            yield replace(result, cpu_seconds=time.process_time() - started)


def _failure(problem: FerryError) -> Failure:
    return Failure(type(problem).__name__, str(problem), passing=problem.retry == RetryRule.RETRY)


def listened(listener: AssignmentListener | None, task: LaneTask, work: Callable[[], LaneResult]) -> LaneResult:
    """The result of `work`, with the listener's calls before and after it. If the first call fails, the lane copies nothing.

    If the second call fails, the lane has failed, unless it failed already; the records that it copied stay.
    """
    if listener is None:
        return work()
    remote = {(part.topic, part.partition): part.remote_topic for part in task.partitions}
    try:
        listener.before_starting([Assignment(part.topic, part.partition, part.remote_topic, part.position) for part in task.partitions])
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        outcomes = tuple(PartitionOutcome(part.topic, part.partition, part.position) for part in task.partitions)
        return LaneResult(task.lane, outcomes, failure=_listener_failure(task, "before_starting", problem))
    result = work()
    released = [Assignment(part.topic, part.partition, remote[part.topic, part.partition], part.position) for part in result.partitions]
    try:
        listener.before_releasing(released)
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        return result if result.failure else replace(result, failure=_listener_failure(task, "before_releasing", problem))
    return result


def _listener_failure(task: LaneTask, method: str, problem: Exception) -> Failure:
    names = ", ".join(f"{part.topic}-{part.partition}" for part in task.partitions)
    what = f"lane {task.lane} ({names}): the assignment listener's {method}: {described(problem)}"
    return Failure(ListenerFailed.__name__, what, passing=False)
