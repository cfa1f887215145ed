"""Which source topics there are now, as producers and checks may know them. Shared by threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping

from tests.drills.histories.model import Place

# By name, the number of partitions in the beginning.
FIRST = {"soak-plain": 3, "soak-packed": 2, "soak-small": 2, "soak-settled": 3, "soak-accounts": 2}
COMPACTED = "soak-accounts"
COMPACTED_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "20000",
    "min.cleanable.dirty.ratio": "0.05",
    "max.compaction.lag.ms": "5000",
}
REMOTE_PREFIX = "A."
# All topics of a soak begin so, and nothing else.
OURS = "soak-"


class Topics:
    """Living topics that producers may write to, with their numbers of partitions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living = dict(FIRST)

    def place(self, chance: random.Random) -> Place:
        """A partition to write to."""
        with self._lock:
            topic = chance.choice(sorted(self._living))
            return topic, chance.randrange(self._living[topic])

    def note(self, topic: str, partitions: int) -> None:
        """It is there, or has grown."""
        with self._lock:
            self._living[topic] = partitions

    @property
    def living(self) -> Mapping[str, int]:
        """Now."""
        with self._lock:
            return dict(self._living)
