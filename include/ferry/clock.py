"""Time, waiting, threads and chance: what makes two runs differ although their code and their data are the same.

Code on the path of a run takes these only from here, by the name of this module: `clock.time()`. They are Python's own, so a call costs no
more. A test that puts others in their place decides for the whole process what time it is, how long a wait takes, which thread goes on, and
what chance gives.
"""

from random import shuffle
from secrets import token_hex
from threading import Event, Thread
from time import monotonic, process_time, sleep, time, time_ns

__all__ = ["Event", "Thread", "monotonic", "process_time", "shuffle", "sleep", "time", "time_ms", "time_ns", "token_hex"]


def time_ms() -> int:
    """Whole milliseconds since the epoch."""
    return time_ns() // 1_000_000
