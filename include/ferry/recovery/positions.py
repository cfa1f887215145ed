"""Positions from outside Ferry: of a file, of MirrorMaker 2, or of a consumer group at the source."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.ledger.run_report import Skipped
from ferry.ledger.state import PartitionKey


@dataclass(frozen=True)
class GivenPositions:
    """The next upstream offset to copy, by source partition, as somebody else gives it.

    `origin` stands in receipts. `places` says where each position was read, for messages. `binding`: an operator's own word, which also
    moves a position back and must name partitions of the flow; other origins never move Ferry back.
    """

    origin: str
    positions: Mapping[PartitionKey, int]
    places: Mapping[PartitionKey, str] = field(default_factory=dict)
    binding: bool = False
    left_out: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()

    def place(self, key: PartitionKey) -> str:
        """The partition, and where its position stands."""
        name = f"{key[0]}-{key[1]}"
        return f"{self.places[key]}: {name}" if key in self.places else f"{self.origin}: {name}"

    def of_topics(self, topics: Collection[str]) -> GivenPositions:
        """The same, for these source topics only."""
        return replace(self, positions={key: position for key, position in self.positions.items() if key[0] in topics})
