"""Positions of a consumer group at the source: where MirrorMaker 1, or any consumer that copied by itself, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.errors import ArgumentError, FerryError, ReplicatorActive
from ferry.recovery.positions import GivenPositions

if TYPE_CHECKING:
    from ferry.config import Flow


def read_group_positions(flow: Flow, group: str) -> GivenPositions:
    """The committed offsets of `group`. ReplicatorActive while it has members, ArgumentError when it has committed nothing."""
    where = f"group {group} on cluster {flow.source.alias}"
    with ConsumerGroups(flow.source) as groups:
        described, offsets = groups.describe([group])[group], groups.offsets([group])[group]
    if isinstance(described, FerryError):
        raise described
    if isinstance(offsets, FerryError):
        raise offsets
    if described.active:
        members = ", ".join(f"{member.client_id} at {member.host.lstrip('/')}" for member in described.members) or "none listed"
        raise ReplicatorActive(f"{where} is {described.state}, with members {members}: stop them, then seed again")
    positions = {(key.topic, key.partition): committed.offset for key, committed in offsets.items() if committed.offset >= 0}
    if not positions:
        raise ArgumentError(f"{where} has committed no offsets: is it the right group, and the right cluster?")
    return GivenPositions(
        origin=f"group {group}",
        positions=positions,
        notices=("nothing is lost; what the group's consumers copied after their last commit is copied once more",),
    )
