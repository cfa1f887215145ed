"""How long no broker of a cluster has answered although Ferry asked (pure).

One broker that hangs or is gone is no silence: others answer. All lanes of a task share one connection to a cluster, and so one silence.
When it has lasted for PATIENCE_SECONDS, every lane ends, instead of each lane waiting that long by itself.

Brokers may answer and still be of no use: when most of a cluster is gone, the rest elects nobody. Then no coordinator does anything, and
that too is waited for once (Standstill).
"""

from __future__ import annotations

# Brokers that restart, and elections, take less; past this a coordinator, a partition or a whole cluster is taken to be down.
PATIENCE_SECONDS = 75.0
# After so long without a request, earlier failures say nothing about now.
LULL_SECONDS = 15.0


class Silence:
    """Told of every request; times are seconds of one clock."""

    def __init__(self) -> None:
        self._certain = False
        self._waiting = 0
        self._since: float | None = None
        self._first_failure: float | None = None
        self._last_failure = float("-inf")

    def asked(self, now: float) -> None:
        """A request leaves."""
        idle = not self._waiting and now - self._last_failure > LULL_SECONDS
        if self._since is None or idle:
            self._begin(now)
        self._waiting += 1

    def answered(self, now: float) -> None:
        """A request was answered, with whatever."""
        self._waiting -= 1
        self._begin(now if self._waiting else None)

    def failed(self, asked: float, now: float) -> None:
        """A request that left at `asked` got no answer.

        A single failure proves nothing: this process itself may have been stopped for a while. Silence is certain once a request fails that
        left after another one had failed.
        """
        self._waiting -= 1
        self._last_failure = now
        if self._first_failure is None or self._since is None:
            self._first_failure = now
        elif asked >= self._first_failure:
            self._certain = True

    def seconds(self, now: float) -> float:
        """How long it has lasted; 0 after any answer, and when nobody asked of late."""
        if not self._certain or self._since is None or now - self._last_failure > LULL_SECONDS:
            return 0.0
        return now - self._since

    def _begin(self, since: float | None) -> None:
        self._since, self._first_failure, self._certain = since, None, False


class Standstill:
    """Since when no coordinator of a cluster has taken a request; times are seconds of one clock."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last_failure = float("-inf")

    def failed(self, asked: float, now: float) -> None:
        """A request that left at `asked` found no coordinator, or none that could do it."""
        if self._since is None or asked - self._last_failure > LULL_SECONDS:
            self._since = asked
        self._last_failure = now

    def over(self) -> None:
        """A coordinator took a request."""
        self._since = None

    def seconds(self, now: float) -> float:
        """How long it has lasted."""
        return 0.0 if self._since is None else now - self._since
