"""When a lane fetches, commits, pauses and ends while it follows (pure). Times are monotonic seconds.

At the end of all its partitions a lane works in beats, `commit_seconds` apart: it fetches what has arrived since the last beat, from all
brokers at the same time, and commits it at once. So a record waits for half a beat on average. A beat costs one fetch a broker and one
transaction, for any number of records. If the config does not give its length, it is chosen with each commit: as short as costs this
process at most CPU_SHARE of a core, and longer while the target is slow for another reason than its distance.

After a silence nothing waits: the fetches are at the brokers already, and the first record begins a beat. A lane that is behind, or cannot
read a partition, does not wait for a beat.
"""

from dataclasses import dataclass
from typing import Self

from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.transaction import TransactionState

# The loop runs at least this often, for pauses that are over and transactions that are old enough.
IDLE_SECONDS = 0.05
# A following lane that is at the end of all its partitions has no pause to watch, only the time at which it ends.
AT_THE_END_SECONDS = 1.0
# For this part of a beat, a transaction waits for fetches that are not answered yet: brokers do not all answer at the same moment.
GATHERING = 0.25
# The beat that is chosen. It changes by a small part each time: other threads use CPU time too, now and then.
FIRST_SECONDS, SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 0.05, 0.4
CPU_SHARE, LONGER, SHORTER = 0.25, 1.25, 0.95
# A lane that is behind for this long ends if it is to grow: a burst takes less, and more lanes cost a pause.
BEHIND_SECONDS = 5.0


@dataclass
class Following:
    """When one lane does what."""

    until: float | None  # when the lane ends (None: it ends with its segments)
    commit_seconds: float  # the length of a beat
    _beat: float = 0.0  # when the next beat begins
    _due: float = 0.0  # when the last transaction was due
    _waits: bool = False  # whether it takes in what the next beat brings
    chooses: bool = False  # the next beat, with each commit
    grows: bool = False  # as of LaneTask
    _kept_up: float = 0.0  # when it was last not behind
    early: bool = False  # whether it ended before its time
    fell_behind: bool = False  # whether it ended for that
    _closed: float = 0.0  # when a transaction was due and whole
    _committed: tuple[float, float] = (0.0, 0.0)  # when the last transaction was committed, and the CPU seconds of the process by then

    @classmethod
    def of(cls, until: float | None, commit_ms: int | None, *, grows: bool) -> Self:
        """`commit_ms`: of the config; None: it is chosen."""
        return cls(until, FIRST_SECONDS if commit_ms is None else commit_ms / 1000, chooses=commit_ms is None, grows=grows)

    @property
    def goes_on(self) -> bool:
        return self.until is not None

    def ends(self, now: float, left: float, cursors: CursorGroups) -> bool:
        """Whether the lane follows no longer from now on: its time is over, or `early`: a partition failed, or it fell behind.

        Then the driver names that partition at once, and plans the others again. `left`: how long the lane follows by the wall clock, in
        seconds. That clock may be wrong for a while, so `until` never gets later.
        """
        if self.until is None:
            return False
        self.until = min(self.until, now + left)
        self._kept_up = self._kept_up if cursors.behind and self._kept_up else now
        self.fell_behind = self.grows and now - self._kept_up > BEHIND_SECONDS
        self.early = self.fell_behind or bool(cursors.failed)
        over = self.early or now > self.until
        self.until = None if over else self.until
        return over

    def fetches(self, now: float) -> None:
        """The lane sends fetches: the next beat begins that much later."""
        self._beat = now + self.commit_seconds

    def rests(self, now: float, cursors: CursorGroups) -> bool:
        """Whether the lane leaves what arrives now for the next beat."""
        return self.goes_on and now < self._beat and not cursors.behind and not cursors.troubled

    def opens(self, now: float) -> None:
        """A transaction begins. If the last one began less than a beat before, this one takes in what the next beat brings."""
        self._due = max(now, min(self._due, now) + self.commit_seconds)
        self._waits = self._due > now

    def is_due(self, now: float, cursors: CursorGroups, *, asking: bool, sending: bool) -> bool:
        """Whether the transaction has all that the source has committed and gives.

        `asking`: fetches are not answered. `sending`: batches wait that the target may take soon.
        """
        gathers = self._gathering if asking or cursors.troubled or (self._waits and not self.rests(now, cursors)) else 0.0
        is_due = self.goes_on and not cursors.behind and not sending and now >= self._due + gathers
        self._closed = now if is_due else self._closed
        return is_due

    def commits(self, now: float, cpu: float, round_trip: float) -> None:
        """A transaction is committed: choose the next beat. `cpu`: seconds of the process. `round_trip`: seconds to the target."""
        (before, used), self._committed = self._committed, (now, cpu)
        slow = self._closed > before and now - self._closed - 2 * round_trip > self.commit_seconds / 2
        if self.chooses:
            factor = LONGER if slow or cpu - used > CPU_SHARE * (now - before) else SHORTER
            self.commit_seconds = min(LONGEST_SECONDS, max(SHORTEST_SECONDS, self.commit_seconds * factor))

    def drains(self, state: TransactionState, now: float, cursors: CursorGroups, *, sending: bool) -> bool:
        """Whether the transaction is due, except that batches wait. Then the lane fetches nothing more.

        Otherwise batches would always wait if the target is slow or far away.
        """
        return self.goes_on and state is TransactionState.OPEN and sending and now >= self._due and not cursors.behind

    def pause(self, state: TransactionState, now: float, cursors: CursorGroups, *, waits: bool) -> float:
        """Until the loop must look without an answer. `waits`: batches are not accepted yet."""
        if self.until is None or waits or cursors.troubled or cursors.behind:
            return IDLE_SECONDS
        if state is TransactionState.READY:
            return min((AT_THE_END_SECONDS, max(0.0, self.until - now), *self._left(now, self._beat)))
        return min((IDLE_SECONDS, *self._left(now, self._beat, self._due, self._due + self._gathering)))

    @property
    def _gathering(self) -> float:
        return self.commit_seconds * GATHERING

    @staticmethod
    def _left(now: float, *moments: float) -> list[float]:
        """Seconds to each of the `moments` that is not over."""
        return [moment - now for moment in moments if moment > now]
