"""Groups at their coordinator: committed offsets, and those of undecided transactions (OffsetMetadataManager, ClassicGroup).

Members do not join here; a test may give a group members, so that it refuses commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.codes import Code

Key = tuple[str, int]


class Stored(NamedTuple):
    """A committed offset. `order`: its place in the coordinator's log. Of a plain and a transactional commit the later one counts."""

    offset: int
    leader_epoch: int
    metadata: str
    order: int


class Member(NamedTuple):
    """A member that a test gives to a group. `topics`: those to which it has subscribed."""

    member_id: str
    client_id: str = "client"
    client_host: str = "/127.0.0.1"
    topics: frozenset[str] = frozenset()


@dataclass
class Group:
    """`pending`: offsets of undecided transactions, by producer id. `is_classic`: otherwise of the protocol of KIP-848."""

    name: str
    offsets: dict[Key, Stored] = field(default_factory=dict)
    pending: dict[int, dict[Key, Stored]] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    is_classic: bool = True

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def protocol_type(self) -> str:
        return "consumer" if self.members or not self.is_classic else ""

    @property
    def is_unused(self) -> bool:
        """Whether it has no members, and no offsets."""
        return not (self.members or self.offsets or any(self.pending.values()))

    def reads(self, topic: str) -> bool:
        """Whether a member has subscribed to it."""
        return any(topic in member.topics for member in self.members)

    def is_pending(self, key: Key) -> bool:
        return any(key in offsets for offsets in self.pending.values())

    def refuses(self, member_id: str, generation: int, *, transactional: bool) -> Code:
        """Why a commit is refused. A transaction without a member's name is never checked against the members."""
        if not self.members and generation < 0:
            return Code.NONE
        if transactional and generation < 0 and not member_id:
            return Code.NONE
        return Code.NONE if any(member.member_id == member_id for member in self.members) else Code.UNKNOWN_MEMBER_ID

    def end(self, producer_id: int, *, commits: bool) -> None:
        """The marker of a transaction: its offsets count from now on, or are dropped."""
        for key, stored in self.pending.pop(producer_id, {}).items():
            if commits and (key not in self.offsets or self.offsets[key].order < stored.order):
                self.offsets[key] = stored

    def forget(self, topic: str) -> None:
        """The topic was deleted: so are its offsets, also pending ones."""
        for offsets in (self.offsets, *self.pending.values()):
            for key in [key for key in offsets if key[0] == topic]:
                del offsets[key]


class Writer(NamedTuple):
    """What a partition of the groups' topic knows of a producer id. `opened`: whether it has offsets of its open transaction."""

    epoch: int
    opened: bool


class GroupStore:
    """All groups, and the producers of their partitions: as any partition, they refuse an epoch that is older than one they have seen."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._writers: dict[tuple[int, int], Writer] = {}  # by partition of the groups' topic, and producer id
        self._order = 0

    def get(self, name: str) -> Group:
        """The group; a commit makes one that is not there."""
        return self.groups.setdefault(name, Group(name))

    def stored(self, offset: int, leader_epoch: int, metadata: str | None) -> Stored:
        self._order += 1
        return Stored(offset, leader_epoch, metadata or "", self._order)

    def is_open(self, partition: int, producer_id: int, epoch: int | None) -> bool:
        """Whether the partition has offsets of an open transaction of this pair; None: of any epoch."""
        known = self._writers.get((partition, producer_id))
        return known is not None and known.opened and epoch in {None, known.epoch}

    def is_fenced(self, partition: int, producer_id: int, epoch: int) -> bool:
        known = self._writers.get((partition, producer_id))
        return known is not None and epoch < known.epoch

    def write(self, partition: int, producer_id: int, epoch: int) -> None:
        """Offsets of a transaction are in the log."""
        self._writers[partition, producer_id] = Writer(epoch, True)

    def mark(self, partition: int, producer_id: int, epoch: int, *, commits: bool, groups: list[str]) -> None:
        """The marker of a transaction that is not fenced. `groups`: those of the partition."""
        self._writers[partition, producer_id] = Writer(epoch, False)
        for name in groups:
            self.groups[name].end(producer_id, commits=commits)
