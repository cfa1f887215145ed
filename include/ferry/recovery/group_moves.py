"""What a failover, failback or cut-over writes for each group (pure).

The rules are those of the group sync (syncs/group_decision.py) with one more: a partition where the target's offset is larger than the
translated one goes back if a person has confirmed it, and only from the offset that this person was shown. A group that has moved since is
not touched. A group with members is never written.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ferry.clusters.group_model import CommittedOffset
from ferry.clusters.partitions import TopicPartition
from ferry.ledger.state import GroupTaken
from ferry.syncs.group_decision import GroupDecision, PartitionDecision, Placement

# Group, topic and partition on the cluster that is written to; the offset there that a person was shown.
PlaceShown = tuple[str, str, int, int]


@dataclass(frozen=True)
class PartitionMove:
    """One partition.

    `offset`: the group's own, on the cluster that it leaves. On the other cluster, `present`: its offset now; `wanted`: where it goes on;
    `re_reads`: how many offsets it reads again at most, 0 if the translation is exact, None where that is not known. `reason`: why nothing
    is written, or why the translation is not exact.
    """

    topic: str
    partition: int
    remote_topic: str
    offset: int | None
    present: int | None
    wanted: int | None
    action: Placement
    exact: bool
    re_reads: int | None
    reason: str


@dataclass(frozen=True)
class GroupMove:
    """One group. `obstacle`: why it cannot be written now. `members_at_origin`: how many members it has on the cluster that it leaves."""

    group: str
    obstacle: str
    partitions: tuple[PartitionMove, ...]
    members_at_origin: int = 0

    @property
    def exact(self) -> bool:
        """Whether every partition goes on exactly at the record that the group would have read next."""
        return all(entry.exact for entry in self.partitions if entry.action is not Placement.NONE)

    @property
    def ahead(self) -> tuple[PlaceShown, ...]:
        """The partitions whose offset is larger than the translated one. They go back only if a person confirms it."""
        return tuple(
            (self.group, entry.remote_topic, entry.partition, entry.present)
            for entry in self.partitions
            if entry.action in {Placement.AHEAD, Placement.BACK} and entry.present is not None
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
    """A decision as people and reports see it. `ends`: of the partitions that are written to, for `re_reads`."""
    partitions = tuple(_move(entry, ends) for entry in decision.partitions)
    return GroupMove(decision.group, decision.untouched, partitions, origin_members)


def with_consent(decision: GroupDecision, consent: Collection[PlaceShown], marker: str) -> GroupDecision:
    """The same, where the partitions of `consent` go back if they are still at the offset that a person was shown."""
    agreed = set(consent)
    partitions = tuple(
        _back(entry, marker) if entry.placement is Placement.AHEAD and (decision.group, *entry.remote, entry.present) in agreed else entry
        for entry in decision.partitions
    )
    return replace(decision, partitions=partitions)


def _back(entry: PartitionDecision, marker: str) -> PartitionDecision:
    position, translation = entry.position, entry.position.translation
    if translation is None:
        return entry
    return replace(entry, placement=Placement.BACK, write=CommittedOffset(translation.image, -1, position.metadata or marker))


def without_taken(consent: Iterable[PlaceShown], taken: Mapping[str, GroupTaken], phase: str) -> frozenset[PlaceShown]:
    """The part of `consent` that still holds. A group that an earlier try may have written goes back only from its offset of then."""
    kept = set()
    for place in consent:
        group, topic, partition, present = place
        earlier = taken.get(group)
        if earlier is None or earlier.phase != phase or (topic, partition, present) in earlier.back:
            kept.add(place)
    return frozenset(kept)


def unread_partitions(decision: GroupDecision) -> list[str]:
    """Partitions without a position because a cluster did not answer, and why. Consumers there could skip records."""
    return [f"{entry.where}: {entry.position.problem}" for entry in decision.partitions if entry.position.unread]


def _move(entry: PartitionDecision, ends: Mapping[TopicPartition, int]) -> PartitionMove:
    position, translation = entry.position, entry.position.translation
    exact = translation is not None and translation.exact and position.upstream_offset is not None
    return PartitionMove(
        topic=position.topic,
        partition=position.partition,
        remote_topic=position.remote_topic,
        offset=position.upstream_offset,
        present=entry.present,
        wanted=None if translation is None else translation.image,
        action=entry.placement,
        exact=exact,
        re_reads=_re_reads(entry, ends, exact=exact),
        reason=entry.reason,
    )


def _re_reads(entry: PartitionDecision, ends: Mapping[TopicPartition, int], *, exact: bool) -> int | None:
    """How many of the offsets from the position on the group has read before, at most."""
    translation = entry.position.translation
    if translation is None or entry.position.upstream_offset is None:
        return None
    if exact:
        return 0
    end = ends.get(entry.remote)
    return None if end is None else max(0, end - translation.image) + translation.ahead
