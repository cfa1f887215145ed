"""When a lane commits, rests and ends while it follows (pure). Times are monotonic seconds."""

from dataclasses import dataclass

from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.transaction import TransactionState

# The loop runs at least this often, for pauses that are over and transactions that are old enough.
IDLE_SECONDS = 0.05
# A following lane that is at the end of all its partitions has no pause to watch, only the time at which it ends.
AT_THE_END_SECONDS = 1.0


@dataclass
class Following:
    """`until`: when the lane ends (None: it ends with its segments). `commit_seconds`: age of a transaction that is committed when nothing
    more is at hand."""

    until: float | None
    commit_seconds: float

    @property
    def goes_on(self) -> bool:
        return self.until is not None

    def ends(self, now: float, *, failed: bool) -> bool:
        """Whether the lane follows no longer from now on: its time is over, or a partition `failed`.

        Then the driver names that partition at once, and plans the others again.
        """
        over = self.until is not None and (failed or now > self.until)
        self.until = None if over else self.until
        return over

    def pause(self, state: TransactionState, opened: float, now: float, cursors: CursorGroups, *, waits: bool) -> float:
        """Until the loop must look without an answer. `opened`: when the transaction began. `waits`: batches are not accepted yet."""
        if self.until is None or waits or cursors.troubled or cursors.behind:
            return IDLE_SECONDS
        if state is TransactionState.READY:
            return min(AT_THE_END_SECONDS, max(0.0, self.until - now))
        left = opened + self.commit_seconds - now
        return left if 0 < left < IDLE_SECONDS else IDLE_SECONDS

    def is_due(self, opened: float, now: float, cursors: CursorGroups) -> bool:
        """Whether the lane has all that the source has committed and gives, and its transaction is old enough."""
        old = self.until is not None and now - opened >= self.commit_seconds
        return old and not cursors.behind
