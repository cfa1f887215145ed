"""Signals that end a conversation, as Ctrl-C does: what was begun is put back on the way out."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal (SIGHUP) raise KeyboardInterrupt inside; what is ignored, as nohup asks for, stays ignored."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
