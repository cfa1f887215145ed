"""How long steps take, for reports."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Collects (step, seconds); a step that raises counts too."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, float]] = []

    @property
    def steps(self) -> tuple[tuple[str, float], ...]:
        """Those that ended, in order."""
        return tuple(self._steps)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take the time of one."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._steps.append((name, time.monotonic() - began))
