"""Why a group is or is not synced: the group on both clusters now, its translation, and what a sync would decide. Reads only.

group_placing.py decides, as it does for the group sync.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.clusters.groups.group_model import GroupDescription, GroupListing
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Cluster
from ferry.errors import ArgumentError, FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import why_groups_may_not_be_synced
from ferry.policy.naming import is_ferry_group
from ferry.syncs.group_decision import GroupDecision, PartitionDecision, Placement
from ferry.syncs.group_placing import GroupPlacer, end_offsets
from ferry.syncs.names import SyncName, not_enabled
from ferry.syncs.translated_groups import NO_OFFSETS, translated_groups
from ferry.translation.translated import TranslatedPosition

Ends = dict[TopicPartition, int]


@dataclass(frozen=True)
class GroupSide:
    """A group on one cluster. Where it does not exist, `type` is empty and `state` is Dead."""

    cluster: str
    state: str
    type: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainedPartition:
    """One partition of a group. Lags are in offsets up to the last stable offset; None: there is no offset."""

    topic: str
    partition: int
    source_offset: int | None
    source_lag: int | None
    remote_topic: str
    translated: int | None  # None: there is no translation
    exact: bool
    target_offset: int | None
    target_lag: int | None
    decision: str  # what a sync does now: write, up to date, or nothing
    reason: str  # why nothing is written, or why the translation is not exact


@dataclass(frozen=True)
class GroupExplanation:
    """Everything about one group. `obstacles`: why a run writes none of its partitions; empty when the partitions decide."""

    flow: str
    group: str
    source: GroupSide
    target: GroupSide
    obstacles: tuple[str, ...]
    partitions: tuple[ExplainedPartition, ...]


def explain_group(opened: OpenFlow, group: str) -> GroupExplanation:
    """Look at one group. ArgumentError when neither cluster has it; ClusterUnreachable or a subclass when one cannot be read."""
    flow = opened.flow
    with opened.source.groups() as groups:
        described = groups.describe([group])[group]
        if isinstance(described, FerryError):
            raise described
        source = _side(flow.source, described, next((entry for entry in groups.list() if entry.group == group), None))
    obstacles = _obstacles(opened, group, source)
    positions: tuple[TranslatedPosition, ...] = ()
    if source.type and not is_ferry_group(group):
        translated = translated_groups(opened, [group])
        positions = translated.positions
        obstacles += [entry.reason for entry in translated.left_out]
    decision = _decision(opened, group, positions)
    target = _side(flow.target, decision.target.description, decision.target.listing)
    if not source.type and not target.type:
        raise ArgumentError(f"neither {source.cluster} nor {target.cluster} has a group {group} that the user may describe")
    if decision.untouched:
        obstacles.append(decision.untouched)
    elif not positions and not obstacles:
        obstacles.append(NO_OFFSETS)
    source_ends = end_offsets(opened.source, [TopicPartition(position.topic, position.partition) for position in positions])
    target_ends = end_offsets(opened.target, [entry.remote for entry in decision.partitions if entry.position.remote_topic])
    partitions = tuple(_explained(entry, source_ends, target_ends) for entry in decision.partitions)
    return GroupExplanation(flow.name, group, source, target, tuple(obstacles), partitions)


def _decision(opened: OpenFlow, group: str, positions: Sequence[TranslatedPosition]) -> GroupDecision:
    with GroupPlacer(opened.target) as placer:
        ((decisions, problems),) = placer.decide({group: positions})
    for problem in problems.values():
        raise problem
    return decisions[0]


def _side(cluster: Cluster, described: GroupDescription, listing: GroupListing | None) -> GroupSide:
    if listing is None:
        return GroupSide(cluster.alias, described.state, described.type)
    # Of share groups only the listing knows the state.
    state = described.state if described.exists else listing.state
    return GroupSide(cluster.alias, state, listing.type, tuple(f"{member.client_id} ({member.host})" for member in described.members))


def _obstacles(opened: OpenFlow, group: str, source: GroupSide) -> list[str]:
    flow, found = opened.flow, []
    if disabled := not_enabled(flow, SyncName.GROUPS):
        found.append(f"runs do not sync groups: {disabled}")
    if held := why_groups_may_not_be_synced(opened):
        found.append(held)
    if is_ferry_group(group):
        found.append("it is Ferry's own group")
    elif filtered := flow.group_filter.why_not(group):
        found.append(f"the group filter leaves it out: {filtered}")
    if not source.type:
        found.append(f"{source.cluster} has no such group")
    return found


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
        decision=decision_word(entry.placement),
        reason=entry.reason,
    )


def decision_word(placement: Placement) -> str:
    """The word of `ferry explain` and the page for a placement."""
    return {Placement.WRITE: "write", Placement.UP_TO_DATE: "up to date"}.get(placement, "nothing")


def _lag(end: int | None, offset: int | None) -> int | None:
    return None if end is None or offset is None else max(end - offset, 0)
