"""Pauses between attempts at one request (pure)."""

from collections.abc import Iterator


def doubling(first: float, longest: float) -> Iterator[float]:
    """Pauses without end, in seconds: `first`, then each twice the one before, up to `longest`."""
    pause = first
    while True:
        yield pause
        pause = min(pause * 2, longest)
