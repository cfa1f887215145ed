"""The cursors of a lane, in groups by the work that they need. So a turn of the lane's loop costs only work for cursors that have changed.

A cursor notes itself whenever one of its fields changes. Only `sort` puts cursors into groups, by their fields at that moment. Every access
to a group sorts first. So a group always agrees with its cursors.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.leaders import Leaders
from ferry.copying.cursor import PartitionCursor
from ferry.errors import PartitionUnavailable, PositionDisagrees, TargetRecreated
from ferry.ledger.receipts import RUNS_PER_RECEIPT

# Runs of all receipts of one transaction, about 200 bytes each until it is committed.
RUNS_PER_TRANSACTION = 20 * RUNS_PER_RECEIPT
# A partition that makes the outcome unknown this often at one position is stopped, so that it does not stop the lane.
BLAMES = 4


class Blame:
    """How often each cursor made the outcome of a transaction unknown."""

    def __init__(self) -> None:
        self._times: Counter[tuple[PartitionCursor, int]] = Counter()

    def note(self, cursor: PartitionCursor) -> None:
        """It did so once more."""
        stands = cursor, cursor.committed_position
        self._times[stands] += 1
        if self._times[stands] >= BLAMES:
            what = f"after {BLAMES} answers of remote topic {cursor.task.remote_topic} nobody knew what its log holds"
            cursor.stop(PartitionUnavailable, what)


class _Group:
    """The cursors that belong to it now."""

    def __init__(self, belongs: Callable[[PartitionCursor], bool]) -> None:
        self.belongs = belongs

    def __get__(self, groups: "CursorGroups", _: type) -> Collection[PartitionCursor]:
        return groups.sort()[self]


class CursorGroups:
    unfinished = _Group(lambda cursor: not cursor.done)
    touched = _Group(lambda cursor: cursor.touched)
    doubted = _Group(lambda cursor: cursor.doubted and cursor.failure is None)  # the source must be asked about their offset
    full = _Group(lambda cursor: cursor.runs >= RUNS_PER_RECEIPT)  # their receipt has as many runs as one may have
    failed = _Group(lambda cursor: cursor.failure is not None)
    troubled = _Group(lambda cursor: cursor.troubled_since > 0)  # nothing of them can be read now
    # Following: they can be read, and the source has more of them.
    behind = _Group(lambda cursor: cursor.is_behind and not cursor.done and not cursor.troubled_since)

    def __init__(self, cursors: Iterable[PartitionCursor]) -> None:
        self.all = tuple(cursors)
        self._changed = dict.fromkeys(self.all)
        for cursor in self.all:
            cursor.changes = self._changed
        self._news: list[dict[PartitionCursor, None]] = []
        groups = (group for group in vars(CursorGroups).values() if isinstance(group, _Group))
        self._groups: dict[_Group, dict[PartitionCursor, None]] = {group: {} for group in groups}
        self._runs = dict.fromkeys(self.all, 0)
        self._all_runs = 0

    def news(self) -> dict[PartitionCursor, None]:
        """An ordered set for the caller, which takes cursors out of it. `sort` adds those that have changed. At first it has all."""
        self.sort()
        self._news.append(dict.fromkeys(self.all))
        return self._news[-1]

    @property
    def runs(self) -> int:
        """The number of runs in the receipts of all cursors."""
        self.sort()
        return self._all_runs

    @property
    def are_full(self) -> bool:
        """Whether a receipt of the open transaction, or all of them, have as many runs as they may have."""
        return bool(self.full) or self.runs >= RUNS_PER_TRANSACTION

    def sort(self) -> dict[_Group, dict[PartitionCursor, None]]:
        """Bring the groups and the news up to date with the cursors."""
        for cursor in self._changed:
            for group, members in self._groups.items():
                if group.belongs(cursor):
                    members[cursor] = None
                else:
                    members.pop(cursor, None)
            self._all_runs += cursor.runs - self._runs[cursor]
            self._runs[cursor] = cursor.runs
        for news in self._news:
            news.update(self._changed)
        self._changed.clear()
        return self._groups


def stop_disagreeing(cursors: Mapping[PartitionCursor, CommittedOffset | None], group: str) -> None:
    """Stop the cursors whose position in the group is not theirs. The group says so, for each of them."""
    for cursor, found in cursors.items():
        said = "has no offset" if found is None else f"says {found.offset}"
        differs = f"group {group} {said}, the run expects {cursor.committed_position}"
        cursor.stop(PositionDisagrees, f"{differs}; settle it with ferry seed")


def stop_replaced(cursors: Iterable[PartitionCursor], leaders: Leaders) -> bool:
    """Stop the cursors whose remote topic somebody deleted or created again since the plan. Returns whether any was stopped."""
    stopped = False
    for cursor in cursors:
        task, found = cursor.task, leaders.topic_id(cursor.task.remote_topic)
        replaced = found is not None and found != task.remote_topic_id
        if cursor.failure is None and (replaced or leaders.is_gone(task.remote_topic)):
            problem = f"remote topic {task.remote_topic} is gone or was deleted and created again since the run was planned"
            cursor.stop(TargetRecreated, problem)
            stopped = True
    return stopped
