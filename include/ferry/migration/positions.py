"""Positions from outside Ferry: of a file, of MirrorMaker 2 (mm2_positions.py), or of a consumer group at the source."""

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import ArgumentError, FerryError, ReplicatorActive
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import BY_OPERATOR
from ferry.ledger.run_report import Skipped

COLUMNS = ("topic", "partition", "position")
LAST_PARTITION, LAST_OFFSET = (1 << 31) - 1, (1 << 63) - 1


@dataclass(frozen=True)
class GivenPositions:
    """The next upstream offset to copy, by source partition."""

    origin: str  # where the positions come from, for the receipts
    positions: Mapping[TopicPartition, int]
    places: Mapping[TopicPartition, str] = field(default_factory=dict)  # where each position was read, for messages
    # An operator wrote the positions: they must be of partitions of the flow, and also move Ferry back. Positions of others never do.
    binding: bool = False
    left_out: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()

    def place(self, key: TopicPartition) -> str:
        """The partition, and where its position was read."""
        name = f"{key[0]}-{key[1]}"
        return f"{self.places[key]}: {name}" if key in self.places else f"{self.origin}: {name}"

    def of_topics(self, topics: Collection[str]) -> "GivenPositions":
        return replace(self, positions={key: position for key, position in self.positions.items() if key[0] in topics})


def read_group_positions(opened: OpenFlow, group: str) -> GivenPositions:
    """The committed offsets of `group` at the source: of MirrorMaker 1, or of any consumer that copied by itself.

    ReplicatorActive while it has members, ArgumentError when it has committed nothing.
    """
    where = f"group {group} on cluster {opened.source.alias}"
    with opened.source.groups() as groups:
        described, offsets = groups.describe([group])[group], groups.offsets([group])[group]
    if isinstance(described, FerryError):
        raise described
    if isinstance(offsets, FerryError):
        raise offsets
    if described.active:
        members = ", ".join(f"{member.client_id} at {member.host.lstrip('/')}" for member in described.members) or "none listed"
        raise ReplicatorActive(f"{where} is {described.state}, with members {members}: stop them, then seed again")
    positions = {key: committed.offset for key, committed in offsets.items() if committed.offset >= 0}
    if not positions:
        raise ArgumentError(f"{where} has committed no offsets: is it the right group, and the right cluster?")
    notice = "nothing is lost; what the group's consumers copied after their last commit is copied once more"
    return GivenPositions(f"group {group}", positions, notices=(notice,))


def read_seed_file(path: Path) -> GivenPositions:
    """Read a CSV file with the header `topic,partition,position`. ArgumentError naming file and line for anything else."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines(), strict=True))
    except OSError as problem:
        raise ArgumentError(f"{path}: cannot be read: {problem.strerror}") from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ArgumentError(f"{path}: cannot be read: {problem}") from problem
    if not rows or tuple(cell.strip() for cell in rows[0]) != COLUMNS:
        raise ArgumentError(f"{path}:1: the first line must be {','.join(COLUMNS)}")
    positions: dict[TopicPartition, int] = {}
    places: dict[TopicPartition, str] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        place = f"{path}:{number}"
        try:
            topic, partition, position = (cell.strip() for cell in row)
            key, offset = TopicPartition(topic, _number(partition, LAST_PARTITION)), _number(position, LAST_OFFSET)
        except ValueError as problem:
            raise ArgumentError(f"{place}: not topic,partition,position: {','.join(row)}") from problem
        if key in positions:
            raise ArgumentError(f"{place}: {topic}-{partition} is there twice")
        positions[key], places[key] = offset, place
    if not positions:
        raise ArgumentError(f"{path}: names no partition")
    return GivenPositions(f"{BY_OPERATOR}: {path.name}", positions, places, binding=True)


def _number(digits: str, last: int) -> int:
    """ValueError for anything but decimal digits of a number up to `last`."""
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(last)) or int(digits) > last:
        raise ValueError(f"not a number from 0 to {last}")
    return int(digits)
