"""Which groups are written by a failover or failback, and to where (pure).

The rules are those of the group sync (syncs/group_decision.py) with one more. A partition whose group is further on the other side than
its translated position is left where it is, unless a person has said that it is to go back, from the very offset that the person was shown:
a group that has moved since is not touched. A group with members is never written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ferry.clusters.group_model import CommittedOffset
from ferry.clusters.partitions import TopicPartition
from ferry.ledger.recovery_entries import GroupTaken
from ferry.syncs.group_decision import GroupDecision, PartitionDecision

# Group, topic and partition on the side that is written; the offset there that a person was shown.
PlaceShown = tuple[str, str, int, int]


class Action(StrEnum):
    """What becomes of one partition of a group."""

    WRITE = "write"
    AHEAD = "ahead"  # left where it is: it is further already
    BACK = "back"  # a person wants it back from there
    STAND = "stand"  # it is there already
    NONE = "none"


@dataclass(frozen=True)
class PartitionMove:
    """One partition. `offset` is the group's own where it was read, `present` what stands on the other side, `wanted` where it goes on.

    `re_reads`: at most so many offsets are read again there, None where that is not known; 0 where it is exact. `reason`: why nothing is
    written, or why the translation is not exact.
    """

    topic: str
    partition: int
    remote_topic: str
    offset: int | None
    present: int | None
    wanted: int | None
    action: Action
    exact: bool
    re_reads: int | None
    reason: str


@dataclass(frozen=True)
class GroupMove:
    """One group. `obstacle`: why nothing of it can be written now. `members_at_origin`: how many still read where it comes from."""

    group: str
    obstacle: str
    partitions: tuple[PartitionMove, ...]
    members_at_origin: int = 0

    @property
    def exact(self) -> bool:
        """Whether every partition goes on at the record that the group would have read next."""
        return all(entry.exact for entry in self.partitions if entry.action is not Action.NONE)

    @property
    def ahead(self) -> tuple[PlaceShown, ...]:
        """The partitions where the group is further than its translated position: they go back only if a person says so."""
        return tuple(
            (self.group, entry.remote_topic, entry.partition, entry.present)
            for entry in self.partitions
            if entry.action in {Action.AHEAD, Action.BACK} and entry.present is not None
        )

    def document(self) -> dict[str, Any]:
        """As JSON."""
        partitions = [{**vars(entry), "action": entry.action.value} for entry in self.partitions]
        return {
            "group": self.group,
            "obstacle": self.obstacle,
            "exact": self.exact,
            "members_at_origin": self.members_at_origin,
            "partitions": partitions,
        }


def described_move(decision: GroupDecision, origin_members: int, ends: Mapping[TopicPartition, int]) -> GroupMove:
    """A decision as people and reports see it. `ends`: of the partitions that are written to, for counts of what is read again."""
    partitions = tuple(_move(entry, decision.untouched, ends) for entry in decision.partitions)
    return GroupMove(decision.group, decision.untouched, partitions, origin_members)


def with_consent(decision: GroupDecision, consent: Collection[PlaceShown], marker: str) -> GroupDecision:
    """The same, with partitions that go back where a person has said so, from the offset that the person was shown."""
    if decision.untouched:
        return decision
    agreed = set(consent)
    partitions = tuple(
        replace(entry, write=CommittedOffset(_image(entry), -1, entry.position.metadata or marker))
        if is_ahead(entry) and (decision.group, *entry.remote, entry.present) in agreed
        else entry
        for entry in decision.partitions
    )
    return replace(decision, partitions=partitions)


def without_taken(consent: Iterable[PlaceShown], taken: Mapping[str, GroupTaken], phase: str) -> frozenset[PlaceShown]:
    """What of `consent` still holds: a group that an earlier try may have written goes back only from where it was then."""
    kept = set()
    for place in consent:
        group, topic, partition, present = place
        earlier = taken.get(group)
        if earlier is None or earlier.phase != phase or (topic, partition, present) in earlier.back:
            kept.add(place)
    return frozenset(kept)


def is_ahead(entry: PartitionDecision) -> bool:
    """Whether the group is further there than its translated position."""
    return entry.position.translation is not None and entry.present is not None and entry.present > _image(entry)


def unread_partitions(decision: GroupDecision) -> list[str]:
    """Partitions of which a cluster did not tell where the group goes on, and why: whoever reads there could skip records."""
    told = (entry.position for entry in decision.partitions if entry.position.unread)
    return [f"{position.remote_topic or position.topic}-{position.partition}: {position.problem}" for position in told]


def _image(entry: PartitionDecision) -> int:
    translation = entry.position.translation
    return -1 if translation is None else translation.image


def _move(entry: PartitionDecision, untouched: str, ends: Mapping[TopicPartition, int]) -> PartitionMove:
    position, translation = entry.position, entry.position.translation
    action = Action.NONE
    if entry.up_to_date:
        action = Action.STAND
    elif is_ahead(entry) and not untouched:
        action = Action.AHEAD if entry.write is None else Action.BACK
    elif entry.write is not None:
        action = Action.WRITE
    exact = translation is not None and translation.exact and position.upstream_offset is not None
    return PartitionMove(
        topic=position.topic,
        partition=position.partition,
        remote_topic=position.remote_topic,
        offset=position.upstream_offset,
        present=entry.present,
        wanted=None if translation is None else translation.image,
        action=action,
        exact=exact,
        re_reads=_re_reads(entry, ends, exact=exact),
        reason=entry.reason,
    )


def _re_reads(entry: PartitionDecision, ends: Mapping[TopicPartition, int], *, exact: bool) -> int | None:
    """At most how many offsets behind the position had been read before."""
    translation = entry.position.translation
    if translation is None or entry.position.upstream_offset is None:
        return None
    if exact:
        return 0
    end = ends.get(entry.remote)
    return None if end is None else max(0, end - translation.image) + translation.ahead
