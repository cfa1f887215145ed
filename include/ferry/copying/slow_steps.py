"""Names a step of a run while it takes long: a run that prints nothing for minutes looks dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Steps take less than the first on a machine and clusters that have nothing else to do.
FIRST_SECONDS = 5.0
REPEAT_SECONDS = 15.0


@contextmanager
def named_when_slow(say: Callable[[str], None], doing: str) -> Iterator[None]:
    """Say `doing` when what is inside has taken FIRST_SECONDS, and again every REPEAT_SECONDS until it is over."""
    over, began = threading.Event(), time.monotonic()

    def tell() -> None:
        pause = FIRST_SECONDS
        while not over.wait(pause):
            say(f"still {doing} ({time.monotonic() - began:.0f} s)")
            pause = REPEAT_SECONDS

    thread = threading.Thread(target=tell, name="ferry-slow-step", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
