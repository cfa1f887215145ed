"""Which translated offsets of a group are written to the target (pure; KIP-545's rules, made stricter).

Invariants: a group that has members on the target is not touched, and no partition ever moves backwards. A group that is empty, dead or
unknown there is written, partition by partition: where the target has no offset (or a negative one, which is none), or a smaller one than
the translated. MirrorCheckpointTask decides by the same comparison, but writes groups unseen that it takes for new. Inexact translations
are written too, since they only read again. Whatever is not written has a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ferry.clusters.group_model import CommittedOffset, GroupDescription, GroupType
from ferry.clusters.partitions import TopicPartition
from ferry.translation.model import TranslatedPosition

# Groups whose offsets are not those of OffsetCommit: KIP-932 and KIP-1071. MirrorCheckpointConnector leaves both out as well.
UNSUPPORTED_TYPES = frozenset({GroupType.SHARE, GroupType.STREAMS})


@dataclass(frozen=True)
class TargetGroup:
    """A group as it is on the target now. `type` is what the cluster lists it as; empty when it is not listed."""

    description: GroupDescription
    offsets: Mapping[TopicPartition, CommittedOffset]
    type: str = ""


@dataclass(frozen=True)
class PartitionDecision:
    """What becomes of one partition of a group.

    `present` is the target's offset now, None when there is none. `write` is what is to be committed; None: nothing, `reason` says why.
    With `write`, `reason` says why the translation is not exact; empty when it is.
    """

    position: TranslatedPosition
    present: int | None
    write: CommittedOffset | None
    reason: str = ""
    up_to_date: bool = False

    @property
    def remote(self) -> TopicPartition:
        """The partition on the target."""
        return TopicPartition(self.position.remote_topic, self.position.partition)


@dataclass(frozen=True)
class GroupDecision:
    """What becomes of one group. `untouched`: why nothing of it may be written; empty when its partitions decide."""

    group: str
    untouched: str
    partitions: tuple[PartitionDecision, ...]

    @property
    def writes(self) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to commit."""
        return {entry.remote: entry.write for entry in self.partitions if entry.write is not None}


def decide_group(
    group: str, positions: Iterable[TranslatedPosition], target: TargetGroup, widths: Mapping[str, int], *, alias: str, marker: str
) -> GroupDecision:
    """Decide one group.

    `widths`: how many partitions each topic of the target has. `alias`: the target's, for reasons. `marker`: the commit metadata of
    positions that have none of their own.
    """
    untouched = _untouched(target, alias)
    decisions = tuple(_decide(position, target.offsets, widths, alias=alias, marker=marker, untouched=untouched) for position in positions)
    return GroupDecision(group, untouched, decisions)


def _untouched(target: TargetGroup, alias: str) -> str:
    if target.type in UNSUPPORTED_TYPES:
        return f"it is a {target.type} group on {alias}: only classic and consumer groups have offsets to sync"
    if not target.description.active:
        return ""
    members = target.description.members
    if not members:
        return f"it is {target.description.state} on {alias}: only groups without members are written"
    clients = ", ".join(sorted({member.client_id for member in members}))
    return f"it has {len(members)} members on {alias} ({clients}): only groups without members are written"


def _decide(
    position: TranslatedPosition,
    offsets: Mapping[TopicPartition, CommittedOffset],
    widths: Mapping[str, int],
    *,
    alias: str,
    marker: str,
    untouched: str,
) -> PartitionDecision:
    remote = TopicPartition(position.remote_topic, position.partition)
    found = offsets.get(remote)
    present = found.offset if found is not None and found.offset >= 0 else None
    if position.translation is None:
        return PartitionDecision(position, present, None, position.problem or "no translation")
    image = position.translation.image
    if remote.partition >= widths.get(remote.topic, 0):
        return PartitionDecision(position, present, None, f"{alias} has no partition {remote.topic}-{remote.partition}")
    if present == image:
        return PartitionDecision(position, present, None, f"{alias} is at {image} already", up_to_date=True)
    if present is not None and present > image:
        return PartitionDecision(position, present, None, f"{alias} is ahead: at {present}, translated {image}; a group never goes back")
    if untouched:
        return PartitionDecision(position, present, None, untouched)
    return PartitionDecision(position, present, CommittedOffset(image, -1, position.metadata or marker), _inexact(position))


def _inexact(position: TranslatedPosition) -> str:
    if position.upstream_offset is None:
        return f"{position.problem or 'never read by the group'}: from the beginning of what was copied"
    translation = position.translation
    return "" if translation is None or translation.reason is None else f"not exact ({translation.reason.value}): records are read again"
