"""What stands for the selector of an event loop in a world: waiting is letting the world go on, and no socket ever becomes ready."""

from __future__ import annotations

import selectors
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.world import World

# After so many looks without a wait a little time passes: otherwise a loop that looks until a moment is over would look for ever.
LOOKS = 10
LEAST_SECONDS = 1e-6
# A loop that looks so often in one second does nothing else any more.
MOST_LOOKS = 100_000


class WorldSelector(selectors.BaseSelector):
    def __init__(self, world: World) -> None:
        self.world, self._keys = world, dict[Any, selectors.SelectorKey]()
        self._looks, self._looked = 0, 0.0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = selectors.SelectorKey(fileobj, -1, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing is ever ready. A wait of no time lets nobody else go on."""
        if timeout != 0:
            self.world.wait(timeout)
            return []
        if self.world.now > self._looked + 1.0:
            self._looks, self._looked = 0, self.world.now
        self._looks += 1
        assert self._looks < MOST_LOOKS, "an event loop looks without end"
        if self._looks % LOOKS == 0:
            self.world.wait(LEAST_SECONDS)
        return []


class NoSockets:
    """Stands for the module `socket` in kafka-python's selector, which only wakes itself by them."""

    @staticmethod
    def socketpair() -> tuple[NoSocket, NoSocket]:
        return NoSocket(), NoSocket()


class NoSocket:
    def setblocking(self, _: object) -> None:
        """It never blocks."""

    def send(self, sent: bytes) -> int:
        return len(sent)

    def close(self) -> None:
        """Nothing is open."""
