"""Remote topics that somebody deleted, or created again, while a lane copies into them: their partitions stop."""

from collections.abc import Iterable

from ferry.clusters.net.leaders import Leaders
from ferry.copying.cursor import PartitionCursor
from ferry.errors import TargetRecreated


def stop_replaced(cursors: Iterable[PartitionCursor], leaders: Leaders) -> bool:
    """Stop the cursors whose remote topic is not the one of the plan any more. Returns whether any was stopped."""
    stopped = False
    for cursor in cursors:
        task, found = cursor.task, leaders.topic_id(cursor.task.remote_topic)
        replaced = found is not None and found != task.remote_topic_id
        if cursor.failure is None and (replaced or leaders.is_gone(task.remote_topic)):
            problem = f"remote topic {task.remote_topic} is gone or was deleted and created again since the run was planned"
            cursor.stop(TargetRecreated, problem)
            stopped = True
    return stopped
