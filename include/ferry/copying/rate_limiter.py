"""A bandwidth budget (pure): bytes are spent when they are sent or asked for, and nothing more is sent while the budget is overdrawn.

It may be overdrawn by what one call spends, a batch at least, and makes up for it by waiting; what is not used within `BURST_SECONDS` is
gone. So over some seconds the rate is met from below, and a batch that is larger than a second's worth goes through all the same.
"""

from __future__ import annotations

# Above the time between two looks of a lane's loop, so that looking late costs nothing.
BURST_SECONDS = 0.25


class RateLimiter:
    """`bytes_per_second` None: no limit. Times are monotonic seconds."""

    def __init__(self, bytes_per_second: float | None, now: float) -> None:
        self._rate = bytes_per_second
        self._left = 0.0
        self._at = now

    def allows(self, now: float) -> bool:
        """Whether anything may be sent now."""
        if self._rate is None:
            return True
        self._left = min(self._rate * BURST_SECONDS, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 0

    def spend(self, size: int) -> None:
        """So many bytes were sent."""
        if self._rate is not None:
            self._left -= size
