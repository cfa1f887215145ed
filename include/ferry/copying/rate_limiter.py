"""A rate limiter for bytes (pure): bytes are spent when they are sent or fetched, and nothing more is sent while too many were spent.

One call may spend more than is left, at least a whole batch; then the limiter waits until the rate has made up for it. Bytes that are not
used within BURST_SECONDS are gone. So over some seconds the rate stays below its limit, and a batch that is larger than a second's bytes
is sent nevertheless.
"""

# Longer than one turn of a lane's loop, so that a late turn costs no bandwidth.
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
        """`size` bytes were sent or fetched."""
        if self._rate is not None:
            self._left -= size
