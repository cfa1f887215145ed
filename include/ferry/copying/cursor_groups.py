"""The cursors of a lane, grouped by what is to be done with them. So a turn of the lane's loop costs what has changed since the last one.

A cursor notes itself whenever something of it changes. Only `sort` puts cursors into groups, by what they say of themselves then, and
every look at a group sorts first. So a group never says anything else than its cursors do.
"""

from collections.abc import Callable, Collection, Iterable

from ferry.copying.cursor import PartitionCursor
from ferry.ledger.receipts import RUNS_PER_RECEIPT

_GROUPS: dict[str, Callable[[PartitionCursor], bool]] = {
    "unfinished": lambda cursor: not cursor.done,
    "touched": lambda cursor: cursor.touched,
    "doubted": lambda cursor: cursor.doubted and cursor.failure is None,
    "full": lambda cursor: cursor.runs >= RUNS_PER_RECEIPT,
    "failed": lambda cursor: cursor.failure is not None,
    "troubled": lambda cursor: cursor.troubled_since > 0,
    "behind": lambda cursor: cursor.is_behind and not cursor.done and not cursor.troubled_since,
}


class CursorGroups:
    def __init__(self, cursors: Iterable[PartitionCursor]) -> None:
        self.all = tuple(cursors)
        self._changed = dict.fromkeys(self.all)
        for cursor in self.all:
            cursor.changes = self._changed
        self._news: list[dict[PartitionCursor, None]] = []
        self._groups: dict[str, dict[PartitionCursor, None]] = {name: {} for name in _GROUPS}
        self._runs = dict.fromkeys(self.all, 0)
        self._all_runs = 0

    def news(self) -> dict[PartitionCursor, None]:
        """An ordered set for the caller, who takes cursors out of it. `sort` puts in those that have changed. At first it has all."""
        self.sort()
        self._news.append(dict.fromkeys(self.all))
        return self._news[-1]

    @property
    def unfinished(self) -> Collection[PartitionCursor]:
        """Those that are not `done`."""
        return self.sort()["unfinished"]

    @property
    def touched(self) -> Collection[PartitionCursor]:
        return self.sort()["touched"]

    @property
    def doubted(self) -> Collection[PartitionCursor]:
        """Those about whose offset the source must be asked."""
        return self.sort()["doubted"]

    @property
    def full(self) -> Collection[PartitionCursor]:
        """Those whose receipt has as many runs as one may have."""
        return self.sort()["full"]

    @property
    def failed(self) -> Collection[PartitionCursor]:
        return self.sort()["failed"]

    @property
    def troubled(self) -> Collection[PartitionCursor]:
        """Those of which nothing can be read now."""
        return self.sort()["troubled"]

    @property
    def behind(self) -> Collection[PartitionCursor]:
        """Following: those that can be read and of which the source has more."""
        return self.sort()["behind"]

    @property
    def runs(self) -> int:
        """Of the receipts of all cursors."""
        self.sort()
        return self._all_runs

    def sort(self) -> dict[str, dict[PartitionCursor, None]]:
        """The groups, and all news, are as the cursors are now."""
        for cursor in self._changed:
            for name, belongs in _GROUPS.items():
                if belongs(cursor):
                    self._groups[name][cursor] = None
                else:
                    self._groups[name].pop(cursor, None)
            self._all_runs += cursor.runs - self._runs[cursor]
            self._runs[cursor] = cursor.runs
        for news in self._news:
            news.update(self._changed)
        self._changed.clear()
        return self._groups
