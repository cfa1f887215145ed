"""Calls an assignment listener before and after the work of one lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ferry.copying.model import Failure, LaneResult, LaneTask, PartitionOutcome
from ferry.errors import ListenerFailed
from ferry.handling.calling import described
from ferry.handling.interface import Assignment, AssignmentListener


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
        return LaneResult(task.lane, outcomes, failure=_failure(task, "before_starting", problem))
    result = work()
    positions = {(outcome.topic, outcome.partition): outcome.position for outcome in result.partitions}
    try:
        listener.before_releasing([Assignment(*key, remote[key], position) for key, position in positions.items()])
    except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
        return result if result.failure else replace(result, failure=_failure(task, "before_releasing", problem))
    return result


def _failure(task: LaneTask, method: str, problem: Exception) -> Failure:
    names = ", ".join(f"{part.topic}-{part.partition}" for part in task.partitions)
    what = f"lane {task.lane} ({names}): the assignment listener's {method}: {described(problem)}"
    return Failure(ListenerFailed.__name__, what, passing=False)
