"""SIGTERM, SIGHUP and SIGINT while lanes run: the lane first aborts its open transaction, then the signal takes its usual effect.

An open transaction that nobody ends stops every read_committed consumer of the remote topics, until the next run or the coordinator's
time-out. Spark's Python daemon sends SIGHUP to its workers when its JVM is gone. The handler only remembers the signal; lanes check for it
between two steps. Afterwards the signal is sent again, to the handler that was there before.
"""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# After a signal the process waits no longer than this for the coordinator; then the transaction times out by itself.
ABORT_SECONDS = 10.0


class StopSignals:
    """A context manager: inside it, signals only set `received`. It works in the main thread, and does nothing in other threads."""

    def __init__(self) -> None:
        self._noted, self._stopped = 0, False
        self._previous: dict[int, Any] = {}

    @property
    def received(self) -> bool:
        return self._noted != 0 or self._stopped

    def stop(self) -> None:
        """Let the lanes end as after a signal; the process goes on."""
        self._stopped = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._note) for number in (*NUMBERS, signal.SIGALRM)}
        return self

    def __exit__(self, *_: object) -> None:
        if self._noted:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._noted:
            os.kill(os.getpid(), self._noted)

    def _note(self, number: int, _: FrameType | None) -> None:
        if not self._noted and number != signal.SIGALRM:
            self._noted = number
            signal.setitimer(signal.ITIMER_REAL, ABORT_SECONDS)
            return
        # A second signal, or no answer to the abort for ABORT_SECONDS: end at once.
        noted = self._noted or number
        signal.signal(noted, signal.SIG_DFL)
        os.kill(os.getpid(), noted)
