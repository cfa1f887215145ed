"""How many bytes a lane may hold in memory, have in flight, and move in a second (pure).

Of `ferry.memory.mb`, 5/16 is for data that is held: source responses that anything still refers to, and batches that Ferry wrote itself and
that wait or are in flight. The rest is for the batch being transformed. For a moment up to four copies of its records exist (decompressed,
contiguous, with new deltas, assembled), so one batch may have a sixth of the memory; with a message handler half of that.
A fetch is sent only if its response fits into the memory that is left, or if nothing is held. So a batch that is larger than all of the
memory is copied alone.
"""

from typing import NamedTuple

# One response: enough for four produce requests, and small enough that a worker can hold several copies of it.
FETCH_BYTES = 16 << 20
PARTITION_FETCH_BYTES = 8 << 20
# Fetched but not yet sent: more does not make a copy faster.
WAITING_BYTES = 24 << 20
# For each broker: four requests of 4 MiB.
IN_FLIGHT_BYTES = 16 << 20
SMALLEST_BYTES = 64 << 10
# With a rate limit, the bytes of this time may go at once: then a transaction that closes need not wait long for its last bytes.
SLICE_SECONDS = 0.25
FIRST_IN_FLIGHT_BYTES = 1 << 20
# Longer than one turn of a lane's loop, so that a late turn costs no bandwidth.
BURST_SECONDS = 0.25
# Pauses of this length leave a transaction of 10 s ample time until its time-out of 60 s.
PAUSE_SECONDS = 4.0


class BufferLimits(NamedTuple):
    """In bytes."""

    fetch: int  # of one response
    partition_fetch: int  # of one partition in it
    in_flight: int  # to a broker
    waiting: int  # to be sent
    held: int  # in all
    opened: int  # of one batch's records when they are decompressed


def buffer_limits(memory: int, bytes_per_second: float | None, *, handled: bool, beside: int = 1) -> BufferLimits:
    """For a worker with `memory` bytes for data and this rate limit (None: no limit). `handled`: a message handler gets every record.

    `beside`: how many lanes of the worker run side by side. They share what may be held, but only one transforms a batch at a time.
    """
    held = memory * 5 // 16
    own = held // beside
    part = own if bytes_per_second is None else max(SMALLEST_BYTES, int(bytes_per_second * SLICE_SECONDS))
    return BufferLimits(
        fetch=min(FETCH_BYTES, own // 4, part * 2),
        partition_fetch=min(PARTITION_FETCH_BYTES, own // 4, part * 2),
        in_flight=min(IN_FLIGHT_BYTES, own // 4, part),
        waiting=min(WAITING_BYTES, own // 4, part * 2),
        held=held,
        opened=memory // (12 if handled else 6),
    )


class InFlightLimit:
    """Bytes in flight to one broker: few at first, more while the broker keeps up, fewer when a quota makes it ask for pauses.

    A broker that applies a quota answers a request, names a pause, and reads nothing more from the connection until the pause is over
    (KIP-219). Requests that were sent after it wait for all those pauses: with megabytes in flight and a small quota, longer than a request
    may take. So the limit doubles with every answer without a pause, up to `largest`, and shrinks to what costs a pause of PAUSE_SECONDS.
    """

    def __init__(self, largest: int) -> None:
        self._largest = max(largest, SMALLEST_BYTES)
        self.size = min(FIRST_IN_FLIGHT_BYTES, self._largest)
        self.in_flight = self.requests = 0

    @property
    def room(self) -> int:
        """Bytes that may be sent now; 0 or less: none. If nothing is in flight, a request of any size may be sent."""
        return self.size - self.in_flight

    def sent(self, size: int) -> None:
        self.in_flight += size
        self.requests += 1

    def answered(self, size: int, pause_seconds: float = 0.0) -> None:
        """A request of `size` bytes was answered, perhaps with a pause, or it failed."""
        self.in_flight -= size
        self.requests -= 1
        if pause_seconds > 0:
            share = min(1.0, PAUSE_SECONDS / pause_seconds)
            self.size = max(SMALLEST_BYTES, min(self.size, int(size * share)))
        else:
            self.size = min(self._largest, self.size * 2)


class RateLimiter:
    """Bytes are spent when they are sent or fetched; while too many were spent, nothing more is sent. Times are monotonic seconds.

    One call may spend more than is left, at least a whole batch; then the limiter waits until the rate has made up for it. Bytes that are
    not used within BURST_SECONDS are gone. So over some seconds the rate stays below its limit, and a batch that is larger than a second's
    bytes is sent nevertheless. `bytes_per_second` None: no limit.
    """

    def __init__(self, bytes_per_second: float | None, now: float) -> None:
        self._rate = bytes_per_second
        self._left = 0.0
        self._at = now

    def allows(self, now: float) -> bool:
        if self._rate is None:
            return True
        self._left = min(self._rate * BURST_SECONDS, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 0

    def spend(self, size: int) -> None:
        if self._rate is not None:
            self._left -= size
