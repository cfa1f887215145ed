"""Stops remote partitions whose positions the target refuses: they were deleted, or a right on their topic is missing.

Their records must not be committed without a position. So the lane abandons this transaction, and its other partitions go on in a new one.
"""

from collections.abc import Mapping
from typing import NoReturn

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.coordination import OutcomeUnknown, PositionsRefused
from ferry.clusters.partitions import TopicPartition
from ferry.copying.cursor import PartitionCursor
from ferry.copying.model import PartitionTask
from ferry.errors import BatchRefused, PartitionError, TargetRecreated


def stop_refused(problem: PositionsRefused, cursors: Mapping[TopicPartition, PartitionCursor], target: ClusterConnection) -> NoReturn:
    """Stop the cursors of refused partitions, then raise OutcomeUnknown.

    NotAuthorized for one of Ferry's own topics, which all partitions need. If such a topic is gone, OutcomeUnknown makes the lane try again
    a few times before it fails.
    """
    for topic, partition in problem.partitions:
        cursor = cursors.get(TopicPartition(topic, partition))
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
