"""SIGTERM, SIGHUP and SIGINT while lanes work: the open transaction is aborted first, then the signal does what it would have done.

An open transaction that nobody ends holds back every read_committed consumer of the remote topics, until the next run or the
coordinator's time-out. SIGHUP is what Spark's Python daemon sends its workers when its JVM has gone. The signal is only noted; lanes look
between two steps. After that it is delivered again, to whoever handled it before.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# A coordinator that does not answer must not keep a process that was told to end; the transaction then times out by itself.
ABORT_SECONDS = 10.0


class Interruption:
    """While entered, in the main thread, signals are noted in `asked` instead of being acted on; elsewhere it does nothing."""

    def __init__(self) -> None:
        self._noted = 0
        self._previous: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether the process was told to end."""
        return self._noted != 0

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._note) for number in (*NUMBERS, signal.SIGALRM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
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
        # Asked twice, or too late for an abort: as if there were no lanes.
        noted = self._noted or number
        signal.signal(noted, signal.SIG_DFL)
        os.kill(os.getpid(), noted)
