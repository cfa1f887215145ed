"""One number that Ferry measured: kept in the record of a sync, and sent as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One number. `counter`: it adds up over runs; else it replaces the one before."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)
    counter: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
