"""The guard's own process: reads paths of server.properties, one a line, and kills their brokers once the pipe closes (see `guard.py`)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from ferry.sandbox.broker_process import kill_all
from ferry.sandbox.guard import ORDERLY

# A parent may die between fork and exec of a broker, when its command line does not yet show what it is.
SECOND_LOOK_SECONDS = 0.5


def main() -> None:
    """Wait for the parent's end, then kill what it left."""
    lines = list(sys.stdin.buffer)
    watched = [Path(os.fsdecode(line[:-1])) for line in lines if line != ORDERLY]
    _kill(watched)
    if ORDERLY not in lines:
        time.sleep(SECOND_LOOK_SECONDS)
        _kill(watched)


def _kill(watched: Iterable[Path]) -> None:
    for properties in watched:
        kill_all(properties)


if __name__ == "__main__":
    main()
