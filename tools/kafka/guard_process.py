"""The guard's own process: reads paths of server.properties, one a line, and kills their brokers once the pipe closes (see `guard.py`)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tools.kafka.guard import ORDERLY
from tools.kafka.mirror_maker import MIRROR_MAKER_CLASS
from tools.kafka.zookeeper import ZOOKEEPER_CLASS

from ferry.sandbox.broker_process import BROKER_CLASSES, kill_all

# A parent may die between fork and exec of a broker, when its command line does not yet show what it is.
SECOND_LOOK_SECONDS = 0.5
GUARDED = (*BROKER_CLASSES, ZOOKEEPER_CLASS, MIRROR_MAKER_CLASS)


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
        kill_all(properties, GUARDED)


if __name__ == "__main__":
    main()
