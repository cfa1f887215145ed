"""Why a group is or is not synced: both sides as they are now, the translation between them, and what a sync would decide. Reads only.

The decisions are those of group_offsets.py, made by the same functions over what is read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import GroupDescription, GroupListing
from ferry.clusters.partitions import TopicPartition
from ferry.errors import ArgumentError, FerryError
from ferry.ledger.recovery_record import why_groups_are_held
from ferry.policy.naming import is_ferry_group
from ferry.syncs.group_decision import UNSUPPORTED_TYPES, GroupDecision, PartitionDecision, TargetGroup, decide_group
from ferry.syncs.group_offsets import look
from ferry.syncs.names import SyncName, not_enabled
from ferry.syncs.translated_groups import translated_groups
from ferry.translation.model import TranslatedPosition

if TYPE_CHECKING:
    from ferry.config import Cluster, Flow

T = TypeVar("T")
Ends = dict[TopicPartition, int]


@dataclass(frozen=True)
class GroupSide:
    """A group on one cluster. `type` is empty and `state` Dead where it does not exist."""

    cluster: str
    state: str
    type: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainedPartition:
    """One partition of a group on both sides.

    Lags are in records up to the last stable offset; None where there is no offset. `translated` None: no translation, `reason` says why.
    `decision` is what a sync does with it now: write, up to date, or nothing; `reason` says why, or why the translation is not exact.
    """

    topic: str
    partition: int
    source_offset: int | None
    source_lag: int | None
    remote_topic: str
    translated: int | None
    exact: bool
    target_offset: int | None
    target_lag: int | None
    decision: str
    reason: str


@dataclass(frozen=True)
class GroupExplanation:
    """Everything about one group. `obstacles`: why none of its partitions is written by a run; empty when they decide one by one."""

    flow: str
    group: str
    source: GroupSide
    target: GroupSide
    obstacles: tuple[str, ...]
    partitions: tuple[ExplainedPartition, ...]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def explain_group(flow: Flow, group: str) -> GroupExplanation:
    """Look at one group. ArgumentError when neither cluster has it; ClusterUnreachable and its kin when one cannot be read."""
    with ConsumerGroups(flow.source) as groups:
        source = _side(flow.source, group, groups.list(), _found(groups.describe([group])[group]))
    with ConsumerGroups(flow.target) as groups:
        listed = groups.list()
        at_target = _found(look(groups, [group], {entry.group: entry.type for entry in listed})[group])
        target = _side(flow.target, group, listed, at_target.description)
    if not source.type and not target.type:
        raise ArgumentError(f"neither {source.cluster} nor {target.cluster} has a group {group} that the user may describe")
    obstacles = _obstacles(flow, group, source)
    positions: tuple[TranslatedPosition, ...] = ()
    if source.type and source.type not in UNSUPPORTED_TYPES and not is_ferry_group(group):
        translated = translated_groups(flow, [group])
        positions = translated.positions
        obstacles += [entry.reason for entry in translated.left_out]
    decision = _decision(flow, group, positions, at_target)
    if decision.untouched:
        obstacles.append(decision.untouched)
    elif not positions and not obstacles:
        obstacles.append(f"it has no offsets on {source.cluster} of topics that are copied")
    source_ends = _ends(flow.source, (TopicPartition(position.topic, position.partition) for position in positions))
    target_ends = _ends(flow.target, (entry.remote for entry in decision.partitions if entry.position.remote_topic))
    partitions = tuple(_explained(entry, source_ends, target_ends) for entry in decision.partitions)
    return GroupExplanation(flow.name, group, source, target, tuple(obstacles), partitions)


def _found(entry: T | FerryError) -> T:
    if isinstance(entry, FerryError):
        raise entry
    return entry


def _side(cluster: Cluster, group: str, listed: Iterable[GroupListing], described: GroupDescription) -> GroupSide:
    entry = next((entry for entry in listed if entry.group == group), None)
    if entry is None:
        return GroupSide(cluster.alias, described.state, described.type)
    # Of share and streams groups only the listing knows the state.
    state = described.state if described.exists else entry.state
    return GroupSide(cluster.alias, state, entry.type, tuple(f"{member.client_id} ({member.host})" for member in described.members))


def _obstacles(flow: Flow, group: str, source: GroupSide) -> list[str]:
    found = []
    if disabled := not_enabled(flow, SyncName.GROUPS):
        found.append(f"runs do not sync groups: {disabled}")
    if held := why_groups_are_held(flow):
        found.append(held)
    if is_ferry_group(group):
        found.append("it is Ferry's own group")
    elif filtered := flow.group_filter.why_not(group):
        found.append(f"the group filter leaves it out: {filtered}")
    if not source.type:
        found.append(f"{source.cluster} has no such group")
    elif source.type in UNSUPPORTED_TYPES:
        found.append(f"it is a {source.type} group on {source.cluster}: only classic and consumer groups have offsets to sync")
    return found


def _decision(flow: Flow, group: str, positions: Iterable[TranslatedPosition], target: TargetGroup) -> GroupDecision:
    with ClusterAdmin(flow.target) as admin:
        widths = {name: topic.partitions for name, topic in admin.topics().items()}
    return decide_group(group, positions, target, widths, alias=flow.target.alias, marker="")


def _ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Ends:
    with ClusterAdmin(cluster) as admin:
        return admin.end_offsets(partitions)[0]


def _explained(entry: PartitionDecision, source_ends: Ends, target_ends: Ends) -> ExplainedPartition:
    position = entry.position
    translation = position.translation
    return ExplainedPartition(
        topic=position.topic,
        partition=position.partition,
        source_offset=position.upstream_offset,
        source_lag=_lag(source_ends.get(TopicPartition(position.topic, position.partition)), position.upstream_offset),
        remote_topic=position.remote_topic,
        translated=None if translation is None else translation.image,
        exact=translation is not None and translation.exact,
        target_offset=entry.present,
        target_lag=_lag(target_ends.get(entry.remote), entry.present),
        decision="write" if entry.write is not None else "up to date" if entry.up_to_date else "nothing",
        reason=entry.reason,
    )


def _lag(end: int | None, offset: int | None) -> int | None:
    return None if end is None or offset is None else max(end - offset, 0)
