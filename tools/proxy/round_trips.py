"""How many requests of a process came one after the other: each after the answer to the one before it."""

from __future__ import annotations

from collections.abc import Sequence

from tools.proxy.connection import Exchange


def serial_requests(exchanges: Sequence[Exchange], way_back: float) -> int:
    """The longest chain, where a request follows every answer that the process had when it sent the request.

    `way_back`: seconds that an answer is under way from the proxy to the process. A process that a busy machine stops for longer between
    two requests that belong together makes the chain longer than it is.
    """
    ends: list[tuple[float, int]] = []
    for exchange in sorted(exchanges, key=lambda one: one.asked):
        length = 1 + max((before for arrived, before in ends if arrived <= exchange.asked), default=0)
        if exchange.answered is not None:
            ends.append((exchange.answered + way_back, length))
    return max((length for _, length in ends), default=0)


def connections(exchanges: Sequence[Exchange]) -> int:
    """How many connections they came over."""
    return len({id(exchange.connection) for exchange in exchanges})
