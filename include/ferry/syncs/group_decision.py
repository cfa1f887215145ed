"""Which translated offsets of a group are written to the target (pure; KIP-545's rules, made stricter).

Two rules always hold. A group that has members on the target is not touched. No partition moves backwards. If a group is empty, dead or
unknown there, Ferry writes a partition if the target has no offset (a negative offset is none), or a smaller one than the translated one.
MirrorCheckpointTask compares in the same way, but writes groups that it takes for new without a look at them. Ferry writes inexact
translations too, because consumers only read records again. Everything that is not written has a reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupListing, GroupType
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import count_of, some_of
from ferry.translation.commit_metadata import EARLIER
from ferry.translation.translated import Inexact, TranslatedPosition

# Share groups (KIP-932) have other offsets than those of OffsetCommit. Streams groups (KIP-1071) have those, but MirrorCheckpointConnector
# leaves both kinds out.
_TYPES = frozenset({GroupType.CLASSIC, GroupType.CONSUMER, GroupType.STREAMS})


class Placement(StrEnum):
    """What is decided about one partition of a group. The values stand in the documents of failover, failback and cut-over."""

    WRITE = "write"
    BACK = "back"  # written although the target's offset is larger: a person has confirmed it
    AHEAD = "ahead"  # left alone, because the target's offset is larger
    UP_TO_DATE = "stand"
    NONE = "none"  # left alone for another reason


@dataclass(frozen=True)
class TargetGroup:
    """A group as it is on the target now. `listing` None: the cluster does not list it."""

    description: GroupDescription
    offsets: Mapping[TopicPartition, CommittedOffset]
    listing: GroupListing | None = None


@dataclass(frozen=True)
class PartitionDecision:
    """What is decided about one partition of a group."""

    position: TranslatedPosition
    present: int | None  # the target's offset now; None: there is none
    placement: Placement
    write: CommittedOffset | None = None  # the offset to commit; None: nothing is written
    reason: str = ""  # why nothing is written, or why the translation is not exact; empty if it is exact
    untouched: bool = False  # `reason` is that of the whole group

    @property
    def remote(self) -> TopicPartition:
        return TopicPartition(self.position.remote_topic, self.position.partition)

    @property
    def where(self) -> str:
        """The partition on the target, for people; the source's topic where the remote topic is not known."""
        return f"{self.position.remote_topic or self.position.topic}-{self.position.partition}"


@dataclass(frozen=True)
class GroupDecision:
    """What is decided about one group. `untouched`: why nothing of it may be written; empty when its partitions decide."""

    group: str
    target: TargetGroup
    untouched: str
    partitions: tuple[PartitionDecision, ...]

    @property
    def writes(self) -> dict[TopicPartition, CommittedOffset]:
        return {entry.remote: entry.write for entry in self.partitions if entry.write is not None}


def decide_group(
    group: str, positions: Iterable[TranslatedPosition], target: TargetGroup, widths: Mapping[str, int], *, alias: str
) -> GroupDecision:
    """`widths`: how many partitions each topic of the target has. `alias`: the target's, for reasons."""
    untouched = _untouched(target, alias)
    decisions = tuple(_decide(position, target, widths, alias=alias, untouched=untouched) for position in positions)
    return GroupDecision(group, target, untouched, decisions)


def why_unsupported(entry: GroupListing, alias: str) -> str:
    """Why Ferry can neither translate nor write the offsets of a group of this type; empty if it can. `alias`: its cluster's."""
    if entry.type in _TYPES:
        return ""
    return f"it is a {entry.type} group on {alias}: Ferry translates only offsets of classic, consumer and streams groups"


def _untouched(target: TargetGroup, alias: str) -> str:
    if target.listing is not None and (unsupported := why_unsupported(target.listing, alias)):
        return unsupported
    if not target.description.active:
        return ""
    members = target.description.members
    if not members:
        return f"it is {target.description.state} on {alias}, and only groups without members are written"
    clients = some_of(sorted({f"client id {member.client_id} on {member.host.lstrip('/')}" for member in members}))
    return f"it has {count_of(len(members), 'member')} on {alias} ({clients}), and only groups without members are written"


def _decide(
    position: TranslatedPosition, target: TargetGroup, widths: Mapping[str, int], *, alias: str, untouched: str
) -> PartitionDecision:
    remote = TopicPartition(position.remote_topic, position.partition)
    found = target.offsets.get(remote)
    present = found.offset if found is not None and found.offset >= 0 else None

    def left(placement: Placement, reason: str) -> PartitionDecision:
        return PartitionDecision(position, present, placement, None, reason)

    if position.translation is None:
        return left(Placement.NONE, position.problem or "no translation")
    image = position.translation.image
    if remote.partition >= widths.get(remote.topic, 0):
        return left(Placement.NONE, f"{alias} has no partition {remote.topic}-{remote.partition}")
    if found is not None and present == image and (untouched or not _left_behind(position, found)):
        return left(Placement.UP_TO_DATE, f"{alias} is at {image} already")
    if present is not None and present > image:
        reason = f"{alias} is ahead: at {present}, translated {image}; a group never goes back"
        return left(Placement.NONE if untouched else Placement.AHEAD, reason)
    if untouched:
        return PartitionDecision(position, present, Placement.NONE, reason=untouched, untouched=True)
    return PartitionDecision(position, present, Placement.WRITE, CommittedOffset(image, -1, position.metadata), _why_inexact(position))


def _left_behind(position: TranslatedPosition, found: CommittedOffset) -> bool:
    """Whether an earlier version of Ferry wrote metadata that do not belong there."""
    return found.metadata.startswith(EARLIER) or position.metadata != found.metadata == position.source_metadata


def _why_inexact(position: TranslatedPosition) -> str:
    if position.upstream_offset is None:
        return f"{position.problem or 'never read by the group'}: from the beginning of what was copied"
    reason = None if position.translation is None else position.translation.reason
    why = "records are read again"
    if reason is Inexact.METADATA:
        why = "the source's commit metadata may count offsets, which differ here, and are left out"
    return "" if reason is None else f"not exact ({reason.value}): {why}"
