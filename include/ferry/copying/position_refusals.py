"""Remote partitions whose positions the target refuses: deleted, or a right on their topic is missing.

The lane's other partitions go on in a new transaction: what this one holds of the refused ones must not be committed without a position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.coordination import OutcomeUnknown, PositionsRefused
from ferry.copying.appender import PartitionKey
from ferry.copying.cursor import PartitionCursor
from ferry.copying.model import PartitionTask
from ferry.errors import BatchRefused, PartitionError, TargetRecreated


def stop_refused(problem: PositionsRefused, cursors: Mapping[PartitionKey, PartitionCursor], target: ClusterConnection) -> NoReturn:
    """Stop the cursors of refused partitions, then OutcomeUnknown. NotAuthorized for an internal topic: then no partition can go on.

    An internal topic that is gone leaves the outcome open too: the lane tries again a few times, and then says so.
    """
    for topic, partition in problem.partitions:
        cursor = cursors.get((topic, partition))
        if cursor is not None:
            cursor.fail(_failure(cursor.task, problem.right, target))
        elif problem.right:
            raise target.denied(f"writing to {topic}", f"{problem.right} on topic {topic}") from problem
    raise OutcomeUnknown(str(problem)) from problem


def _failure(task: PartitionTask, right: str, target: ClusterConnection) -> PartitionError:
    if not right:
        return TargetRecreated(task.topic, task.partition, f"remote topic {task.remote_topic} was deleted")
    what = f"remote topic {task.remote_topic}, source offset {task.position}: not allowed"
    return BatchRefused(task.topic, task.partition, f"{what}: {target.granting(f'{right} on topic {task.remote_topic}')}")
