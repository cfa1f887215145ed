"""How many bytes may be under way to one broker (pure): little at first, more while it keeps up, less when a quota makes it ask for pauses.

A broker that applies a quota answers a request, names a pause, and reads nothing more from the connection until it is over (KIP-219). What
was sent behind it waits for all those pauses in turn: with megabytes under way and a small quota, for longer than a request may take. So
the window opens by what was answered without a pause, and shrinks to what costs a pause of `PAUSE_SECONDS`.
"""

from __future__ import annotations

FIRST_BYTES = 1 << 20
SMALLEST_BYTES = 64 << 10
# Pauses of this length leave a transaction of 10 s ample time until its time-out of 60 s.
PAUSE_SECONDS = 4.0


class InFlightLimit:
    """Bytes under way to one broker. `largest`: as far as it opens."""

    def __init__(self, largest: int) -> None:
        self._largest = max(largest, SMALLEST_BYTES)
        self.size = min(FIRST_BYTES, self._largest)
        self.under_way = 0

    @property
    def room(self) -> int:
        """Bytes that may be sent now; 0 or less means none. Where nothing is under way, something may be sent, however large."""
        return self.size - self.under_way

    def sent(self, size: int) -> None:
        """A request of so many bytes left."""
        self.under_way += size

    def answered(self, size: int, pause_seconds: float = 0.0) -> None:
        """It was answered, with a pause to make (0: none), or it failed."""
        self.under_way -= size
        if pause_seconds > 0:
            share = min(1.0, PAUSE_SECONDS / pause_seconds)
            self.size = max(SMALLEST_BYTES, min(self.size, int(size * share)))
        else:
            self.size = min(self._largest, self.size * 2)
