"""How long a cluster has been unreachable: since when none of its brokers has answered although Ferry asked (pure).

One broker that hangs or is down is no outage: others answer. All users of a connection to a cluster share an Outage. When it has lasted for
PATIENCE_SECONDS, every lane ends; otherwise each lane would wait that long by itself.

Brokers may answer and still be of no use: if most brokers of a cluster are down, the others elect no leaders, and no coordinator works. The
lanes share this wait too (CoordinatorOutage).
"""

# Restarts of brokers and elections take less time; after this a coordinator, a partition or a whole cluster counts as down.
PATIENCE_SECONDS = 75.0
# After this time without a request, earlier failures say nothing about the cluster's state.
LULL_SECONDS = 15.0


class Outage:
    """Learns of every request; times are seconds of one clock."""

    def __init__(self) -> None:
        self._certain = False
        self._waiting = 0
        self._since: float | None = None
        self._first_failure: float | None = None
        self._last_failure = float("-inf")

    def asked(self, now: float) -> None:
        idle = not self._waiting and now - self._last_failure > LULL_SECONDS
        if self._since is None or idle:
            self._begin(now)
        self._waiting += 1

    def answered(self, now: float) -> None:
        """A request was answered, also if the answer is an error."""
        self._waiting -= 1
        self._begin(now if self._waiting else None)

    def failed(self, asked: float, now: float) -> None:
        """A request that was sent at `asked` got no answer.

        A single failure proves nothing: this process itself may have been stopped for a while. An outage is certain when a request fails
        that was sent after another one had failed.
        """
        self._waiting -= 1
        self._last_failure = now
        if self._first_failure is None or self._since is None:
            self._first_failure = now
        elif asked >= self._first_failure:
            self._certain = True

    def seconds(self, now: float) -> float:
        """How long the outage has lasted, in seconds; 0 after any answer, and if nobody has asked lately."""
        if not self._certain or self._since is None or now - self._last_failure > LULL_SECONDS:
            return 0.0
        return now - self._since

    def _begin(self, since: float | None) -> None:
        self._since, self._first_failure, self._certain = since, None, False


class CoordinatorOutage:
    """Since when no coordinator of a cluster has accepted a request; times are seconds of one clock."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last_failure = float("-inf")

    def failed(self, asked: float, now: float) -> None:
        """A request that was sent at `asked` found no coordinator that could handle it."""
        if self._since is None or asked - self._last_failure > LULL_SECONDS:
            self._since = asked
        self._last_failure = now

    def over(self) -> None:
        """A coordinator accepted a request."""
        self._since = None

    def seconds(self, now: float) -> float:
        return 0.0 if self._since is None else now - self._since
