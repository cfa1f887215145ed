"""Records without their places, so that those of two clusters can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tests.simulation.batches import Record


class What(NamedTuple):
    """A record without its place."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


def what_of(found: Iterable[Record]) -> list[What]:
    return [What(record.key, record.value, record.timestamp, tuple(record.headers)) for record in found]
