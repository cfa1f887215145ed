"""One number that Ferry measured. Records of syncs hold such numbers, and Ferry sends them as metrics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One number. `counter`: numbers of several runs add up; otherwise a new number replaces the old one."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)
    counter: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
