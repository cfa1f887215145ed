"""Names a step of a run while it takes long: users would take a run that prints nothing for minutes for dead."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# On idle machines and clusters a step takes less than this.
FIRST_SECONDS = 5.0
REPEAT_SECONDS = 15.0


@contextmanager
def named_when_slow(say: Callable[[str], None], doing: str) -> Iterator[None]:
    """Say `doing` when the block has taken FIRST_SECONDS, and every REPEAT_SECONDS after that until it ends."""
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
