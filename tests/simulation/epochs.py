"""The leader epochs of one log, each with the offset where it begins (LeaderEpochFileCache.java). Epochs and offsets both increase."""

from __future__ import annotations

from collections.abc import Iterator

UNDEFINED = -1


class Epochs:
    """Which leader epoch wrote which offsets."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int]] = []  # epoch, first offset

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch; -1: the log has none."""
        return self._entries[-1][0] if self._entries else UNDEFINED

    @property
    def earliest(self) -> tuple[int, int]:
        """The first epoch and where it begins; -1, -1: there is none."""
        return self._entries[0] if self._entries else (UNDEFINED, UNDEFINED)

    def assign(self, epoch: int, offset: int) -> None:
        """From `offset` on the log is of `epoch`; entries that contradict it go."""
        if epoch == self.latest and offset >= self._entries[-1][1]:
            return
        while self._entries and (self._entries[-1][0] >= epoch or self._entries[-1][1] >= offset):
            self._entries.pop()
        self._entries.append((epoch, offset))

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch that is not above `epoch`, and where it ends (exclusive); -1, -1: all epochs here are smaller than `epoch`.

        If the log has only later epochs, the answer is `epoch` itself, and where the first of them begins.
        """
        if epoch == UNDEFINED or not self._entries:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        found = epoch
        for known, first in self._entries:
            if known > epoch:
                return found, first
            found = known
        return UNDEFINED, UNDEFINED

    def truncate_from(self, end: int) -> None:
        """The log now ends at `end`."""
        while self._entries and self._entries[-1][1] >= end:
            self._entries.pop()

    def truncate_to(self, start: int) -> None:
        """The log now begins at `start`: the epoch there begins there."""
        passed = [epoch for epoch, first in self._entries if first <= start]
        if passed:
            self._entries = [(passed[-1], start), *self._entries[len(passed) :]]

    def clear(self) -> None:
        self._entries.clear()
